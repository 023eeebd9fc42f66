// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checks. docs/internals/checker.md tells what each means and where it comes from.

#include "checker/subject.hpp"
#include "checker/verdict.hpp"

#include <array>
#include <string_view>

namespace dibs_checker {

[[nodiscard]] verdict check_grants(const subject& of);           // C1
[[nodiscard]] verdict check_beliefs(const subject& of);          // C2
[[nodiscard]] verdict check_fences(const subject& of);           // C3
[[nodiscard]] verdict check_linearizability(const subject& of);  // C4
[[nodiscard]] verdict check_updates(const subject& of);          // C5
[[nodiscard]] verdict check_deadlines(const subject& of);        // C6
[[nodiscard]] verdict check_foreign_effects(const subject& of);  // C7
[[nodiscard]] verdict check_orphans(const subject& of);          // C8
[[nodiscard]] verdict check_wakes(const subject& of);            // C9
[[nodiscard]] verdict check_slots(const subject& of);            // C10
[[nodiscard]] verdict check_refreshes(const subject& of);        // C11
[[nodiscard]] verdict check_progress(const subject& of);         // C12

struct check_entry {
    check_id id;
    std::string_view title;
    verdict (*check)(const subject&);
};

inline constexpr std::array<check_entry, check_count> all_checks{{
    {check_id::c1, "one grant at a time in the store", check_grants},
    {check_id::c2, "one believer at a time", check_beliefs},
    {check_id::c3, "fences rise and are unique", check_fences},
    {check_id::c4, "registers and the lock are linearizable", check_linearizability},
    {check_id::c5, "no update is lost", check_updates},
    {check_id::c6, "nobody holds at or after the deadline", check_deadlines},
    {check_id::c7, "nobody touches another's grant", check_foreign_effects},
    {check_id::c8, "grants that nobody was told of end", check_orphans},
    {check_id::c9, "waiters wake in time", check_wakes},
    {check_id::c10, "slots run as their policy says", check_slots},
    {check_id::c11, "credentials are refreshed once", check_refreshes},
    {check_id::c12, "work goes on after the faults", check_progress},
}};

}  // namespace dibs_checker
