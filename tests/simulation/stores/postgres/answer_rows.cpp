// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/postgres/answer_rows.hpp"

#include "store/postgres/columns.hpp"

#include <dibs/error.hpp>

#include <limits>

namespace dibs::simulation::postgres {

namespace {

using core::microseconds;
using core::verdict;
using namespace store::postgres;

constexpr std::int64_t says_failed = 0;
constexpr std::int64_t says_granted = 1;
constexpr std::int64_t says_renewed = 7;
constexpr std::int64_t says_released = 8;

std::int64_t number_of_verdict(verdict what) {
    switch (what) {
        case verdict::granted:
            return says_granted;
        case verdict::held:
            return 2;
        case verdict::done:
            return 3;
        case verdict::blocked:
            return 4;
        case verdict::not_ready:
            return 5;
        case verdict::too_late:
            return 6;
        case verdict::renewed:
            return says_renewed;
        case verdict::released:
            return says_released;
        case verdict::finished:
            return 9;
        case verdict::not_held:
            return 10;
        case verdict::revoked:
            return 11;
        case verdict::fence_moved:
            return 12;
        case verdict::block_set:
            return 13;
        default:
            return says_failed;
    }
}

std::int64_t number_of_loss(core::loss what) {
    switch (what) {
        case core::loss::expired:
            return 1;
        case core::loss::taken:
            return 2;
        case core::loss::revoked:
            return 3;
        default:
            return 4;
    }
}

/// When what has so much left ends; of what is over it does not matter when.
std::int64_t end_of(microseconds left, std::int64_t now_us) {
    return left == core::result_to_keep::forever ? std::numeric_limits<std::int64_t>::max()
                                                 : now_us + left.count();
}

}  // namespace

answer_rows::answer_rows(std::int64_t now_us) : now_us_(now_us), told_(column_count) {}

void answer_rows::begin(std::size_t entry) {
    told_.begin();
    told_.number(o_entry, static_cast<std::int64_t>(entry) + 1);
}

void answer_rows::locked(std::size_t entry) {
    begin(entry);
    told_.number(o_what, said_locked);
}

void answer_rows::waited_for(std::size_t entry) {
    waited_for_.push_back(entry);
}

void answer_rows::answer(std::size_t entry,
                         const core::answer& given,
                         std::uint32_t capacity,
                         const std::vector<std::string>& holders) {
    begin(entry);
    told_.number(o_what, number_of_verdict(given.what));
    told_.number(o_now, now_us_);
    if (given.what == verdict::failed) {
        failure(given, capacity);
    } else {
        rest_of(given);
    }
    if (!holders.empty()) {
        told_.texts(o_holders, holders);
    }
    if (given.result) {
        write_result(told_, o_value, *given.result, now_us_);
    }
}

void answer_rows::failure(const core::answer& given, std::uint32_t capacity) {
    const auto is_about = [&](std::string_view what) {
        return given.error == errc::invalid_argument &&
               given.detail.find(what) != std::string::npos;
    };
    if (is_about("63 bits")) {
        told_.number(o_code, 2);
    } else if (is_about("adopt")) {
        told_.number(o_code, 3);
    } else {
        told_.number(o_code, 1);
        told_.number(o_first, capacity);
    }
}

void answer_rows::rest_of(const core::answer& given) {
    switch (given.what) {
        case verdict::granted:
        case verdict::renewed:
            told_.number(o_first, static_cast<std::int64_t>(given.fences.first));
            told_.number(o_last, static_cast<std::int64_t>(given.fences.last));
            told_.number(o_expires, given.expires.time_since_epoch().count());
            break;
        case verdict::held:
        case verdict::blocked:
        case verdict::not_ready:
            told_.number(o_retry, given.retry_after.count());
            if (given.what == verdict::held) {
                told_.number(o_code, given.watchers);
            }
            if (given.ticket != 0) {
                told_.number(o_ticket, static_cast<std::int64_t>(given.ticket));
                told_.number(o_position, given.position);
            }
            break;
        case verdict::not_held:
            told_.number(o_code, number_of_loss(given.lost));
            break;
        default:
            break;
    }
    if (!given.reason.empty()) {
        told_.text(o_reason, given.reason);
    }
    if (given.waiters) {
        told_.truth(o_waiters, true);
    }
}

void answer_rows::answer_shortly(std::size_t entry, const core::answer& given) {
    short_ones_[number_of_verdict(given.what)].emplace_back(entry, given.fences);
    if (given.waiters) {
        waited_for(entry);
    }
}

store::postgres::result_ptr answer_rows::take() {
    for (const auto& [said, entries] : short_ones_) {
        std::vector<std::int64_t> numbers;
        std::vector<std::int64_t> firsts;
        std::vector<std::int64_t> lasts;
        for (const auto& [entry, fences] : entries) {
            numbers.push_back(static_cast<std::int64_t>(entry) + 1);
            firsts.push_back(static_cast<std::int64_t>(fences.first));
            lasts.push_back(static_cast<std::int64_t>(fences.last));
        }
        told_.begin();
        told_.number(o_what, said);
        told_.number(o_now, now_us_);
        told_.numbers(o_entries, numbers);
        if (said != says_released) {
            told_.numbers(o_firsts, firsts);
            told_.numbers(o_lasts, lasts);
        }
    }
    for (const auto entry : waited_for_) {
        begin(entry);
        told_.number(o_what, said_waited_for);
    }
    return told_.take();
}

void write_result(rows& into, int first, const core::kept_result& kept, std::int64_t now_us) {
    into.text(first, kept.value);
    into.number(first + 1, static_cast<std::int64_t>(kept.fence));
    into.truth(first + 2, kept.is_mark);
    into.number(first + 3, now_us - kept.age.count());
    into.number(first + 4, end_of(kept.fresh_left, now_us));
    into.number(first + 5, end_of(kept.keep_left, now_us));
}

}  // namespace dibs::simulation::postgres
