// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/advisory/session.hpp"

#include "core/sha256.hpp"
#include "store/postgres/address.hpp"
#include "store/remote/remote_store.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <charconv>
#include <unordered_set>
#include <utility>

namespace dibs::store::postgres {

namespace {

/// Numbers that the server told are kept for so many keys.
constexpr std::size_t numbers_max = 10'000;

/// A quarter of the server's table of locks: when it is full, nobody on that server gets any.
constexpr const char* room_question =
    "current_setting('max_locks_per_transaction')::bigint * "
    "(current_setting('max_connections')::bigint + "
    "current_setting('max_prepared_transactions')::bigint) / 4";

const core::holder_id* holder_in(const core::verb& what) noexcept {
    if (const auto* taken = std::get_if<core::acquire>(&what)) {
        return &taken->holder;
    }
    if (const auto* prolonged = std::get_if<core::renew>(&what)) {
        return &prolonged->holder;
    }
    const auto* ended = std::get_if<core::release>(&what);
    return ended != nullptr ? &ended->holder : nullptr;
}

}  // namespace

std::int64_t lock_number(std::string_view space, std::string_view name) {
    std::string whole{space};
    whole += '\0';
    whole += name;
    const auto digits = core::sha256_of(whole);
    std::uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + 16, number, 16);
    return static_cast<std::int64_t>(number);
}

session::session(core::entropy& random, const address& where, std::string process)
    : random_(random),
      process_(std::move(process)),
      prefix_(where.prefix),
      space_(where.schema),
      server_numbers_(where.sessions == address::numbers::hashtext) {}

std::string session::beginning(const std::string& quoted_schema, bool lent) {
    name_ = process_ + ':' + remote::draw_process(random_);
    trusted_ = true;
    std::string formers;
    for (const auto& one : formers_) {
        formers += (formers.empty() ? "" : ",") + one;
    }
    return "SELECT " + quoted_schema + ".session_begin_1('" + name_ + "'::pg_catalog.text, '{" +
           formers + "}'::pg_catalog.text[], " + (lent ? "false), " : "true), ") + room_question;
}

void session::begun(bool so, std::size_t capacity) {
    capacity_ = capacity;
    if (so) {
        formers_.clear();
    } else {
        name_.clear();
    }
}

void session::ended() noexcept {
    if (!name_.empty()) {
        formers_.push_back(std::exchange(name_, {}));
    }
    losses_ = losses_ || holds_any();
    keys_.clear();
    locks_.clear();
    numbers_.clear();
    doubts_ = {};
}

const core::holder_id* session::holder_of(const std::string& key) const noexcept {
    const auto held = keys_.find(key);
    return held == keys_.end() ? nullptr : &held->second.holder;
}

std::optional<std::int64_t> session::number_of(const std::string& key) const {
    if (const auto held = keys_.find(key); held != keys_.end()) {
        return held->second.lock;
    }
    if (!server_numbers_) {
        return lock_number(space_, prefix_ + key);
    }
    const auto known = numbers_.find(key);
    return known == numbers_.end() ? std::nullopt : std::optional{known->second};
}

std::vector<std::string> session::unnumbered(const std::vector<core::entry>& entries,
                                             const std::vector<std::uint32_t>& which) const {
    std::vector<std::string> all;
    if (!server_numbers_) {
        return all;
    }
    for (const auto at : which) {
        const auto& what = entries[at].what;
        const auto& key = core::key_of(what);
        if (std::holds_alternative<core::acquire>(what) && !number_of(key)) {
            all.push_back(key);
        }
    }
    return all;
}

void session::learn(const std::string& key, std::int64_t number) {
    if (numbers_.size() >= numbers_max) {
        numbers_.clear();
    }
    numbers_.insert_or_assign(key, number);
}

