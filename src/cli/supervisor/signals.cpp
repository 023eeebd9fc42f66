// SPDX-License-Identifier: Apache-2.0
#include "cli/supervisor/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace dibs::cli {

namespace {

/// What the wrapper needs for itself, whatever its caller had set: with SIGCHLD ignored the kernel
/// would reap the child and its status would be gone; a closed stderr must not kill the wrapper.
void set_own_dispositions() noexcept {
    struct sigaction plain {};
    plain.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &plain, nullptr);
    plain.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &plain, nullptr);
}

}  // namespace

sigset_t signals_taken() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT, SIGPIPE}) {
        ::sigdelset(&all, fault);
    }
    return all;
}

signal_desk::signal_desk() {
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction found {};
        ignored_[static_cast<std::size_t>(number)] =
            ::sigaction(number, nullptr, &found) == 0 && found.sa_handler == SIG_IGN;
    }
    const auto blocked = signals_taken();
    if (const int error = ::pthread_sigmask(SIG_BLOCK, &blocked, &before_); error != 0) {
        throw std::system_error(error, std::generic_category(), "cannot block signals");
    }
    descriptor_ = ::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) {
        throw std::system_error(errno, std::generic_category(), "cannot open a signal descriptor");
    }
    set_own_dispositions();
}

signal_desk::~signal_desk() {
    ::close(descriptor_);
}

std::optional<signal_desk::taken> signal_desk::take() noexcept {
    signalfd_siginfo info{};
    while (true) {
        const auto got = ::read(descriptor_, &info, sizeof info);
        if (got == static_cast<ssize_t>(sizeof info)) {
            const auto number = static_cast<int>(info.ssi_signo);
            const bool ends = number == SIGTERM || number == SIGINT || number == SIGHUP;
            if (ends && told_to_end_ == 0 && !ignored_before(number)) {
                told_to_end_ = number;
            }
            return taken{number, info.ssi_code == SI_KERNEL};
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        return std::nullopt;
    }
}

bool signal_desk::ignored_before(int number) const noexcept {
    return number > 0 && number < NSIG && ignored_[static_cast<std::size_t>(number)];
}

bool signal_desk::ends_by_default(int number) noexcept {
    switch (number) {
        case SIGCHLD:
        case SIGCONT:
        case SIGURG:
        case SIGWINCH:
        case SIGTSTP:
        case SIGTTIN:
        case SIGTTOU:
        case SIGSTOP:
            return false;
        default:
            return true;
    }
}

void signal_desk::restore_in_child() const noexcept {
    struct sigaction plain {};
    for (const int changed : {SIGCHLD, SIGPIPE}) {
        plain.sa_handler = ignored_before(changed) ? SIG_IGN : SIG_DFL;
        ::sigaction(changed, &plain, nullptr);
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

const char* signal_name(int number) noexcept {
    const char* name = ::sigabbrev_np(number);
    return name != nullptr ? name : "?";
}

}  // namespace dibs::cli
