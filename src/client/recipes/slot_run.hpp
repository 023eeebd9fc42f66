// SPDX-License-Identifier: Apache-2.0
#pragma once
// Once per slot for the command: claim a slot, say how its run ended, forget old ones. Blocking.

#include "recipes/once/slot_record.hpp"

#include <dibs/client.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
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
    bool again = false;    ///< whatever has become of it
    bool in_turn = false;  ///< not while another slot of the job is run that way
    std::chrono::milliseconds keep{};
    std::optional<std::int64_t> begin_ms;  ///< since 1970, of a planned slot
    std::string command;                   ///< as told to others
};

enum class slot_verdict : std::uint8_t {
    granted,
    done,
    failed,
    waiting,
    running,
    overlaps,
    blocked,
    forgotten,
    trouble
};

struct slot_claim {
    slot_verdict verdict = slot_verdict::trouble;
    std::optional<lease> granted;
    std::optional<lease> turn;  ///< granted, with in_turn: to be given back after that
    recipes::slot_record mine;  ///< granted: for finish_slot
    std::optional<recipes::slot_record> found;  ///< what was kept before
    std::vector<holder> holders;
    std::string blocked_key;  ///< blocked: the slot's, or the job's
    std::string blocked_reason;
    std::chrono::microseconds retry_after{};  ///< waiting, blocked
    std::error_code error;
    std::string message;
};

[[nodiscard]] slot_claim claim_slot(client& through,
                                    const slot_terms& terms,
                                    std::stop_token stop) noexcept;

enum class run_end : std::uint8_t { succeeded, failed, interrupted };

/// Gives the lease back and leaves the outcome. not_held without an error: it was lost, and the run counts
/// as failed, as far as the store could be told.
[[nodiscard]] release_outcome finish_slot(client& through,
                                          lease& held,
                                          const slot_terms& terms,
                                          const recipes::slot_record& mine,
                                          run_end how,
                                          int status,
                                          std::error_code& error) noexcept;

/// A granted slot was not run after all: gives it back as it was found. Best effort.
void withdraw_slot(client& through, slot_claim& claim, const slot_terms& terms) noexcept;

/// Forgets slots of the job that lie more than `terms.keep` before this planned one (recipes/once/slot_memory.hpp), as far as
/// that is quickly done. `name_at` names the slot that a moment lies in.
void forget_slots(client& through,
                  const slot_terms& terms,
                  const std::function<std::string(std::int64_t)>& name_at) noexcept;

/// How long a failed run must not be followed by another (recipes/once/slot_record.hpp).
[[nodiscard]] std::chrono::milliseconds back_off_left(const recipes::slot_record& record,
                                                      std::chrono::milliseconds age);

/// How long the next run has to wait after so many failures.
[[nodiscard]] std::chrono::microseconds back_off_after(const slot_terms& terms, unsigned failures);

/// Notes, as far as that is quickly done, that this host found nothing to do.
void note_skip(client& through,
               const slot_terms& terms,
               std::chrono::milliseconds patience) noexcept;

}  // namespace dibs::detail