std::vector<stand> session::stands(const std::vector<core::entry>& entries,
                                   std::vector<std::uint32_t>& which,
                                   std::vector<std::uint32_t>& later) const {
    std::vector<stand> all;
    std::unordered_set<std::int64_t> locks;
    std::unordered_set<std::string_view> keys;
    std::erase_if(which, [&](std::uint32_t at) {
        const auto& what = entries[at].what;
        const auto& key = core::key_of(what);
        const auto* holder = holder_in(what);
        stand one;
        const auto held = keys_.find(key);
        if (held != keys_.end()) {
            one.lock = held->second.lock;
            one.has = holder != nullptr && held->second.holder == *holder ? stand::its_own
                                                                          : stand::another;
        } else if (std::holds_alternative<core::acquire>(what)) {
            one.lock = number_of(key).value_or(0);
            one.has = locks_.contains(one.lock) ? stand::another : stand::nothing;
        }
        // Steps on a key that has no lock here need none either.
        const bool first_of_key = keys.insert(key).second;
        const bool first_of_lock = one.lock == 0 || locks.insert(one.lock).second;
        if (first_of_key && first_of_lock) {
            all.push_back(one);
            return false;
        }
        later.push_back(at);
        return true;
    });
    return all;
}

std::vector<std::uint32_t> session::beyond_capacity(const std::vector<core::entry>& entries,
                                                    std::vector<std::uint32_t>& which) const {
    std::vector<std::uint32_t> beyond;
    auto taken = keys_.size();
    std::erase_if(which, [&](std::uint32_t at) {
        const auto& what = entries[at].what;
        if (!std::holds_alternative<core::acquire>(what) || keys_.contains(core::key_of(what))) {
            return false;
        }
        if (taken < capacity_) {
            ++taken;
            return false;
        }
        beyond.push_back(at);
        return true;
    });
    return beyond;
}

void session::heard(const core::verb& what, const stand& before, const core::answer& given) {
    const auto& key = core::key_of(what);
    const auto* holder = holder_in(what);
    if (holder == nullptr) {
        return;
    }
    if (given.what == core::verdict::granted) {
        keys_.insert_or_assign(key, lease{before.lock, *holder});
        locks_.insert_or_assign(before.lock, key);
        return;
    }
    if (before.has != stand::its_own) {
        return;
    }
    if (given.what == core::verdict::renewed) {
        if (const auto* into = std::get_if<core::renew>(&what); into != nullptr && into->adopt) {
            keys_.insert_or_assign(key, lease{before.lock, into->adopt->holder});
        }
        return;
    }
    // A renewal that failed leaves the lease as it is; everything else has let go of the lock.
    if (std::holds_alternative<core::renew>(what) && given.what == core::verdict::failed) {
        return;
    }
    keys_.erase(key);
    locks_.erase(before.lock);
    losses_ = losses_ ||
              (std::holds_alternative<core::renew>(what) && given.what == core::verdict::not_held);
    const bool unknown_there =
        given.what == core::verdict::not_held && given.lost != core::loss::revoked;
    if (unknown_there) {
        distrust();
    }
}

void session::doubt(const std::vector<stand>& these) {
    for (const auto& one : these) {
        if (one.has == stand::its_own) {
            doubts_.own.push_back(one.lock);
        } else if (one.has == stand::nothing && one.lock != 0) {
            doubts_.tried.push_back(one.lock);
        }
    }
}

void session::settled(bool all_held) noexcept {
    doubts_ = {};
    if (!all_held) {
        distrust();
    }
}

std::optional<core::answer> unsupported_in_session(const core::verb& what) {
    const auto no = [](std::string_view why) {
        return core::refused(errc::unsupported, std::string{why});
    };
    constexpr std::string_view another_store = "; postgres://… has leases that can";
    if (const auto* asked = std::get_if<core::acquire>(&what)) {
        if (!asked->part.exclusive()) {
            return no("an advisory lock has one holder, and no permits or readers" +
                      std::string{another_store});
        }
        if (asked->attached == core::attachment::detached) {
            return no("an advisory lock ends with its session, and cannot outlive this process" +
                      std::string{another_store});
        }
    } else if (const auto* prolonged = std::get_if<core::renew>(&what)) {
        if (prolonged->adopt && prolonged->adopt->attached == core::attachment::detached) {
            return no(
                "an advisory lock ends with its session, and cannot be handed to another process" +
                std::string{another_store});
        }
    }
    return std::nullopt;
}

}  // namespace dibs::store::postgres
