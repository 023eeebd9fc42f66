// SPDX-License-Identifier: Apache-2.0
#include "cli/status_report.hpp"

#include "cli/json.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace dibs::cli {

namespace {

std::string beside(const std::string& path) {
    return path + ".part." + std::to_string(::getpid());
}

}  // namespace

std::string fault_of_report_path(const std::string& path) {
    if (std::filesystem::is_directory(path)) {
        return "is a directory";
    }
    const auto part = beside(path);
    const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        return std::strerror(errno);
    }
    ::close(file);
    ::unlink(part.c_str());
    return {};
}

bool write_report(const std::string& path, const status_report& report) {
    const auto part = beside(path);
    const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        return false;
    }
    const std::string text = to_json(report) + "\n";
    std::size_t written = 0;
    while (written < text.size()) {
        const auto got = ::write(file, text.data() + written, text.size() - written);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        written += static_cast<std::size_t>(got);
    }
    const bool closed = ::close(file) == 0;
    if (written == text.size() && closed && std::rename(part.c_str(), path.c_str()) == 0) {
        return true;
    }
    ::unlink(part.c_str());
    return false;
}

}  // namespace dibs::cli
