// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the store's threads have to tell its callers, on its way to their executor. Kept here until
// it is told, so that `close` can tell the rest itself and nothing is told after it.

#include "core/environment.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace dibs::store {

class mailbox : public std::enable_shared_from_this<mailbox> {
  public:
    explicit mailbox(core::executor& exec) : exec_(exec) {}

    /// Any thread. The executor may run them at once, on this thread: hold nothing. Not when the
    /// sender is `busy`: then others may, or a later call that is not.
    void send(std::vector<core::task> letters, bool busy = false) {
        bool call = false;
        {
            const std::lock_guard guard{lock_};
            if (closed_) {
                return;
            }
            std::move(letters.begin(), letters.end(), std::back_inserter(letters_));
            call = !letters.empty() && !std::exchange(called_, true);
        }
        if (call) {
            auto deliver_all = [self = shared_from_this()] { self->deliver(); };
            busy ? exec_.leave(std::move(deliver_all)) : exec_.post(std::move(deliver_all));
        } else if (!busy) {
            exec_.run_left();
        }
    }
    void send(core::task letter) {
        std::vector<core::task> one;
        one.push_back(std::move(letter));
        send(std::move(one));
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

}  // namespace dibs::store
