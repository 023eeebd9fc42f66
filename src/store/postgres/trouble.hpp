// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the server or the way to it said, as an error of ours with words for people. The one place
// where SQLSTATEs are read.

#include "store/remote/trouble.hpp"

#include <string_view>

namespace dibs::store::postgres {

using remote::trouble;

/// A statement of a session that is not the one it was (advisory/session.sql).
inline constexpr std::string_view another_session = "DBS02";

/// A row that somebody else has for too long; and where to look for who it is: that may be a step of ours
/// whose commit waits, of which nobody hears any more.
inline constexpr std::string_view row_is_kept =
    "another session has locked the row and does not let go";
inline constexpr std::string_view who_keeps_it =
    "see pg_stat_activity on the server: a transaction that is open, or a commit that waits "
    "(SyncRep: for "
    "a synchronous standby that is gone)";

/// What to do about a statement that failed.
enum class remedy {
    none,   ///< it would fail again
    split,  ///< one of its entries is to blame: each for itself
    retry,  ///< others were in the way: the same again
};

/// The five letters and digits of a SQLSTATE, for example 42501; `where` is the store as it may be
/// shown; `told` is the server's own text.
[[nodiscard]] trouble trouble_of(std::string_view where,
                                 std::string_view state,
                                 std::string_view told);

[[nodiscard]] remedy remedy_for(std::string_view state) noexcept;

/// Of a connection that could not be made. `told` is libpq's message in its verbose form.
[[nodiscard]] trouble trouble_of_connecting(std::string_view where, std::string_view told);

}  // namespace dibs::store::postgres
