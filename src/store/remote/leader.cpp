// SPDX-License-Identifier: Apache-2.0
#include "store/remote/leader.hpp"

#include "store/library_thread.hpp"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace dibs::store::remote {

namespace {

using namespace std::chrono_literals;

/// How long a caller lends its thread for one call; a slower answer is left to ours.
constexpr core::nanoseconds assist_max = 20ms;

/// When nothing but a connection is to be watched, our thread begins so long after the last turn. A
/// caller that takes and gives back one lease after the other does not wake it each time.
constexpr auto watch_after = 5ms;

thread_local const leader* assisted = nullptr;
thread_local core::instant assisted_since{};

timespec as_timespec(core::nanoseconds time) noexcept {
    const auto positive = std::max(time, core::nanoseconds{0});
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(positive);
    timespec made{};
    made.tv_sec = static_cast<time_t>(whole.count());
    made.tv_nsec = static_cast<long>((positive - whole).count());
    return made;
}

}  // namespace

short wait_for(int descriptor, short events, core::nanoseconds longest) noexcept {
    pollfd one{descriptor, events, 0};
    const auto until = as_timespec(longest);
    return ::ppoll(&one, 1, &until, nullptr) > 0 ? one.revents : short{0};
}

leader::leader(core::environment env, std::shared_ptr<mailbox> box)
    : env_(env), box_(std::move(box)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

leader::~leader() = default;

void leader::begin() {
    thread_ = library_thread([self = shared_from_this()] { self->work(); });
}

bool leader::something_to_do() const noexcept {
    return !nothing_came_in() || (!idle_ && !only_watches_);
}

/// And nobody sees to it.
bool leader::is_to_watch() const noexcept {
    return !idle_ && !dozes_;
}

void leader::note_state() noexcept {
    idle_ = idle();
    only_watches_ = !idle_ && only_watches();
    asked_ = asked();
}

void leader::ring() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(::write(bell_.get(), &one, sizeof one) == sizeof one);
}

void leader::call_leader(lock held) {
    if (leading_) {
        if (std::exchange(polling_, false)) {
            ring();
        }
        return;
    }
    // Whoever lends its thread comes for its work.
    const bool call = assisted != this;
    held.unlock();
    if (call) {
        changed_.notify_all();
    }
}

void leader::send_or_call_leader(lock held, urgency how) {
    // Whoever lends its thread comes for its work, and a leader that does not sleep will.
    const bool nobody_at_it = polling_ || (!leading_ && assisted != this);
    if (!nobody_at_it || stopping_ || !can_send(how)) {
        call_leader(std::move(held));
        return;
    }
    // The leader, if there is one, waits and touches nothing before it has had the lock.
    letters told;
    collect();
    take_in();
    send(env_.time.now(), told);
    note_state();
    if (!leading_ || next_event() < sleeps_until_ || !all_sent()) {
        call_leader(std::move(held));
    } else {
        held.unlock();
    }
    if (!told.empty()) {
        box_->send(std::move(told));
    }
}

// The connections are free again before anybody is told: what is told may call `stop`.
void leader::run_now(lock& held, core::nanoseconds longest) {
    leading_ = true;
    held.unlock();
    letters told;
    turn(longest, told);
    held.lock();
    leading_ = false;
    ++turns_;
    note_state();
    const bool others_care = stopping_ || something_to_do() || is_to_watch();
    held.unlock();
    if (others_care) {
        changed_.notify_all();
    }
    if (!told.empty()) {
        box_->send(std::move(told));
    }
}

/// False: it is over.
bool leader::wait_for_work(lock& held) {
    for (;;) {
        changed_.wait(held,
                      [&] { return stopping_ || (!leading_ && (something_to_do() || !idle_)); });
        if (stopping_ || something_to_do()) {
            return !stopping_;
        }
        const auto turns = turns_;
        dozes_ = true;
        const bool called = changed_.wait_for(
            held, watch_after, [&] { return stopping_ || (!leading_ && something_to_do()); });
        dozes_ = false;
        if (called || (turns == turns_ && !leading_)) {
            return !stopping_;
        }
    }
}

