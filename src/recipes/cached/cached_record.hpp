// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is kept of a shared value: the value itself, what its successor takes, and how the last fetch went. The value of
// the record's result: a line of JSON for people and for us, then the secret bytes, sealed or plain.
//
// Spans count from the moment at which the record was written, by the store's clock: the record's age comes with each
// answer, so no two hosts' clocks are compared.

#include "core/time.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::recipes {

enum class cached_state : std::uint8_t {
    good,      ///< the last fetch brought `value`
    fetching,  ///< a fetch has begun; without a live holder it ended without a word
    failing,   ///< the last fetch failed, and may be tried again after `pause`
    refused,   ///< the provider will not give another one: somebody has to see to it
};

struct cached_record {
    /// "For ever", of a span.
    static constexpr core::microseconds unlimited = core::microseconds::max();

    cached_state state = cached_state::good;
    std::uint64_t generation =
        0;  ///< of the value; rises with each fetch that brought one; 0: there is none
    std::uint64_t value_fence = 0;  ///< of the grant under which it was fetched
    std::string value;
    std::string successor;  ///< what the next fetch has to present; empty: nothing
    core::microseconds
        life{};  ///< for so long is the value valid, from the writing of this record on
    core::microseconds pause{};  ///< failing, refused: no fetch before that
    unsigned failures = 0;       ///< fetches that failed since the last good one
    std::string trouble;         ///< failing, refused: why, for people
    std::string host;            ///< who wrote this
    std::int64_t pid = 0;
    std::int64_t written_ms = 0;  ///< since 1970, by the clock of that host: for people

    [[nodiscard]] bool has_value() const noexcept { return generation != 0; }
};

/// Keeps secrets from those who can read the store. `bound_to` is authenticated with them: a sealed text opens under the
/// same alone. Thread safety: any thread.
class sealer {
  public:
    sealer() = default;
    sealer(const sealer&) = delete;
    sealer& operator=(const sealer&) = delete;
    virtual ~sealer() = default;

    /// Tells which key seals; not a secret.
    [[nodiscard]] virtual std::string key_name() const = 0;
    [[nodiscard]] virtual std::string seal(std::string_view plain, std::string_view bound_to) = 0;
    /// Empty: no key of that name, or it was not sealed by it for this.
    [[nodiscard]] virtual std::optional<std::string> open(std::string_view key_name,
                                                          std::string_view sealed,
                                                          std::string_view bound_to) = 0;
};

/// `seal` null: the secrets are kept as they are.
[[nodiscard]] std::string to_text(const cached_record& record, std::string_view key, sealer* seal);

enum class cached_fault : std::uint8_t { none, not_ours, newer, sealed };

/// Empty: `fault` tells why.
[[nodiscard]] std::optional<cached_record> cached_record_of(std::string_view text,
                                                            std::string_view key,
                                                            sealer* seal,
                                                            cached_fault& fault);

/// As above, without value and successor: what may be shown.
[[nodiscard]] std::optional<cached_record> cached_outline_of(std::string_view text,
                                                             cached_fault& fault);

/// The text of a result as it may be shown: of a shared value, its first line alone.
[[nodiscard]] std::string without_secrets(std::string text);

/// As it would be written `later` after it was: spans are that much shorter.
[[nodiscard]] cached_record aged(cached_record record, core::microseconds later) noexcept;

[[nodiscard]] std::string_view name_of(cached_state state) noexcept;

}  // namespace dibs::recipes
