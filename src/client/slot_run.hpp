// SPDX-License-Identifier: Apache-2.0
#pragma once
// Once per slot for the command: claim a slot, say how its run ended, read what is kept. Blocking.

#include "recipes/slot_record.hpp"

#include <dibs/client.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace dibs::detail {

struct slot_terms {
    std::string job;
    std::string slot;
    acquire_options acquire;
    unsigned retries = 0;
    std::chrono::milliseconds backoff{};
    bool at_most_once = false;
    std::chrono::milliseconds keep{};
    std::string command;  ///< as told to others
};

enum class slot_verdict : std::uint8_t {
    granted,
    done,
    failed,
    waiting,
    running,
    blocked,
    trouble
};

struct slot_claim {
    slot_verdict verdict = slot_verdict::trouble;
    std::optional<lease> granted;
    recipes::slot_record mine;                  ///< granted: for finish_slot
    std::optional<recipes::slot_record> found;  ///< what was kept before
    std::vector<holder> holders;
    std::string blocked_reason;
    std::chrono::microseconds retry_after{};
    std::error_code error;
    std::string message;
};

[[nodiscard]] slot_claim claim_slot(client& through,
                                    const slot_terms& terms,
                                    std::stop_token stop) noexcept;

/// Gives the lease back and leaves the outcome. not_held: it was lost, and nothing was left.
[[nodiscard]] release_outcome finish_slot(client& through,
                                          lease& held,
                                          const slot_terms& terms,
                                          const recipes::slot_record& mine,
                                          bool success,
                                          int status,
                                          std::error_code& error) noexcept;

/// Notes, as far as that is quickly done, that this host found nothing to do.
void note_skip(client& through,
               const slot_terms& terms,
               std::chrono::milliseconds patience) noexcept;

}  // namespace dibs::detail
