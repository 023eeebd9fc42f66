// SPDX-License-Identifier: Apache-2.0
#include "cli/output/status_report.hpp"

#include "cli/output/json.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace dibs::cli {

namespace {

std::string beside(const std::string& path) {
    return path + ".part." + std::to_string(::getpid());
}

/// Where the report really goes.
struct target {
    std::string path;
    int descriptor = -1;   ///< one of ours: /dev/fd/3, /dev/stderr
    bool replaced = true;  ///< by a new file; otherwise it is written to as it is
};

/// A device or a pipe must stay what it is, and so must a symbolic link. A descriptor's file is
/// somebody's open log: neither replaced nor written to from its beginning.
target target_of(const std::string& path) {
    namespace fs = std::filesystem;
    const auto descriptors = "/proc/" + std::to_string(::getpid()) + "/fd";
    constexpr int links_max = 40;  // as the kernel
    std::error_code error;
    fs::path at = path;
    for (int links = 0; links < links_max && fs::is_symlink(at, error); ++links) {
        const auto parent = at.has_parent_path() ? at.parent_path() : fs::path(".");
        const auto folder = fs::canonical(parent, error);
        if (!error && folder == descriptors) {
            return {path, std::atoi(at.filename().c_str()), false};
        }
        at = parent / fs::read_symlink(at, error);
    }
    const auto found = fs::status(at, error);
    return {at.string(), -1, !fs::exists(found) || fs::is_regular_file(found)};
}

bool write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const auto got = ::write(file, text.data(), text.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        text.remove_prefix(static_cast<std::size_t>(got));
    }
    return true;
}

}  // namespace

std::string fault_of_report_path(const std::string& path) {
    std::error_code unseen;
    if (std::filesystem::is_directory(path, unseen)) {
        return "is a directory";
    }
    const auto where = target_of(path);
    if (where.descriptor >= 0) {
        return {};
    }
    if (!where.replaced) {
        // Not opened for a test: the reader of a pipe would take that for the end.
        return ::access(where.path.c_str(), W_OK) == 0 ? std::string{} : std::strerror(errno);
    }
    const auto part = beside(where.path);
    const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        return std::strerror(errno);
    }
    ::close(file);
    ::unlink(part.c_str());
    return {};
}

void keep_from_child(const std::string& path) {
    if (const int descriptor = target_of(path).descriptor; descriptor > STDERR_FILENO) {
        ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
}

bool write_report(const std::string& path, const status_report& report) {
    const auto text = to_json(report) + "\n";
    const auto where = target_of(path);
    if (where.descriptor >= 0) {
        return write_all(where.descriptor, text);
    }
    const auto written = where.replaced ? beside(where.path) : where.path;
    // Without O_NONBLOCK a pipe that nobody reads would keep us for ever.
    constexpr int manner = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    const int file = ::open(written.c_str(), manner, 0666);
    if (file < 0) {
        return false;
    }
    const bool complete = write_all(file, text);
    const bool closed = ::close(file) == 0;
    if (!where.replaced) {
        return complete && closed;
    }
    if (complete && closed && std::rename(written.c_str(), where.path.c_str()) == 0) {
        return true;
    }
    ::unlink(written.c_str());
    return false;
}

}  // namespace dibs::cli
