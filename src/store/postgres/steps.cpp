// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/steps.hpp"

#include "core/duration.hpp"
#include "core/key.hpp"
#include "core/verb_fault.hpp"
#include "store/postgres/advisory/session.hpp"
#include "store/postgres/arguments.hpp"
#include "store/postgres/columns.hpp"
#include "store/remote/party_text.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace dibs::store::postgres {

namespace {

using core::effect;
using core::loss;
using core::microseconds;
using core::verdict;

std::int64_t number_of(std::string_view text) noexcept {
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

core::store_now now_of(std::int64_t micros) noexcept {
    return {core::store_instant{microseconds{micros}}, core::wall_instant{microseconds{micros}}};
}

microseconds left(std::int64_t until, std::int64_t now) noexcept {
    return until == number_max ? core::result_to_keep::forever
                               : microseconds{std::max<std::int64_t>(until - now, 0)};
}

/// The result in the six columns from `first` on.
core::boxed<core::kept_result> result_in(const row& told, int first, std::int64_t now) {
    if (told.null(first)) {
        return std::nullopt;
    }
    core::kept_result kept;
    kept.value = told.bytes(first);
    kept.fence = static_cast<core::fence_number>(told.number(first + 1));
    kept.is_mark = told.truth(first + 2);
    kept.age = microseconds{std::max<std::int64_t>(now - told.number(first + 3), 0)};
    kept.fresh_left = left(told.number(first + 4), now);
    kept.keep_left = left(told.number(first + 5), now);
    kept.fresh = now < told.number(first + 4);
    return kept;
}

/// The same in an answer to a verb: what an acquire has seen is not fresh to it.
core::boxed<core::kept_result> result_in(const row& told,
                                         int first,
                                         std::int64_t now,
                                         const core::verb& what) {
    auto kept = result_in(told, first, now);
    if (const auto* asked = std::get_if<core::acquire>(&what); asked != nullptr && kept) {
        kept->fresh = kept->fresh && kept->fence > asked->seen;
    }
    return kept;
}

std::vector<core::holder_info> holders_in(const std::vector<std::string_view>& texts,
                                          std::int64_t now,
                                          const caller& self) {
    constexpr std::size_t parts = 8;
    std::vector<core::holder_info> all;
    for (std::size_t at = 0; at + parts <= texts.size(); at += parts) {
        core::holder_info one;
        one.fences.first = static_cast<core::fence_number>(number_of(texts[at]));
        one.fences.last = static_cast<core::fence_number>(number_of(texts[at + 1]));
        one.weight = static_cast<std::uint32_t>(number_of(texts[at + 2]));
        one.attached = texts[at + 3].starts_with('t') ? core::attachment::attached
                                                      : core::attachment::detached;
        one.held_for = microseconds{std::max<std::int64_t>(now - number_of(texts[at + 4]), 0)};
        one.remaining = microseconds{std::max<std::int64_t>(number_of(texts[at + 5]) - now, 0)};
        one.self = texts[at + 6].starts_with(self.process);
        one.who = remote::party_of(texts[at + 7]);
        all.push_back(std::move(one));
    }
    return all;
}

core::answer failure(const row& told, const core::verb& what) {
    switch (told.number(o_code)) {
        case 1: {
            const auto* asked = std::get_if<core::acquire>(&what);
            return core::capacity_differs(static_cast<std::uint32_t>(told.number(o_first)),
                                          asked == nullptr ? 0 : asked->part.capacity);
        }
        case 2:
            return core::refused(errc::invalid_argument, "the fence would not fit in 63 bits");
        case 3:
            return core::refused(errc::invalid_argument,
                                 "the holder id to adopt the lease holds the key");
        case 4:
            return core::refused(errc::unsupported,
                                 "the lease is an advisory lock of another session, which alone "
                                 "can renew it or give it back");
        default:
            return core::in_doubt("the server's answer is not one of our function");
    }
}

verdict verdict_of(std::int64_t said) noexcept {
    constexpr std::array all{verdict::failed,
                             verdict::granted,
                             verdict::held,
                             verdict::done,
                             verdict::blocked,
                             verdict::not_ready,
                             verdict::too_late,
                             verdict::renewed,
                             verdict::released,
                             verdict::finished,
                             verdict::not_held,
                             verdict::revoked,
                             verdict::fence_moved,
                             verdict::block_set};
    return said > 0 && static_cast<std::size_t>(said) < all.size()
               ? all[static_cast<std::size_t>(said)]
               : verdict::failed;
}

loss loss_of(std::int64_t said) noexcept {
    switch (said) {
        case 1:
            return loss::expired;
        case 2:
            return loss::taken;
        case 3:
            return loss::revoked;
        default:
            return loss::gone;
    }
}

core::answer answer_in(const row& told, const core::verb& what, const caller& self) {
    core::answer given;
    const auto now = told.number(o_now);
    given.what = verdict_of(told.number(o_what));
    if (given.what == verdict::failed) {
        given = failure(told, what);
        given.result = result_in(told, o_value, now, what);
        return given;
    }
    given.took = effect::yes;
    given.now = now_of(now);
    given.fences = {static_cast<core::fence_number>(told.number(o_first)),
                    static_cast<core::fence_number>(told.number(o_last))};
    given.expires = core::store_instant{microseconds{told.number(o_expires)}};
    given.retry_after = told.number(o_retry) == number_max ? core::result_to_keep::forever
                                                           : microseconds{told.number(o_retry)};
    given.ticket = static_cast<std::uint64_t>(told.number(o_ticket));
    given.position = static_cast<std::uint32_t>(told.number(o_position));
    given.result = result_in(told, o_value, now, what);
    if (!told.null(o_holders)) {
        given.holders = holders_in(told.texts(o_holders), now, self);
    }
    if (!told.null(o_reason)) {
        given.reason = told.bytes(o_reason);
    }
    given.waiters = told.truth(o_waiters);
    if (given.what == verdict::held) {
        given.watchers = static_cast<std::uint32_t>(told.number(o_code));
    }
    if (given.what == verdict::not_ready) {
        given.detail = self.where +
                       ": the server was promoted, or is used in this way for the first time; "
                       "nothing is granted until every lease of before is over, in " +
                       core::show_duration(given.retry_after);
    }
    given.lost = given.what == verdict::not_held ? loss_of(told.number(o_code)) : loss::none;
    return given;
}

/// The answers that one row gives to many simple entries. False: it is none of ours.
bool read_many(const row& told,
               const std::vector<std::int64_t>& many,
               const std::vector<core::entry>& entries,
               const std::vector<std::uint32_t>& which,
               answers& replies) {
    const auto now = told.number(o_now);
    const auto what = verdict_of(told.number(o_what));
    const auto firsts = told.numbers(o_firsts);
    const auto lasts = told.numbers(o_lasts);
    const bool fenced = what != verdict::released;
    if (fenced && (firsts.size() != many.size() || lasts.size() != many.size())) {
        return false;
    }
    for (std::size_t at = 0; at < many.size(); ++at) {
        const auto entry = static_cast<std::size_t>(many[at]) - 1;
        if (entry >= which.size()) {
            return false;
        }
        const auto& asked = entries[which[entry]].what;
        replies[which[entry]] = fenced ? short_answer(asked, now, firsts[at], lasts[at])
                                       : short_answer(asked, now, 0, 0);
    }
    return true;
}

}  // namespace

core::answer short_answer(const core::verb& what,
                          std::int64_t now,
                          std::int64_t first,
                          std::int64_t last) {
    core::answer given;
    given.took = effect::yes;
    given.now = now_of(now);
    const auto* taken = std::get_if<core::acquire>(&what);
    const auto* prolonged = std::get_if<core::renew>(&what);
    if (taken == nullptr && prolonged == nullptr) {
        given.what = verdict::released;
        return given;
    }
    given.what = taken != nullptr ? verdict::granted : verdict::renewed;
    given.fences = {static_cast<core::fence_number>(first), static_cast<core::fence_number>(last)};
    const auto ttl = taken != nullptr ? taken->ttl : prolonged->ttl;
    given.expires = core::store_instant{microseconds{now + clamped(ttl)}};
    return given;
}

std::optional<core::answer> fault_of(const core::verb& what) {
    if (auto fault = core::fault_of_key(core::key_of(what)); !fault.empty()) {
        return core::refused(errc::invalid_key, std::move(fault));
    }
    if (const auto fault = core::fault_of(what); !fault.empty()) {
        return core::refused(errc::invalid_argument, std::string{fault});
    }
    return std::nullopt;
}

std::vector<std::uint32_t> order_of(const std::vector<core::entry>& entries,
                                    std::vector<std::uint32_t> which) {
    std::sort(which.begin(), which.end(), [&](std::uint32_t left, std::uint32_t right) {
        const auto order =
            core::key_of(entries[left].what).compare(core::key_of(entries[right].what));
        if (order != 0) {
            return order < 0;
        }
        const bool later_left = is_acquire(entries[left]);
        const bool later_right = is_acquire(entries[right]);
        return later_left != later_right ? later_right : left < right;
    });
    return which;
}

parameters parameters_of(const std::vector<core::entry>& entries,
                         const std::vector<std::uint32_t>& which,
                         const caller& self,
                         bool alone,
                         core::microseconds patience,
                         const std::vector<stand>& stands) {
    auto all = described(entries, which);
    // Those of one key are neighbours.
    for (std::size_t at = 0; at < which.size(); ++at) {
        const auto& what = entries[which[at]].what;
        const auto same_key = [&](std::size_t other) {
            return core::key_of(entries[which[other]].what) == core::key_of(what);
        };
        if (is_simple(what) && (at == 0 || !same_key(at - 1)) &&
            (at + 1 == which.size() || !same_key(at + 1))) {
            all[at].flags |= flag_simple;
        }
    }
    parameters made;
    numbers(made, all, [](const asked& one) { return one.verb; });
    keys(made, entries, which, self);
    holders(made, all, [](const asked& one) { return one.holder; });
    numbers(made, all, [](const asked& one) { return one.time; });
    numbers(made, all, [](const asked& one) { return one.fences; });
    numbers(made, all, [](const asked& one) { return one.floor; });
    if (self.own) {
        made.array(parameters::kind::number, stands.size());
        for (const auto& one : stands) {
            made.element(one.lock);
        }
        made.array(parameters::kind::number, stands.size());
        for (const auto& one : stands) {
            made.element(std::int64_t{one.has});
        }
    } else {
        numbers(made, all, [](const asked& one) { return one.weight; });
        numbers(made, all, [](const asked& one) { return one.capacity; });
    }
    numbers(made, all, [](const asked& one) { return one.flags; });
    numbers(made, all, [](const asked& one) { return one.seen; });
    not_after(made, all);
    numbers(made, all, [](const asked& one) { return one.queue; });
    made.array(parameters::kind::bytes, all.size());
    for (const auto& one : all) {
        if (one.result == nullptr) {
            made.null_element();
        } else {
            made.element(std::string_view{one.result->value});
        }
    }
    numbers(made, all, [](const asked& one) {
        return one.result == nullptr ? 0 : lasting(one.result->fresh);
    });
    numbers(made, all, [](const asked& one) {
        return one.result == nullptr ? 0 : lasting(one.result->keep);
    });
    holders(made, all, [](const asked& one) { return one.adopter; });
    made.array(parameters::kind::bytes, all.size());
    for (const auto& one : all) {
        if (one.reason == nullptr) {
            made.null_element();
        } else {
            made.element(std::string_view{*one.reason});
        }
    }
    made.text(self.process);
    made.text(self.who);
    made.truth(alone);
    made.number(std::max<std::int64_t>(
        std::chrono::duration_cast<core::milliseconds>(patience).count(), 1));
    if (self.own) {
        made.text(self.own->name());
    } else {
        made.number(self.longest_ttl.count());
    }
    return made;
}

bool read_answers(const PGresult& told,
                  const std::vector<core::entry>& entries,
                  const std::vector<std::uint32_t>& which,
                  const caller& self,
                  answers& replies,
                  std::vector<std::uint32_t>& locked) {
    if (::PQnfields(&told) != column_count) {
        return false;
    }
    std::size_t answered = 0;
    for (int at = 0; at < ::PQntuples(&told); ++at) {
        const row one{told, at};
        if (!one.null(o_entries)) {
            const auto many = one.numbers(o_entries);
            if (!read_many(one, many, entries, which, replies)) {
                return false;
            }
            answered += many.size();
            continue;
        }
        const auto entry = static_cast<std::size_t>(one.number(o_entry)) - 1;
        if (entry >= which.size()) {
            return false;
        }
        const auto said = one.number(o_what);
        if (said == said_waited_for) {
            replies[which[entry]].waiters = true;
            continue;
        }
        if (said == said_not_held) {
            auto& given = replies[which[entry]];
            given.what = verdict::not_held;
            given.lost = loss::gone;
            continue;
        }
        ++answered;
        if (said == said_locked) {
            locked.push_back(which[entry]);
        } else {
            replies[which[entry]] = answer_in(one, entries[which[entry]].what, self);
        }
    }
    return answered == which.size();
}

parameters listing_parameters(const std::string& prefix,
                              const std::string& after,
                              std::size_t limit,
                              const caller& self) {
    parameters made;
    made.text(self.prefix + prefix);
    // Whoever begins has no key; the empty prefix has none before it either.
    made.text(after.empty() ? std::string{} : self.prefix + after);
    made.number(static_cast<std::int64_t>(std::min<std::size_t>(limit, 1'000'000)));
    return made;
}

bool read_page(const PGresult& told, const caller& self, core::page& into) {
    if (::PQnfields(&told) != list_column_count) {
        return false;
    }
    for (int at = 0; at < ::PQntuples(&told); ++at) {
        const row one{told, at};
        if (one.null(l_key)) {
            into.more = true;
            continue;
        }
        const auto key = one.bytes(l_key);
        if (!key.starts_with(self.prefix)) {
            return false;
        }
        const auto now = one.number(l_now);
        core::record_info record;
        record.key = key.substr(self.prefix.size());
        record.fence = static_cast<core::fence_number>(one.number(l_fence));
        record.part.capacity = static_cast<std::uint32_t>(one.number(l_capacity));
        record.holders = holders_in(one.texts(l_holders), now, self);
        record.waiters = static_cast<std::uint32_t>(one.number(l_waiters));
        record.queued = static_cast<std::uint32_t>(one.number(l_queued));
        const auto queue = one.texts(l_queue);
        for (std::size_t place = 0; place + 3 <= queue.size(); place += 3) {
            core::queued_info waiting;
            waiting.waiting_for =
                microseconds{std::max<std::int64_t>(now - number_of(queue[place]), 0)};
            waiting.self = queue[place + 1].starts_with(self.process);
            waiting.who = remote::party_of(queue[place + 2]);
            record.queue.push_back(std::move(waiting));
        }
        record.result = result_in(one, l_value, now);
        if (const auto until = one.number(l_blocked_until); now < until) {
            record.blocked_for = left(until, now);
            record.blocked_reason = one.bytes(l_reason);
        }
        into.records.push_back(std::move(record));
    }
    return true;
}

}  // namespace dibs::store::postgres
