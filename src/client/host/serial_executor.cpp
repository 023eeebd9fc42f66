// SPDX-License-Identifier: Apache-2.0
#include "client/host/serial_executor.hpp"

#include <chrono>
#include <limits>
#include <utility>

namespace dibs::detail {

namespace {
constexpr std::size_t tasks_for_others_max = 256;

/// For how many tasks the room is kept once they have run.
constexpr std::size_t room_kept = 1024;

/// Whether this thread runs tasks of some executor.
thread_local bool inside_a_task = false;
}  // namespace

void serial_executor::post(core::task work) {
    lock held{mutex_};
    queue_.push_back(std::move(work));
    if (!running_) {
        begin(std::move(held));
    }
}

void serial_executor::leave(core::task work) {
    const lock held{mutex_};
    queue_.push_back(std::move(work));
}

void serial_executor::run_left() {
    lock held{mutex_};
    if (!running_ && !queue_.empty()) {
        begin(std::move(held));
    }
}

// Requires: nobody runs.
void serial_executor::begin(lock held) {
    running_ = true;
    // The task of another executor may hold what ours need: clients of one memory store wake each
    // other.
    const bool pass_on = inside_a_task && passes_on_;
    handed_over_ = pass_on;
    if (pass_on) {
        hand_over_();
    } else {
        run(std::move(held), tasks_for_others_max);
    }
}

void serial_executor::run_handed_over() {
    lock held{mutex_};
    if (std::exchange(handed_over_, false)) {
        run(std::move(held), std::numeric_limits<std::size_t>::max());
    }
}

void serial_executor::keep_everything() {
    const lock held{mutex_};
    passes_on_ = false;
}

// Requires: this thread is the one that runs.
void serial_executor::run(lock held, std::size_t at_most) {
    runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    const bool nested = std::exchange(inside_a_task, true);
    for (std::size_t ran = 0; !queue_.empty();) {
        if (ran >= at_most && passes_on_) {
            handed_over_ = true;
            break;
        }
        queue_.swap(batch_);
        held.unlock();
        for (auto& work : batch_) {
            work();
            work = nullptr;  // while no lock is held: what goes with it may post
        }
        ran += batch_.size();
        batch_.clear();
        if (batch_.capacity() > room_kept) {
            batch_ = std::vector<core::task>{};
        }
        held.lock();
    }
    inside_a_task = nested;
    runner_.store({}, std::memory_order_relaxed);
    running_ = handed_over_;
    if (handed_over_) {
        hand_over_();
    }
}

void serial_executor::await_quiet() noexcept {
    for (;;) {
        {
            // Whoever leaves touches nothing of ours after this lock.
            const lock held{mutex_};
            if (!running_) {
                return;
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
}

}  // namespace dibs::detail
