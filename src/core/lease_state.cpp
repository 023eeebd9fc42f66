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

void lease_state::note_renewal_trouble(std::string text) {
    renewal_trouble_ = std::make_unique<std::string>(std::move(text));
}

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

lease_state::~lease_state() {
    delete lost_.load();
}

// Whoever comes second, this or the request, sees what the first has done: both are sequentially
// consistent.
std::stop_token lease_state::lost() const {
    auto* source = lost_.load();
    if (source == nullptr) {
        auto made = std::make_unique<std::stop_source>();
        if (lost_.compare_exchange_strong(source, made.get())) {
            source = made.release();
        }
        if (lost_requested_) {
            source->request_stop();
        }
    }
    return source->get_token();
}

void lease_state::request_lost() noexcept {
    lost_requested_ = true;
    if (auto* const source = lost_.load()) {
        source->request_stop();
    }
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
