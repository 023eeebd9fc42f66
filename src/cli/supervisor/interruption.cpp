// SPDX-License-Identifier: Apache-2.0
#include "cli/supervisor/interruption.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace dibs::cli {

namespace {
/// From the signal to the end of the process at the latest.
constexpr int patience_ms = 300;
}  // namespace

interruption::interruption(signal_desk& desk, std::function<void(int)> give_up)
    : desk_(desk), give_up_(std::move(give_up)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_ < 0) {
        throw std::system_error(errno, std::generic_category(), "cannot open a descriptor");
    }
    thread_ = std::thread([this] { listen(); });
}

interruption::~interruption() {
    finish();
    ::close(wake_);
}

int interruption::finish() noexcept {
    if (thread_.joinable()) {
        const std::uint64_t one = 1;
        (void)!::write(wake_, &one, sizeof one);
        thread_.join();
    }
    return signal_.load();
}

void interruption::listen() noexcept {
    std::array<pollfd, 2> ready{pollfd{wake_, POLLIN, 0}, pollfd{desk_.descriptor(), POLLIN, 0}};
    while (true) {
        const int patience = signal_.load() == 0 ? -1 : patience_ms;
        const int got = ::poll(ready.data(), ready.size(), patience);
        if (got == 0) {
            give_up_(signal_.load());
        }
        if (ready[0].revents != 0) {
            return;
        }
        while (const auto signal = desk_.take()) {
            if (desk_.ignored_before(signal->number)) {
                continue;
            }
            if (signal->number == SIGTSTP) {
                ::raise(SIGSTOP);
            } else if (signal_desk::ends_by_default(signal->number) && signal_.load() == 0) {
                signal_.store(signal->number);
                wish_.request_stop();
                // From here on only the end is awaited: further signals must not restart the
                // patience.
                ready[1].fd = -1;
            }
        }
        ready[1].revents = 0;
    }
}

}  // namespace dibs::cli
