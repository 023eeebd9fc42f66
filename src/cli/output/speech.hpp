// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the command says to people: one line at a time, on stderr, since stdout belongs to the
// child.

#include <dibs/info.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::cli {

/// Writes `dibs: TEXT` as one line in one write, so that lines of several processes do not mix.
void say(std::string_view text) noexcept;

/// As say, but only for somebody who sits there: in a crontab nothing is told that is no trouble.
void say_at_terminal(std::string_view text) noexcept;

/// Writes to stdout, all of it: a listing that nobody got is no success. Errors: failure,
/// reader_gone.
void deliver(std::string_view text);

/// `2026-11-29 03:00:00 CET`
[[nodiscard]] std::string local_time(std::chrono::system_clock::time_point when);

/// How many columns of a terminal a text takes: its characters, not its bytes.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;
/// With blanks behind it, if it takes less than so many columns.
[[nodiscard]] std::string padded(std::string text, std::size_t columns);

/// Whether another program made the lock, by a convention that dibs knows: it has no fence, and the
/// store knows nothing of it but when it expires.
[[nodiscard]] bool is_stranger(const dibs::holder& who) noexcept;

/// Not a stranger's lock without a ttl, nor a lock that a session of the store has.
[[nodiscard]] bool ends_by_time(const dibs::holder& who) noexcept;

/// How long a grant lasts if nobody renews it: `18 s`, or `for ever` for a stranger's lock without a
/// ttl.
[[nodiscard]] std::string describe_time_left(const dibs::holder& who);

/// `host (pid 17, user app) since 2026-11-29 03:00:00 CET (12 s), 18 s left, fence 1764…: ./report`,
/// with `until its session ends` where no time ends it; or `another program, 18 s left`
[[nodiscard]] std::string describe_holder(const dibs::holder& who);

/// Of a key that is shared: the first of them, and how many more. Requires: there is one.
[[nodiscard]] std::string describe_holders(const std::vector<dibs::holder>& all);

/// `2 of 5 permits`, `reader`; empty for an exclusive lease.
[[nodiscard]] std::string describe_share(std::uint32_t weight, std::uint32_t capacity);

/// Of a key that is on hold: `until 2026-11-29 05:00:00 CET (1 h 59 min left): database migration (by ada@db1)`
[[nodiscard]] std::string describe_hold(std::string_view reason, std::chrono::microseconds left);

/// Of a key that nobody holds, to somebody who did not stand in its queue long enough.
inline constexpr std::string_view first_the_queue = "goes to those in its queue first";

/// Trouble of a store that is waited out: what is over by then was a restart, or a moment.
inline constexpr auto trouble_worth_telling = std::chrono::seconds{5};

/// A key or name as it is typed in a shell: in quotes where it takes them.
[[nodiscard]] std::string shell_word(std::string_view name);

/// What an operator does about it.
[[nodiscard]] std::string how_to_lift(std::string_view key);

/// A key in quotes, fit for a terminal.
[[nodiscard]] std::string quoted_key(std::string_view key);

/// That what was to be run under the key was not.
[[nodiscard]] std::string not_started(std::string_view key, std::string_view why);

}  // namespace dibs::cli
