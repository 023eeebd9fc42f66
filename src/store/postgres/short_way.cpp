// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/short_way.hpp"

#include "store/postgres/arguments.hpp"
#include "store/postgres/columns.hpp"
#include "store/postgres/short_tally.hpp"
#include "store/postgres/steps.hpp"

#include <cstddef>

namespace dibs::store::postgres {

namespace {

short_step short_batch(const std::vector<core::entry>& entries,
                       const std::vector<std::uint32_t>& which,
                       const caller& self) {
    const auto all = described(entries, which);
    short_step made{statement::step_some, {}};
    numbers(made.with, all, [](const asked& one) { return one.verb; });
    keys(made.with, entries, which, self);
    holders(made.with, all, [](const asked& one) { return one.holder; });
    numbers(made.with, all, [](const asked& one) { return one.time; });
    numbers(made.with, all, [](const asked& one) { return one.fences; });
    numbers(made.with, all, [](const asked& one) { return one.floor; });
    numbers(made.with, all, [](const asked& one) { return one.flags & flag_attached; });
    not_after(made.with, all);
    made.with.text(self.process);
    made.with.text(self.who);
    return made;
}

bool read_short_batch(const PGresult& told,
                      const std::vector<core::entry>& entries,
                      const std::vector<std::uint32_t>& which,
                      core::answers& replies,
                      std::vector<std::uint32_t>& passed_over) {
    if (::PQnfields(&told) != some_column_count) {
        return false;
    }
    short_tally tally{which};
    std::vector<std::int64_t> waited_for;
    for (int at = 0; at < ::PQntuples(&told); ++at) {
        const row one{told, at};
        if (one.null(s_entry)) {
            waited_for = one.numbers(s_waited_for);
            continue;
        }
        const auto place = tally.carried_out(one.number(s_entry));
        if (!place) {
            return false;
        }
        replies[*place] = short_answer(
            entries[*place].what, one.number(s_now), one.number(s_first), one.number(s_last));
    }
    for (const auto number : waited_for) {
        const auto place = tally.among_them(number);
        if (!place) {
            return false;
        }
        replies[*place].waiters = true;
    }
    tally.rest(passed_over);
    return true;
}

}  // namespace

std::optional<short_step> short_step_of(const std::vector<core::entry>& entries,
                                        const std::vector<std::uint32_t>& which,
                                        const caller& self) {
    for (std::size_t at = 0; at < which.size(); ++at) {
        const auto& entry = entries[which[at]];
        // A strict store may not grant for now; and of one key a step each.
        const bool first =
            at == 0 || core::key_of(entries[which[at - 1]].what) != core::key_of(entry.what);
        if (!first || !is_simple(entry.what) ||
            (self.longest_ttl > core::microseconds{0} && is_acquire(entry))) {
            return std::nullopt;
        }
    }
    if (which.size() > 1) {
        return short_batch(entries, which, self);
    }
    const auto& what = entries[which.front()].what;
    if (const auto* taken = std::get_if<core::acquire>(&what)) {
        const auto asked = described(*taken);
        short_step made{statement::acquire_one, {}};
        made.with.text(self.prefix + taken->key);
        made.with.text(bytes_of(taken->holder));
        made.with.number(asked.time);
        made.with.number(asked.fences);
        made.with.number(asked.floor);
        made.with.truth((asked.flags & flag_attached) != 0);
        if (asked.not_after) {
            made.with.number(*asked.not_after);
        } else {
            made.with.null();
        }
        made.with.text(self.process);
        made.with.text(self.who);
        return made;
    }
    if (const auto* ended = std::get_if<core::release>(&what)) {
        short_step made{statement::release_one, {}};
        made.with.text(self.prefix + ended->key);
        made.with.text(bytes_of(ended->holder));
        made.with.text(self.process);
        return made;
    }
    return std::nullopt;
}

bool read_short_step(const PGresult& told,
                     const std::vector<core::entry>& entries,
                     const std::vector<std::uint32_t>& which,
                     core::answers& replies,
                     std::vector<std::uint32_t>& passed_over) {
    if (which.size() > 1) {
        return read_short_batch(told, entries, which, replies, passed_over);
    }
    const auto& what = entries[which.front()].what;
    const bool acquires = std::holds_alternative<core::acquire>(what);
    const int columns = acquires ? static_cast<int>(acquired_column_count)
                                 : static_cast<int>(released_column_count);
    if (::PQnfields(&told) != columns || ::PQntuples(&told) > 1) {
        return false;
    }
    if (::PQntuples(&told) == 0) {
        passed_over.push_back(which.front());
        return true;
    }
    const row one{told, 0};
    auto& given = replies[which.front()];
    given = acquires
                ? short_answer(what, one.number(a_now), one.number(a_first), one.number(a_last))
                : short_answer(what, one.number(r_now), 0, 0);
    given.waiters = !acquires && one.truth(r_waiters);
    return true;
}

}  // namespace dibs::store::postgres
