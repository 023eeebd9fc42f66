// SPDX-License-Identifier: Apache-2.0
#pragma once
// Idempotent work in its two halves, for the client and the command: ask whether it is to be done, say how it ended.
// Blocking.

#include "recipes/idempotent_record.hpp"

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

struct work_terms {
    std::string key;
    std::string fingerprint;  ///< of what is asked for: a digest, since it is kept and shown
    acquire_options acquire;
    std::chrono::milliseconds keep{};
    bool at_most_once = false;
    std::string command;  ///< as told to others
};

enum class work_verdict : std::uint8_t {
    granted,
    answered,
    in_flight,
    blocked,
    differs,
    in_doubt,
    trouble
};

struct work_claim {
    work_verdict verdict = work_verdict::trouble;
    std::optional<lease> granted;
    recipes::idempotent_record mine;                  ///< granted: for keep_answer
    std::optional<recipes::idempotent_record> found;  ///< what is kept
    std::vector<holder> holders;
    std::string blocked_reason;
    std::chrono::microseconds retry_after{};  ///< blocked
    std::error_code error;                    ///< also of `differs` and `in_doubt`
    std::string message;                      ///< with `error`
};

/// Empty, or what is wrong with it.
[[nodiscard]] std::string fault_of_work(const work_terms& terms, const client& through);

[[nodiscard]] work_claim claim_work(client& through,
                                    const work_terms& terms,
                                    std::stop_token stop) noexcept;

/// Gives the lease back and leaves the answer, late if need be. not_held without an error: somebody else was granted the
/// key meanwhile.
[[nodiscard]] release_outcome keep_answer(client& through,
                                          lease& held,
                                          const work_terms& terms,
                                          recipes::idempotent_record mine,
                                          std::error_code& error) noexcept;

/// Gives the lease back and leaves nothing: whoever asks next does the work.
[[nodiscard]] release_outcome abandon_work(client& through,
                                           lease& held,
                                           std::error_code& error) noexcept;

}  // namespace dibs::detail
