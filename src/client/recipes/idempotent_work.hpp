// SPDX-License-Identifier: Apache-2.0
#pragma once
// Idempotent work in its two halves, for the client and the command: ask whether it is to be done, say how it ended.
// Blocking.

#include "recipes/idempotent.hpp"

#include <dibs/client.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
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

/// `fingerprint`: what is asked for, as it came.
[[nodiscard]] work_terms work_terms_of(std::string_view key,
                                       std::string_view fingerprint,
                                       const idempotent_options& options);

/// What is kept in the place of an answer that is too long.
[[nodiscard]] std::string answer_too_long(std::size_t bytes);

/// On the executor of the client.
[[nodiscard]] std::unique_ptr<recipes::idempotent> recipe_of_work(client_core& core);
[[nodiscard]] recipes::idempotent_terms recipe_terms_of(const work_terms& asked);

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
