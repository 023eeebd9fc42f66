// SPDX-License-Identifier: Apache-2.0
#include "client/recipes/fetch_thread.hpp"

#include <utility>

namespace dibs::detail {

fetch_thread::~fetch_thread() {
    stop();
}

void fetch_thread::begin(core::unique_function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
        return;
    }
    work_ = std::move(work);
    if (!thread_.joinable()) {
        thread_ = std::thread([this] { loop(); });
    }
    bell_.notify_one();
}

void fetch_thread::stop() noexcept {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    bell_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void fetch_thread::loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
        bell_.wait(lock, [this] { return stopping_ || work_; });
        if (!work_) {
            return;
        }
        auto work = std::move(work_);
        work_ = {};
        lock.unlock();
        work();
        work = {};
        lock.lock();
    }
}

}  // namespace dibs::detail
