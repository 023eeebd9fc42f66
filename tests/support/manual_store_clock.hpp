// SPDX-License-Identifier: Apache-2.0
#pragma once
// A store's two clocks, moved by the test alone. Thread safety: any thread.

#include "core/time.hpp"

#include <functional>
#include <mutex>

namespace dibs::testing {

class manual_store_clock {
  public:
    [[nodiscard]] core::store_now now() const {
        const std::lock_guard guard{mutex_};
        return now_;
    }

    /// Time passes on both clocks.
    void advance(core::microseconds by) {
        const std::lock_guard guard{mutex_};
        now_.lease += by;
        now_.wall += by;
    }

    /// Somebody sets the calendar clock; the one that decides expiry does not notice.
    void step_wall(core::microseconds by) {
        const std::lock_guard guard{mutex_};
        now_.wall += by;
    }

    /// As stores take it. The clock must outlive the store.
    [[nodiscard]] std::function<core::store_now()> reader() const {
        return [this] { return now(); };
    }

  private:
    mutable std::mutex mutex_;
    // Any moments do; the second one is in 2027, so that fences look as they do in the field.
    core::store_now now_{core::store_instant{std::chrono::hours{5}},
                         core::wall_instant{std::chrono::seconds{1'800'000'000}}};
};

}  // namespace dibs::testing
