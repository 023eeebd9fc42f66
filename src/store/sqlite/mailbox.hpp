// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the store's threads have to tell its callers, on its way to their executor. Kept here until
// it is told, so that `close` can tell the rest itself and nothing is told after it.

#include "core/environment.hpp"

#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace dibs::store::sqlite {

class mailbox : public std::enable_shared_from_this<mailbox> {
  public:
    explicit mailbox(core::executor& exec) : exec_(exec) {}

    /// Any thread.
    void send(core::task letter) {
        const std::lock_guard guard{lock_};
        if (closed_) {
            return;
        }
        letters_.push_back(std::move(letter));
        if (!std::exchange(called_, true)) {
            exec_.post([self = shared_from_this()] { self->deliver(); });
        }
    }

    /// On the executor. A letter may close the box: what is left is then told within `close`.
    void deliver() {
        std::unique_lock guard{lock_};
        called_ = false;
        while (!letters_.empty()) {
            auto letter = std::move(letters_.front());
            letters_.pop_front();
            guard.unlock();
            letter();
            guard.lock();
        }
    }

    void close() {
        {
            const std::lock_guard guard{lock_};
            closed_ = true;
        }
        deliver();
    }

  private:
    core::executor& exec_;
    std::mutex lock_;
    std::deque<core::task> letters_;
    bool called_ = false;
    bool closed_ = false;
};

}  // namespace dibs::store::sqlite
