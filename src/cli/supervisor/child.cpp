// SPDX-License-Identifier: Apache-2.0
#include "cli/supervisor/child.hpp"

#include "cli/supervisor/guard.hpp"
#include "cli/supervisor/process_group.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace dibs::cli {

namespace {

struct exec_report {
    int error;
    std::size_t candidate;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (const auto& text : texts) {
        all.push_back(const_cast<char*>(text.c_str()));
    }
    all.push_back(nullptr);
    return all;
}

/// As a shell: a file that is there but may not be executed counts more than files that are not
/// there.
exec_report execute(const std::vector<char*>& candidates,
                    char* const* argv,
                    char* const* envp) noexcept {
    exec_report worst{ENOENT, 0};
    for (std::size_t index = 0; candidates[index] != nullptr; ++index) {
        ::execve(candidates[index], argv, envp);
        const int error = errno;
        if (error == ENOENT || error == ENOTDIR) {
            continue;
        }
        if (error != EACCES) {
            return {error, index};
        }
        if (worst.error == ENOENT) {
            worst = {error, index};
        }
    }
    return worst;
}

}  // namespace

std::vector<std::string> candidates_for(const std::string& name, const char* path) {
    if (name.empty()) {
        return {};
    }
    if (name.find('/') != std::string::npos) {
        return {name};
    }
    std::vector<std::string> found;
    const std::string_view folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
    for (std::size_t from = 0;;) {
        const auto colon = folders.find(':', from);
        const auto folder = folders.substr(from, colon - from);
        found.push_back(folder.empty() ? name : std::string(folder) + "/" + name);
        if (colon == std::string_view::npos) {
            return found;
        }
        from = colon + 1;
    }
}

started_child start_child(const child_plan& plan, const signal_desk& desk) {
    const auto files = candidates_for(plan.command.front(), std::getenv("PATH"));
    const auto candidates = pointers(files);
    const auto argv = pointers(plan.command);
    const auto envp = pointers(plan.environment);
    std::array<int, 2> report{};
    if (::pipe2(report.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot open a pipe");
    }
    const pid_t process = ::fork();
    if (process == 0) {
        ::setpgid(0, 0);
        if (plan.guard_socket >= 0) {
            // Without a guard (it was killed) the wrapper carries on alone, so a failure is none.
            (void)register_with_guard(plan.guard_socket);
        }
        if (plan.liveness >= 0) {
            ::fcntl(plan.liveness, F_SETFD, 0);
        }
        if (plan.output >= 0) {
            ::dup2(plan.output, STDOUT_FILENO);
        }
        if (plan.errors >= 0) {
            ::dup2(plan.errors, STDERR_FILENO);
        }
        desk.restore_in_child();
        const auto failed = execute(candidates, argv.data(), envp.data());
        (void)!::write(report[1], &failed, sizeof failed);
        ::_exit(127);
    }
    const int fork_error = errno;
    ::close(report[1]);
    if (process < 0) {
        ::close(report[0]);
        throw std::system_error(fork_error, std::generic_category(), "cannot start a process");
    }
    // Also here: whoever comes first, the group exists before anybody signals it.
    ::setpgid(process, process);
    exec_report failed{};
    ssize_t got = 0;
    while ((got = ::read(report[0], &failed, sizeof failed)) < 0 && errno == EINTR) {
    }
    ::close(report[0]);
    started_child started;
    if (got == static_cast<ssize_t>(sizeof failed)) {
        while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
        }
        started.exec_error = failed.error;
        started.tried = failed.candidate < files.size() && failed.error != ENOENT
                            ? files[failed.candidate]
                            : plan.command.front();
        return started;
    }
    started.process = process;
    started.descriptor = open_pidfd(process);  // not reaped yet, so the number is its own
    return started;
}

}  // namespace dibs::cli
