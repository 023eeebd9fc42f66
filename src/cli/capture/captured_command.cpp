// SPDX-License-Identifier: Apache-2.0
#include "cli/capture/captured_command.hpp"

#include "cli/output/failure.hpp"
#include "store/file_descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace dibs::cli {

namespace {

using store::file_descriptor;
using clock = std::chrono::steady_clock;

constexpr std::size_t output_bytes_max = 1 << 20;
constexpr std::chrono::seconds time_to_end{2};

[[noreturn]] void fail(std::string_view what) {
    throw failure(exit_status::system, std::string(what) + ": " + std::strerror(errno));
}

/// Nobody else can read it, and no writer can block.
file_descriptor holding(std::string_view text) {
    file_descriptor made{::memfd_create("dibs-input", MFD_CLOEXEC)};
    if (made.get() < 0) {
        fail("no memory for the command's input");
    }
    while (!text.empty()) {
        const auto written = ::write(made.get(), text.data(), text.size());
        if (written < 0) {
            fail("the command's input");
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    ::lseek(made.get(), 0, SEEK_SET);
    return made;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> made;
    for (const auto& word : words) {
        made.push_back(const_cast<char*>(word.c_str()));
    }
    made.push_back(nullptr);
    return made;
}

int shell_status(int status) noexcept {
    return WIFSIGNALED(status) ? exit_status::signal_base + WTERMSIG(status) : WEXITSTATUS(status);
}

std::chrono::milliseconds left(clock::time_point until) {
    return std::max(std::chrono::milliseconds::zero(),
                    std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()));
}

/// Until `until`, until all who may write have closed it, or until the command has ended and what it wrote is read: what it
/// left in the background may keep it open for ever.
void read_all(int from, int end, clock::time_point until, captured_run& into) {
    std::array<char, 4096> piece{};
    for (;;) {
        std::array<pollfd, 2> wanted{{{.fd = from, .events = POLLIN, .revents = 0},
                                      {.fd = end, .events = POLLIN, .revents = 0}}};
        const auto patience = left(until);
        const int ready = ::poll(wanted.data(), wanted.size(), static_cast<int>(patience.count()));
        if (ready < 0 && errno != EINTR) {
            fail("waiting for the command's output");
        }
        if (ready == 0) {
            into.timed_out = true;
            return;
        }
        if (ready < 0) {
            continue;
        }
        if (wanted[0].revents == 0 || (wanted[1].revents != 0 && into.too_long)) {
            return;
        }
        const auto got = ::read(from, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return;
        }
        const auto room = output_bytes_max - into.output.size();
        into.too_long = into.too_long || static_cast<std::size_t>(got) > room;
        into.output.append(piece.data(), std::min(static_cast<std::size_t>(got), room));
    }
}

/// False: it has not ended by then.
bool reap(pid_t child, int end, clock::time_point until, int& status) {
    pollfd wanted{.fd = end, .events = POLLIN, .revents = 0};
    while (::poll(&wanted, 1, static_cast<int>(left(until).count())) < 0 && errno == EINTR) {
    }
    return ::waitpid(child, &status, WNOHANG) == child;
}

}  // namespace

captured_run run_captured(const signal_desk& desk,
                          const std::vector<std::string>& command,
                          const std::vector<std::string>& environment,
                          std::string_view input,
                          std::chrono::milliseconds patience) {
    const auto until = clock::now() + patience;
    const auto fed = holding(input);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        fail("no pipe for the command's output");
    }
    const file_descriptor reader{ends[0]};
    file_descriptor writer{ends[1]};
    auto words = pointers(command);
    auto variables = pointers(environment);
    const auto complaint = "dibs: cannot execute " + command.front() + "\n";
    const pid_t child = ::fork();
    if (child < 0) {
        fail("no process for the command");
    }
    if (child == 0) {
        ::setpgid(0, 0);
        ::dup2(fed.get(), STDIN_FILENO);
        ::dup2(writer.get(), STDOUT_FILENO);
        desk.restore_in_child();
        ::execvpe(words[0], words.data(), variables.data());
        const int why = errno;
        (void)!::write(STDERR_FILENO, complaint.data(), complaint.size());
        ::_exit(why == ENOENT ? exit_status::not_found : exit_status::cannot_execute);
    }
    ::setpgid(child, child);
    writer = file_descriptor{};
    const file_descriptor end{static_cast<int>(::syscall(SYS_pidfd_open, child, 0))};
    captured_run told;
    read_all(reader.get(), end.get(), until, told);
    int status = 0;
    if (told.timed_out || !reap(child, end.get(), until, status)) {
        told.timed_out = true;
        ::kill(-child, SIGTERM);
        if (!reap(child, end.get(), clock::now() + time_to_end, status)) {
            ::kill(-child, SIGKILL);
            ::waitpid(child, &status, 0);
        }
    }
    told.status = shell_status(status);
    return told;
}

}  // namespace dibs::cli
