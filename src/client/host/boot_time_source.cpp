// SPDX-License-Identifier: Apache-2.0
#include "client/host/boot_time_source.hpp"

#include "store/library_thread.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace dibs::detail {

core::instant boot_time_now() noexcept {
    timespec at{};
    ::clock_gettime(CLOCK_BOOTTIME, &at);
    return core::instant{std::chrono::seconds{at.tv_sec} + core::nanoseconds{at.tv_nsec}};
}

boot_time_source::boot_time_source()
    : wheel_(boot_time_now()),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (timer_.get() < 0 || bell_.get() < 0) {
        throw std::system_error(errno, std::generic_category(), "cannot make a timer");
    }
}

boot_time_source::~boot_time_source() {
    stop();
}

void boot_time_source::start(serial_executor& on) {
    thread_ = store::library_thread([this, &on] { loop(on); });
}

void boot_time_source::stop() noexcept {
    stopping_ = true;
    wake();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void boot_time_source::wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(bell_.get(), &one, sizeof one);
}

void boot_time_source::arm(core::timer& alarm, core::instant due) {
    disarm(alarm);
    alarm.mark_armed(*this, due);
    wheel_.insert(alarm);
    if (due < programmed_) {
        program(due);
    }
}

void boot_time_source::disarm(core::timer& alarm) noexcept {
    if (alarm.armed()) {
        wheel_.remove(alarm);
        alarm.mark_disarmed();
    }
}

void boot_time_source::program(core::instant due) noexcept {
    programmed_ = due;
    const auto since_boot = std::max(due.time_since_epoch(), core::nanoseconds{1});
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    itimerspec when{};
    when.it_value.tv_sec = whole.count();
    when.it_value.tv_nsec = (since_boot - whole).count();
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void boot_time_source::fire_due() {
    programmed_ = core::instant::max();
    while (auto* const due = wheel_.pop_due(now())) {
        due->mark_disarmed();
        due->fire();
    }
    if (const auto next = wheel_.next_wake(); next && *next < programmed_) {
        program(*next);
    }
}

void boot_time_source::loop(serial_executor& on) {
    while (!stopping_) {
        std::array<pollfd, 2> waiting{{{timer_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}}};
        if (::poll(waiting.data(), waiting.size(), -1) < 0) {
            continue;
        }
        std::uint64_t count = 0;
        if (::read(bell_.get(), &count, sizeof count) > 0) {
            on.run_handed_over();
        }
        if (::read(timer_.get(), &count, sizeof count) > 0 && !stopping_) {
            on.post([this] { fire_due(); });
        }
    }
    on.run_handed_over();
}

}  // namespace dibs::detail
