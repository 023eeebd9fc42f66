// SPDX-License-Identifier: Apache-2.0
#include "client/host/notifier_thread.hpp"

#include <utility>

namespace dibs::detail {

notifier_thread::notifier_thread() : box_(std::make_shared<mailbox>()) {}

notifier_thread::~notifier_thread() {
    stop();
}

void notifier_thread::notify(core::task work) {
    const std::lock_guard lock(box_->mutex);
    if (box_->stopping) {
        return;
    }
    box_->queue.push_back(std::move(work));
    if (!thread_.joinable()) {
        // With the caller's signals: a callback may start programs, which would inherit the mask.
        thread_ = std::thread([box = box_] { loop(box); });
    }
    box_->filled.notify_one();
}

void notifier_thread::stop() noexcept {
    {
        const std::lock_guard lock(box_->mutex);
        box_->stopping = true;
        box_->filled.notify_one();
    }
    if (!thread_.joinable()) {
        return;
    }
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();
    } else {
        thread_.join();
    }
}

void notifier_thread::loop(const std::shared_ptr<mailbox>& box) {
    std::unique_lock lock(box->mutex);
    for (;;) {
        box->filled.wait(lock, [&] { return box->stopping || !box->queue.empty(); });
        if (box->queue.empty()) {
            return;
        }
        auto work = std::move(box->queue.front());
        box->queue.pop_front();
        lock.unlock();
        work();
        work = nullptr;  // what goes with it may notify, and takes the lock then
        lock.lock();
    }
}

}  // namespace dibs::detail
