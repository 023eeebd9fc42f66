// SPDX-License-Identifier: Apache-2.0
#include "client/serial_executor.hpp"

#include <limits>
#include <utility>

namespace dibs::detail {

namespace {
constexpr std::size_t tasks_for_others_max = 256;
}

void serial_executor::post(core::task work) {
    {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(work));
        if (running_) {
            return;
        }
        running_ = true;
    }
    run(tasks_for_others_max);
}

void serial_executor::run_handed_over() {
    {
        const std::lock_guard lock(mutex_);
        if (!std::exchange(handed_over_, false)) {
            return;
        }
    }
    run(std::numeric_limits<std::size_t>::max());
}

void serial_executor::run(std::size_t at_most) {
    std::vector<core::task> batch;
    std::size_t ran = 0;
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            batch.clear();
            if (queue_.empty()) {
                running_ = false;
                if (queue_.capacity() < batch.capacity()) {
                    queue_.swap(batch);
                }
                return;
            }
            if (ran >= at_most) {
                handed_over_ = true;
                break;
            }
            queue_.swap(batch);
        }
        for (auto& work : batch) {
            work();
        }
        ran += batch.size();
    }
    hand_over_();
}

}  // namespace dibs::detail
