// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/stage.hpp"

#include "cli/supervisor/signals.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace dibs::cli {

namespace {

/// The processes of the demo: a group of their own, so that none of them outlives it.
class troupe {
  public:
    explicit troupe(pid_t leader) : leader_(leader) { ::setpgid(leader, leader); }

    void signal(int number) const { ::kill(-leader_, number); }

    /// Whether its first process has; which is not reaped, so that the number stays the group's.
    [[nodiscard]] bool leader_ended() const {
        siginfo_t seen{};
        return ::waitid(P_PID, static_cast<id_t>(leader_), &seen, WEXITED | WNOHANG | WNOWAIT) ==
                   0 &&
               seen.si_pid == leader_;
    }

    /// Nothing is left of it when this returns. The wait status of its first process.
    [[nodiscard]] int end() const {
        signal(SIGKILL);
        int status = 0;
        wait_for(leader_, &status);
        // Those that the leader left behind have become ours.
        while (wait_for(-leader_, nullptr)) {
        }
        return status;
    }

  private:
    static bool wait_for(pid_t which, int* status) {
        pid_t got = 0;
        while ((got = ::waitpid(which, status, 0)) < 0 && errno == EINTR) {
        }
        return got > 0;
    }

    pid_t leader_;
};

/// Waits for the end of the demo. A signal that ended the waiting, or 0.
int watch(const troupe& players, signal_desk& desk) {
    while (true) {
        if (players.leader_ended()) {
            return 0;
        }
        pollfd ready{desk.descriptor(), POLLIN, 0};
        (void)::poll(&ready, 1, -1);
        while (const auto signal = desk.take()) {
            if (signal->number == SIGTSTP) {
                players.signal(SIGSTOP);
                ::raise(SIGSTOP);
                players.signal(SIGCONT);
            } else if (signal_desk::ends_by_default(signal->number) &&
                       !desk.ignored_before(signal->number)) {
                return signal->number;
            }
        }
    }
}

/// Whoever of the demo finds that nobody reads on ends it for all: the others would wait for what
/// does not come.
void nobody_reads(int number) {
    ::signal(number, SIG_DFL);
    ::kill(::getpgrp(), number);  // the leader's number is the group's
}

/// Ends as a process that does nothing about the signal.
[[noreturn]] void end_by(int signal) {
    struct sigaction plain {};
    plain.sa_handler = SIG_DFL;
    ::sigaction(signal, &plain, nullptr);
    sigset_t all;
    ::sigemptyset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::raise(signal);
    ::_exit(128 + signal);
}

}  // namespace

int on_stage(const std::function<int(const std::string& folder)>& play) {
    std::string folder = (std::filesystem::temp_directory_path() / "dibs-demo-XXXXXX").string();
    signal_desk desk;
    if (::mkdtemp(folder.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "cannot make a folder");
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t player = ::fork();
    if (player == 0) {
        ::setpgid(0, 0);
        ::signal(SIGTTOU, SIG_IGN);  // in the background it may write all the same
        desk.restore_in_child();
        ::signal(SIGPIPE, nobody_reads);
        return play(folder);
    }
    const int error = errno;
    int status = 0;
    int signal = 0;
    if (player > 0) {
        const troupe players(player);
        signal = watch(players, desk);
        status = players.end();
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    if (player < 0) {
        throw std::system_error(error, std::generic_category(), "cannot start a process");
    }
    if (signal != 0 || WIFSIGNALED(status)) {
        end_by(signal != 0 ? signal : WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}

}  // namespace dibs::cli
