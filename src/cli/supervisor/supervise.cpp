// SPDX-License-Identifier: Apache-2.0
#include "cli/supervisor/supervise.hpp"

#include "cli/supervisor/boot_time.hpp"
#include "cli/supervisor/process_group.hpp"
#include "cli/supervisor/terminal.hpp"
#include "store/file_descriptor.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>
#include <utility>

namespace dibs::cli {

namespace {

using core::instant;
using core::milliseconds;

/// Two of the same wish within this time are one: timeout(1) and some supervisors signal a process
/// and then its group.
constexpr auto echo = milliseconds{100};
/// How often to look for members of the group after the child was told to stop.
constexpr auto look_again = milliseconds{10};
/// A stop of the child this soon after Ctrl-Z belongs to it, whatever signal it came by.
constexpr auto put_aside_within = milliseconds{500};
/// After KILL: how long to wait for the kernel (and for whoever reaps orphans) before going on
/// without.
constexpr auto gone_within = milliseconds{2'000};

store::file_descriptor opened(int number) {
    if (number < 0) {
        throw std::system_error(errno, std::generic_category(), "cannot open a descriptor");
    }
    return store::file_descriptor{number};
}

class supervisor {
  public:
    supervisor(const supervision& what, signal_desk& desk, guard& guarded)
        : what_(what),
          desk_(desk),
          guard_(guarded),
          timer_(opened(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK))),
          loss_(opened(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
          stop_(what.limits, deadline()) {}

    ending run() {
        const auto started = start_child(what_.child, desk_);
        if (started.exec_error != 0) {
            ending failed;
            const bool missing = started.exec_error == ENOENT || started.exec_error == ENOTDIR;
            failed.how = missing ? ending::kind::not_found : ending::kind::cannot_execute;
            failed.status = missing ? 127 : 126;
            failed.exec_error = started.exec_error;
            failed.tried = started.tried;
            return failed;
        }
        child_ = started.process;
        const store::file_descriptor leader{started.descriptor};
        group_ = process_group{child_, ::getsid(0), started.descriptor};
        const std::stop_callback on_loss(what_.lost, [descriptor = loss_.get()]() noexcept {
            const std::uint64_t one = 1;
            (void)!::write(descriptor, &one, sizeof one);
        });
        while (!finished()) {
            act();
            if (!finished()) {
                wait();
                take_signals();
                // The clock first: a wrapper that was stopped for too long must not take its
                // child's end for a good one.
                act();
                look_at_child();
                look_at_guard();
                reap_orphans();
            }
        }
        terminal_.take_back();
        ending end;
        end.status = status_;
        end.killed_by = killed_by_;
        end.stopped = stop_.cause();
        return end;
    }

  private:
    [[nodiscard]] instant deadline() const noexcept {
        const auto at = guard_.page().deadline_ns.load();
        return at == 0 ? never : instant{core::nanoseconds{at}};
    }

    [[nodiscard]] bool finished() {
        if (!child_ended_) {
            return false;
        }
        if (!stop_.stopping()) {
            return true;
        }
        if (!group_.signal(0)) {
            return true;
        }
        // What is left after KILL may be zombies that wait for a slow init to reap them.
        return killed_at_ != never && (!group_has_member(group_.id(), ::getsid(0)) ||
                                       boot_now() >= killed_at_ + gone_within);
    }

    void act() {
        stop_.deadline_is(deadline());
        if (what_.lost.stop_requested()) {
            stop_.lease_lost();
        }
        if (child_ended_ && !stop_.stopping()) {
            return;
        }
        for (auto action = stop_.next(boot_now()); action != stop_action::none;
             action = stop_.next(boot_now())) {
            if (action == stop_action::terminate) {
                guard_.stopping(stop_.kill_at());
                group_.signal(SIGTERM);
                group_.signal(SIGCONT);  // a stopped process does not see TERM
                tell("the child is told to stop (TERM)");
            } else {
                group_.signal(SIGKILL);
                killed_at_ = boot_now();
                tell("the child is made to stop (KILL)");
            }
        }
    }

    void wait() {
        auto wake = stop_.wake_at();
        if (child_ended_) {
            wake = std::min(wake, boot_now() + look_again);
        }
        itimerspec alarm{};
        if (wake != never) {
            alarm.it_value = as_timespec(std::max(wake, instant{core::nanoseconds{1}}));
        }
        ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr);
        std::array<pollfd, 3> ready{pollfd{timer_.get(), POLLIN, 0},
                                    pollfd{loss_.get(), POLLIN, 0},
                                    pollfd{desk_.descriptor(), POLLIN, 0}};
        if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) {
            throw std::system_error(errno, std::generic_category(), "cannot wait for the child");
        }
        std::uint64_t drained = 0;
        (void)!::read(loss_.get(), &drained, sizeof drained);
    }

    void take_signals() {
        while (const auto signal = desk_.take()) {
            forward(*signal);
        }
    }

    void forward(const signal_desk::taken& signal) {
        switch (signal.number) {
            case SIGCHLD:
            case SIGTTIN:
            case SIGTTOU:
                return;  // about us, not for the child
            case SIGINT:
            case SIGTERM:
                if (is_second_wish()) {
                    return;
                }
                break;
            case SIGTSTP:
                put_aside_at_ = boot_now();
                break;
            case SIGCONT:
                child_stands_still_ = false;
                put_aside_at_ = never;
                // The shell brings the job back: to the front, if that is where we are now.
                if (wants_terminal_ && terminal_.is_ours()) {
                    terminal_.give_to(child_);
                }
                break;
            default:
                break;
        }
        if (child_ended_) {
            return;
        }
        group_.signal(signal.number);
        const bool asks_for_the_end = signal.number == SIGTERM || signal.number == SIGINT ||
                                      signal.number == SIGHUP || signal.number == SIGQUIT;
        if (asks_for_the_end && child_stands_still()) {
            group_.signal(SIGCONT);  // a stopped process does not see the others
            child_stands_still_ = false;
        }
    }

    /// Also when we have not been told yet.
    [[nodiscard]] bool child_stands_still() const {
        siginfo_t seen{};
        const auto which = static_cast<id_t>(child_);
        return child_stands_still_ ||
               (::waitid(P_PID, which, &seen, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
                seen.si_pid != 0);
    }

    /// Whether this INT or TERM needs no forwarding: an echo of the one before, or the one that
    /// forces the end.
    bool is_second_wish() {
        const auto now = boot_now();
        if (asked_at_ == never) {
            asked_at_ = now;
            return false;
        }
        if (now - asked_at_ >= echo) {
            tell("asked a second time");
            stop_.force();
        }
        return true;
    }

    void look_at_child() {
        while (!child_ended_) {
            siginfo_t seen{};
            if (::waitid(P_PID, static_cast<id_t>(child_), &seen, WEXITED | WSTOPPED | WNOHANG) !=
                    0 ||
                seen.si_pid == 0) {
                break;
            }
            if (seen.si_code == CLD_STOPPED) {
                child_stands_still_ = true;
                child_stopped(seen.si_status);
                continue;
            }
            child_ended_ = true;
            terminal_.take_back();
            killed_by_ = seen.si_code == CLD_EXITED ? 0 : seen.si_status;
            status_ = seen.si_code == CLD_EXITED ? seen.si_status : 128 + seen.si_status;
        }
    }

    /// Somebody stopped the child. Asking for the terminal in the background, it gets it; put aside
    /// by Ctrl-Z, the wrapper steps aside with it, so that the shell has its prompt back.
    void child_stopped(int signal) {
        if (!terminal_.exists() || stop_.stopping()) {
            return;
        }
        const bool asks = signal == SIGTTIN || signal == SIGTTOU;
        if (!asks && signal != SIGTSTP) {
            return;
        }
        wants_terminal_ = wants_terminal_ || asks;
        // A child that asked for the terminal just when Ctrl-Z was typed: to continue it would undo
        // the user's wish.
        const bool put_aside =
            put_aside_at_ != never && boot_now() - put_aside_at_ < put_aside_within;
        if (asks && !put_aside && terminal_.is_ours()) {
            if (terminal_.give_to(child_)) {
                group_.signal(SIGCONT);
            }
            return;
        }
        wants_terminal_ = wants_terminal_ || terminal_.is_given();
        put_aside_at_ = never;
        terminal_.take_back();
        tell("stopped with the child; the lease is not renewed meanwhile");
        ::raise(SIGSTOP);
        // Continued by the shell, whose SIGCONT is among the signals taken next.
    }

    void look_at_guard() {
        if (guard_.process() > 0 &&
            ::waitpid(guard_.process(), nullptr, WNOHANG) == guard_.process()) {
            guard_.ended();
            tell("the guard process has ended; carrying on without it");
        }
    }

    /// As the first process of a container, whoever is orphaned there becomes our child.
    void reap_orphans() const {
        siginfo_t seen{};
        while (::getpid() == 1 && ::waitid(P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               seen.si_pid > 0 && seen.si_pid != child_ && seen.si_pid != guard_.process()) {
            ::waitpid(seen.si_pid, nullptr, WNOHANG);
            seen = {};
        }
    }

    void tell(std::string_view text) const {
        if (what_.tell) {
            what_.tell(text);
        }
    }

    const supervision& what_;
    signal_desk& desk_;
    guard& guard_;
    store::file_descriptor timer_;
    store::file_descriptor loss_;
    terminal terminal_;
    stopper stop_;
    process_group group_;
    pid_t child_ = -1;
    bool child_ended_ = false;
    bool wants_terminal_ = false;
    int status_ = 0;
    int killed_by_ = 0;
    instant asked_at_ = never;
    bool child_stands_still_ = false;  // as far as look_at_child has seen
    instant put_aside_at_ = never;
    instant killed_at_ = never;
};

}  // namespace

ending supervise(const supervision& what, signal_desk& desk, guard& guarded) {
    return supervisor(what, desk, guarded).run();
}

}  // namespace dibs::cli