void leader::work() {
    lock held{guard_};
    while (wait_for_work(held)) {
        run_now(held, core::nanoseconds::max());
        held.lock();
    }
}

void leader::begin_assist() noexcept {
    callers_.fetch_add(1, std::memory_order_relaxed);
    assisted = this;
    assisted_since = env_.time.now();
}

bool leader::assist() noexcept {
    lock held{guard_};
    // Who only waits for others to give a key back leaves that to our own thread: it must come back
    // when the key is handed to it in this process, which nothing here would tell.
    if (leading_ || stopping_ || (nothing_came_in() && !asked_)) {
        return false;
    }
    const auto left = assisted_since + assist_max - env_.time.now();
    if (left <= 0ns) {
        return false;
    }
    const auto alive = shared_from_this();
    run_now(held, left);
    return true;
}

void leader::end_assist() noexcept {
    callers_.fetch_sub(1, std::memory_order_relaxed);
    if (assisted == this) {
        assisted = nullptr;
    }
    lock held{guard_};
    const bool more = !leading_ && (something_to_do() || is_to_watch());
    held.unlock();
    if (more) {
        changed_.notify_all();
    }
}

void leader::turn(core::nanoseconds longest, letters& told) {
    {
        const std::lock_guard held{guard_};
        collect();
    }
    take_in();
    act(env_.time.now(), told);
    if (told.empty()) {
        wait(longest, told);
    }
}

void leader::wait(core::nanoseconds longest, letters& told) {
    if (idle()) {
        return;
    }
    lock held{guard_};
    if (!nothing_came_in() || stopping_) {
        return;
    }
    const auto now = env_.time.now();
    sleeps_until_ = next_event();
    auto left = longest;
    if (sleeps_until_ != core::instant::max()) {
        left = std::min(left, std::max(sleeps_until_ - now, core::nanoseconds{0}));
    }
    const auto lines = awaited();
    std::array<pollfd, 3> waited{pollfd{bell_.get(), POLLIN, 0}, lines[0], lines[1]};
    const auto until = as_timespec(left);
    const bool for_ever = left == core::nanoseconds::max();
    // Where there are others, they have better use for the processor.
    const bool lone = assisted == this && callers_.load(std::memory_order_relaxed) == 1;
    const bool looks = lone && asked() && left > spin::longest && spin_.pays();
    polling_ = true;
    held.unlock();
    int found = looks ? look(waited, now + spin::longest) : 0;
    if (found == 0) {
        found = ::ppoll(waited.data(), waited.size(), for_ever ? nullptr : &until, nullptr);
    }
    held.lock();
    polling_ = false;
    held.unlock();
    if (found <= 0) {
        return;
    }
    if (waited[0].revents != 0) {
        std::uint64_t rung = 0;
        static_cast<void>(::read(bell_.get(), &rung, sizeof rung) == sizeof rung);
    }
    hear({waited[1], waited[2]}, env_.time.now(), told);
}

/// `ppoll` that does not sleep, until then.
int leader::look(std::span<pollfd> at, core::instant until) noexcept {
    constexpr timespec no_time{};
    int found = 0;
    for (;;) {
        found = ::ppoll(at.data(), at.size(), &no_time, nullptr);
        if (found != 0 || env_.time.now() >= until) {
            break;
        }
        ::sched_yield();  // the server may need this processor
    }
    spin_.ended(found > 0);
    return found;
}

void leader::stop() {
    {
        lock held{guard_};
        if (std::exchange(stopping_, true)) {
            return;
        }
        if (std::exchange(polling_, false)) {
            ring();
        }
        changed_.notify_all();
        changed_.wait(held, [&] { return !leading_; });
        leading_ = true;  // nobody leads any more
    }
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();  // it is telling somebody something, and ends after that
    } else if (thread_.joinable()) {
        thread_.join();
    }
    collect();
    take_in();
    letters told;
    finish(told);
    box_->send(std::move(told));
}

void leader::abandon() {
    if (thread_.joinable()) {
        thread_.detach();
    }
    let_go();
}

}  // namespace dibs::store::remote
