// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is kept under an idempotency key: the value of its mark, while the work is done, and of its result. A line of JSON
// for people and for us, then the bytes of the answer.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::recipes {

enum class idempotent_state : std::uint8_t {
    begun,   ///< somebody is at it, or was: without a live holder nobody knows how far they came
    done,    ///< `answer` is what the work gave
    failed,  ///< the work ended in a failure that counts as its answer
};

struct idempotent_record {
    idempotent_state state = idempotent_state::begun;
    std::string fingerprint;  ///< of what was asked for
    unsigned attempt = 1;     ///< 2 and more after crashes
    bool at_most_once = false;
    int status = 0;  ///< of a command
    std::string host;
    std::int64_t pid = 0;
    std::int64_t written_ms = 0;  ///< since 1970, by the clock of that host: for people
    std::string answer;
};

[[nodiscard]] std::string to_text(const idempotent_record& record);

/// Empty: not of this kind, or written by a newer release (`newer`).
[[nodiscard]] std::optional<idempotent_record> idempotent_record_of(std::string_view text,
                                                                    bool& newer);

/// The text of a result as it may be shown: of an idempotency key, its first line alone.
[[nodiscard]] std::string without_answer(std::string text);

[[nodiscard]] std::string_view name_of(idempotent_state state) noexcept;

}  // namespace dibs::recipes
