// SPDX-License-Identifier: Apache-2.0
#include "client/serial_executor.hpp"

#include "client/patient_lock.hpp"

#include <chrono>
#include <limits>
#include <utility>

namespace dibs::detail {

namespace {
constexpr std::size_t tasks_for_others_max = 256;

/// Whether this thread runs tasks of some executor.
thread_local bool inside_a_task = false;
}  // namespace

void serial_executor::post(core::task work) {
    auto held = patient_lock(mutex_);
    queue_.push_back(std::move(work));
    if (!running_) {
        begin(std::move(held));
    }
}

void serial_executor::leave(core::task work) {
    const auto held = patient_lock(mutex_);
    queue_.push_back(std::move(work));
}

void serial_executor::run_left() {
    auto held = patient_lock(mutex_);
    if (!running_ && !queue_.empty()) {
        begin(std::move(held));
    }
}

// Requires: nobody runs.
void serial_executor::begin(std::unique_lock<std::mutex> held) {
    running_ = true;
    // The task of another executor may hold what ours need: clients of one memory store wake each
    // other.
    const bool pass_on = inside_a_task && passes_on_;
    handed_over_ = pass_on;
    if (pass_on) {
        hand_over_();
    } else {
        held.unlock();
        run(tasks_for_others_max);
    }
}

void serial_executor::run_handed_over() {
    {
        const auto lock = patient_lock(mutex_);
        if (!std::exchange(handed_over_, false)) {
            return;
        }
    }
    run(std::numeric_limits<std::size_t>::max());
}

void serial_executor::keep_everything() {
    const auto lock = patient_lock(mutex_);
    passes_on_ = false;
}

void serial_executor::run(std::size_t at_most) {
    runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    const bool nested = std::exchange(inside_a_task, true);
    std::vector<core::task> batch;
    std::size_t ran = 0;
    for (;;) {
        {
            const auto lock = patient_lock(mutex_);
            const bool pass_on = ran >= at_most && passes_on_;
            if (queue_.empty() || pass_on) {
                inside_a_task = nested;
                runner_.store({}, std::memory_order_relaxed);
                handed_over_ = !queue_.empty();
                running_ = handed_over_;
                if (handed_over_) {
                    hand_over_();
                } else if (queue_.capacity() < batch.capacity()) {
                    queue_.swap(batch);
                }
                return;
            }
            queue_.swap(batch);
        }
        for (auto& work : batch) {
            work();
            work = nullptr;  // while no lock is held: what goes with it may post
        }
        ran += batch.size();
        batch.clear();
    }
}

void serial_executor::await_quiet() noexcept {
    for (;;) {
        {
            // Whoever leaves touches nothing of ours after this lock.
            const auto lock = patient_lock(mutex_);
            if (!running_) {
                return;
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
}

}  // namespace dibs::detail
