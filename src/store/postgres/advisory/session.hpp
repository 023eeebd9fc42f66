// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one session that has the advisory locks of all leases of a client, and what is known here of
// them. PostgreSQL lets a session take its own lock again, so whether a name is free within this
// process is decided here; whether it is free elsewhere, by the server (session.sql).
//
// A session begins after the one before it is known to have ended, and with none of its leases.
//
// Thread safety: none; whoever leads the connections.

#include "core/environment.hpp"
#include "core/verbs.hpp"
#include "store/postgres/steps.hpp"
#include "store/postgres/trouble.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dibs::store::postgres {

struct address;

/// The number of a name's lock: the first 8 bytes, big-endian and signed, of the SHA-256 of the
/// space, a zero byte and the name.
[[nodiscard]] std::int64_t lock_number(std::string_view space, std::string_view name);

class session {
  public:
    session(core::entropy& random, const address& where, std::string process);

    /// Draws the name of a new one, and asks the server to begin it. `lent`: by a pooler.
    [[nodiscard]] std::string beginning(const std::string& quoted_schema, bool lent);
    /// The answer to that.
    void begun(bool so, std::size_t capacity);
    /// How many locks it takes at most, so that one client alone does not fill the server's table.
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    /// Its connection is closed, or closes now.
    void ended() noexcept;
    /// Whether leases have ended otherwise than by their holder, since this was asked last.
    [[nodiscard]] bool take_losses() noexcept { return std::exchange(losses_, false); }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// Who holds a key here.
    [[nodiscard]] const core::holder_id* holder_of(const std::string& key) const noexcept;
    [[nodiscard]] bool holds_any() const noexcept { return !keys_.empty(); }

    /// A step with these failed, and was undone, but for the locks: one that was tried for may be
    /// taken, one of a lease may be given back already. That is settled before any other step.
    void doubt(const std::vector<stand>& these);
    struct doubtful_locks {
        std::vector<std::int64_t> tried;
        std::vector<std::int64_t> own;
    };
    [[nodiscard]] bool in_doubt() const noexcept {
        return !doubts_.tried.empty() || !doubts_.own.empty();
    }
    [[nodiscard]] const doubtful_locks& doubts() const noexcept { return doubts_; }
    /// The first were given back, as far as they were taken; whether all of the others are held.
    void settled(bool all_held) noexcept;

    /// The server's view of it is another one than ours: it is to be given up.
    void distrust() noexcept { trusted_ = false; }
    [[nodiscard]] bool trusted() const noexcept { return trusted_; }

    /// Which keys' numbers are to be asked for before these entries can be sent.
    [[nodiscard]] std::vector<std::string> unnumbered(
        const std::vector<core::entry>& entries,
        const std::vector<std::uint32_t>& which) const;
    void learn(const std::string& key, std::int64_t number);

    /// What it has of each entry's lock. Leaves in `which` no two entries with the same lock; the
    /// later ones go to `later`.
    [[nodiscard]] std::vector<stand> stands(const std::vector<core::entry>& entries,
                                            std::vector<std::uint32_t>& which,
                                            std::vector<std::uint32_t>& later) const;
    /// Takes out of `which` the acquires for which it has no room.
    [[nodiscard]] std::vector<std::uint32_t> beyond_capacity(
        const std::vector<core::entry>& entries,
        std::vector<std::uint32_t>& which) const;
    /// The answer to an entry that was sent with that stand.
    void heard(const core::verb& what, const stand& before, const core::answer& given);

  private:
    struct lease {
        std::int64_t lock = 0;
        core::holder_id holder;
    };
    [[nodiscard]] std::optional<std::int64_t> number_of(const std::string& key) const;

    core::entropy& random_;
    const std::string process_;
    const std::string prefix_;
    const std::string space_;
    const bool server_numbers_;

    std::string name_;
    std::size_t capacity_ = 0;
    std::vector<std::string> formers_;  ///< which may not have ended yet
    doubtful_locks doubts_;
    bool trusted_ = true;
    bool losses_ = false;
    std::unordered_map<std::string, lease> keys_;
    std::unordered_map<std::int64_t, std::string> locks_;  ///< whose they are
    std::unordered_map<std::string, std::int64_t> numbers_;
};

/// What an advisory lock cannot do is refused before it is sent.
[[nodiscard]] std::optional<core::answer> unsupported_in_session(const core::verb& what);

}  // namespace dibs::store::postgres
