// SPDX-License-Identifier: Apache-2.0
#include "core/lease_state.hpp"

#include <utility>

namespace dibs::core {

lease_state::lease_state(std::string key,
                         holder_id holder_now,
                         fence_number fence,
                         lease_terms agreed,
                         instant since,
                         instant deadline)
    : holder(holder_now),
      terms(agreed),
      key_(std::move(key)),
      fence_(fence),
      since_(since),
      deadline_(deadline.time_since_epoch().count()) {}

bool lease_state::held(instant now) noexcept {
    if (status_.load(std::memory_order_acquire) != status_held) {
        return false;
    }
    if (now < deadline()) {
        return true;
    }
    auto expected = status_held;
    status_.compare_exchange_strong(expected, static_cast<int>(errc::lease_expired));
    return false;
}

std::error_code lease_state::lost_reason() const noexcept {
    auto status = status_.load(std::memory_order_acquire);
    status = status == status_released ? lost_before_.load(std::memory_order_acquire) : status;
    return status > 0 ? make_error_code(static_cast<errc>(status)) : std::error_code{};
}

bool lease_state::prolong(instant now, instant deadline) noexcept {
    if (!held(now)) {
        return false;
    }
    move_deadline(deadline);
    // A reader may have found the old deadline passed meanwhile, and what it has said is final.
    return status_.load(std::memory_order_acquire) == status_held;
}

void lease_state::shorten(instant deadline_at_most) noexcept {
    if (deadline_at_most < deadline()) {
        move_deadline(deadline_at_most);
    }
}

void lease_state::move_deadline(instant to) noexcept {
    deadline_.store(to.time_since_epoch().count(), std::memory_order_release);
    if (on_deadline) {
        on_deadline(to);
    }
}

bool lease_state::lose(errc reason) noexcept {
    auto expected = status_held;
    return status_.compare_exchange_strong(expected, static_cast<int>(reason));
}

bool lease_state::end_by_release() noexcept {
    auto expected = status_held;
    return status_.compare_exchange_strong(expected, status_released);
}

}  // namespace dibs::core
