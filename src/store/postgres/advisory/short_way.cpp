// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/advisory/short_way.hpp"

#include "store/postgres/advisory/session.hpp"
#include "store/postgres/arguments.hpp"
#include "store/postgres/columns.hpp"
#include "store/postgres/short_tally.hpp"

#include <cstddef>

namespace dibs::store::postgres {

namespace {

core::answer gone() {
    core::answer given;
    given.took = core::effect::yes;
    given.what = core::verdict::not_held;
    given.lost = core::loss::gone;
    return given;
}

short_step many(const std::vector<core::entry>& entries,
                const std::vector<std::uint32_t>& which,
                const std::vector<stand>& stands,
                const caller& self) {
    const auto all = described(entries, which);
    short_step made{statement::step_some, {}};
    numbers(made.with, all, [](const asked& one) { return one.verb; });
    keys(made.with, entries, which, self);
    holders(made.with, all, [](const asked& one) { return one.holder; });
    numbers(made.with, all, [](const asked& one) { return one.fences; });
    numbers(made.with, all, [](const asked& one) { return one.floor; });
    not_after(made.with, all);
    made.with.array(parameters::kind::number, stands.size());
    for (const auto& one : stands) {
        made.with.element(one.lock);
    }
    made.with.text(self.process);
    made.with.text(self.own->name());
    made.with.text(self.who);
    return made;
}

bool read_acquired(const PGresult& told,
                   const core::entry& entry,
                   std::uint32_t which,
                   core::answers& replies,
                   std::vector<std::uint32_t>& passed_over) {
    if (::PQnfields(&told) != acquired_column_count || ::PQntuples(&told) > 1) {
        return false;
    }
    const row one{told, 0};
    if (::PQntuples(&told) == 0 || one.null(a_last)) {
        passed_over.push_back(which);
        return true;
    }
    replies[which] =
        short_answer(entry.what, one.number(a_now), one.number(a_first), one.number(a_last));
    return true;
}

bool read_released(const PGresult& told,
                   const core::entry& entry,
                   std::uint32_t which,
                   core::answers& replies,
                   std::vector<std::uint32_t>& passed_over) {
    if (::PQnfields(&told) != let_go_column_count || ::PQntuples(&told) > 1) {
        return false;
    }
    if (::PQntuples(&told) == 0) {
        passed_over.push_back(which);
        return true;
    }
    const row one{told, 0};
    replies[which] =
        one.truth(g_was_held) ? short_answer(entry.what, one.number(g_now), 0, 0) : gone();
    replies[which].waiters = one.truth(g_waiters);
    return true;
}

}  // namespace

bool has_short_way(const core::verb& what, const stand& has) noexcept {
    return is_simple(what) &&
           has.has ==
               (std::holds_alternative<core::acquire>(what) ? stand::nothing : stand::its_own);
}

short_step short_session_step(const std::vector<core::entry>& entries,
                              const std::vector<std::uint32_t>& which,
                              const std::vector<stand>& stands,
                              const caller& self) {
    const auto& what = entries[which.front()].what;
    if (which.size() > 1 || std::holds_alternative<core::renew>(what)) {
        return many(entries, which, stands, self);
    }
    const auto one = described(what);
    const bool acquires = std::holds_alternative<core::acquire>(what);
    short_step made{acquires ? statement::acquire_one : statement::release_one, {}};
    made.with.text(self.prefix + core::key_of(what));
    made.with.text(bytes_of(*one.holder));
    if (!acquires) {
        made.with.number(stands.front().lock);
        made.with.text(self.process);
        made.with.text(self.own->name());
        return made;
    }
    made.with.number(one.fences);
    made.with.number(one.floor);
    if (one.not_after) {
        made.with.number(*one.not_after);
    } else {
        made.with.null();
    }
    made.with.number(stands.front().lock);
    made.with.text(self.own->name());
    made.with.text(self.who);
    return made;
}

bool read_short_session_step(const PGresult& told,
                             const std::vector<core::entry>& entries,
                             const std::vector<std::uint32_t>& which,
                             core::answers& replies,
                             std::vector<std::uint32_t>& passed_over) {
    const auto& what = entries[which.front()].what;
    if (which.size() == 1 && !std::holds_alternative<core::renew>(what)) {
        const auto& read =
            std::holds_alternative<core::acquire>(what) ? read_acquired : read_released;
        return read(told, entries[which.front()], which.front(), replies, passed_over);
    }
    if (::PQnfields(&told) != kept_column_count || ::PQntuples(&told) != 1) {
        return false;
    }
    const row one{told, 0};
    const auto carried_out = one.numbers(k_entries);
    const auto firsts = one.numbers(k_firsts);
    const auto lasts = one.numbers(k_lasts);
    if (firsts.size() != carried_out.size() || lasts.size() != carried_out.size()) {
        return false;
    }
    short_tally tally{which};
    for (std::size_t at = 0; at < carried_out.size(); ++at) {
        const auto place = tally.carried_out(carried_out[at]);
        if (!place) {
            return false;
        }
        replies[*place] =
            short_answer(entries[*place].what, one.number(k_now), firsts[at], lasts[at]);
    }
    for (const auto number : one.numbers(k_not_held)) {
        const auto place = tally.among_them(number);
        if (!place) {
            return false;
        }
        replies[*place] = gone();
    }
    for (const auto number : one.numbers(k_waited_for)) {
        const auto place = tally.among_them(number);
        if (!place) {
            return false;
        }
        replies[*place].waiters = true;
    }
    tally.rest(passed_over);
    return true;
}

}  // namespace dibs::store::postgres
