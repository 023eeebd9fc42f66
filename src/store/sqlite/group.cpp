// SPDX-License-Identifier: Apache-2.0
// A group of steps is one transaction; each of them is answered with what became of it.
#include "store/record/rules.hpp"
#include "store/sqlite/codes.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/sql.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <utility>
#include <variant>

namespace dibs::store::sqlite {

namespace {

/// How many processes a new one looks at for traces of the dead.
constexpr std::int64_t sweep_rows = 4;

/// A step by which a holder speaks of its lease: these go first.
bool is_holders(const core::verb& what) {
    return std::holds_alternative<core::renew>(what) || std::holds_alternative<core::release>(what);
}

/// Whether its acknowledged outcome must survive power loss.
bool durable(const core::verb& what) {
    if (const auto* asked = std::get_if<core::acquire>(&what)) {
        return asked->mark.has_value();
    }
    if (const auto* given = std::get_if<core::release>(&what)) {
        return given->result.has_value();
    }
    return std::holds_alternative<core::block>(what);
}

/// Whether it must not be answered from a file that others may have replaced already.
bool needs_place(const core::verb& what) {
    return std::holds_alternative<core::acquire>(what) ||
           std::holds_alternative<core::release>(what);
}

bool needs_self(const core::verb& what) {
    if (const auto* prolonged = std::get_if<core::renew>(&what)) {
        return prolonged->adopt.has_value();
    }
    return std::holds_alternative<core::acquire>(what);
}

}  // namespace

void database::run(const group& work, aftermath& after) {
    units all;
    collect(work, all);
    run_together(std::move(all), after);
}

void database::collect(const group& work, units& all) const {
    auto count = work.enrolments.size() + work.lost.size();
    for (const auto& of : work.batches) {
        count += of.entries.size();
    }
    all.reserve(count);
    for (auto* enrols : work.enrolments) {
        unit one;
        one.enrols = enrols;
        one.deadline = enrols->deadline;
        all.push_back(one);
    }
    const auto add = [&](const batch& of, bool first) {
        for (std::size_t at = 0; at < of.entries.size(); ++at) {
            if (is_holders(of.entries[at].what) == first) {
                unit one;
                one.entry = &of.entries[at];
                one.reply = &of.replies[at];
                one.deadline = one.entry->deadline;
                all.push_back(one);
            }
        }
    };
    for (const auto which : {lane::renewals, lane::others}) {
        for (const auto& of : work.batches) {
            if (of.which == which) {
                add(of, true);
                add(of, false);
            }
        }
    }
    for (const auto& lost : work.lost) {
        unit one;
        one.lost = &lost;
        one.deadline = world_.now() + core::milliseconds{500};
        all.push_back(one);
    }
}

void database::refuse(const unit& one, const failure& why) {
    if (one.reply != nullptr) {
        *one.reply = core::refused(why.error, why.detail);
    } else if (one.enrols != nullptr) {
        one.enrols->trouble = why;
    }
}

// What lies at the path, if anything, knows none of the leases of this file, and may have given them
// to others. So the holder is told that it has lost, not to try again until its deadline.
void database::answer_displaced(const units& all) {
    const auto why = explain(moved, {});
    const auto now = world_.clock();
    for (const auto& one : all) {
        if (one.entry == nullptr || !is_holders(one.entry->what)) {
            refuse(one, why);
            continue;
        }
        core::answer told;
        told.what = core::verdict::not_held;
        told.took = core::effect::yes;
        told.lost = core::loss::replaced;
        told.detail = why.detail;
        told.now = now;
        *one.reply = std::move(told);
    }
}

void database::refuse_overdue(units& all, bool waited) {
    const auto now = world_.now();
    const auto overdue = [&](const unit& one) { return one.deadline <= now; };
    if (std::none_of(all.begin(), all.end(), overdue)) {
        return;
    }
    const failure why =
        waited ? failure{errc::store_busy,
                         shown_path(options_.path) +
                             ": another process kept the file locked until the deadline"}
               : failure{errc::timed_out, "the deadline passed before the step was begun"};
    for (const auto& one : all) {
        if (overdue(one)) {
            refuse(one, why);
        }
    }
    all.erase(std::remove_if(all.begin(), all.end(), overdue), all.end());
}

void database::run_together(units all, aftermath& after) {
    bool waited = false;
    while (!all.empty()) {
        refuse_overdue(all, waited);
        if (all.empty()) {
            return;
        }
        int code = begin(all);
        if (busy(code) && !giving_up_.load(std::memory_order_relaxed)) {
            waited = true;
            continue;
        }
        if (code == moved) {
            answer_displaced(all);
            return;
        }
        if (code != SQLITE_OK) {
            const auto why = explain(code, shown_path(options_.path) + ": cannot be written");
            for (const auto& one : all) {
                refuse(one, why);
            }
            return;
        }
        // Others may have kept us waiting, perhaps too long for some.
        refuse_overdue(all, true);

        aftermath mine;
        try {
            code = all.empty() ? SQLITE_OK : inside(all, mine);
        } catch (const std::bad_alloc&) {
            code = SQLITE_NOMEM;
        }
        bool committing = false;
        if (code == SQLITE_OK) {
            committing = true;
            code = commit(busy_until_);
        }
        const auto why = code == SQLITE_OK
                             ? failure{}
                             : explain(code, shown_path(options_.path) + ": cannot be written");
        if (code != SQLITE_OK) {
            undo();
            place_due_ = log_due_ = {};
        }
        records_.settle(code == SQLITE_OK);
        who_.settle(code == SQLITE_OK);
        waiters_.settle(code == SQLITE_OK);
        if (code == SQLITE_OK) {
            std::move(mine.wakes.begin(), mine.wakes.end(), std::back_inserter(after.wakes));
            std::move(
                mine.lookouts.begin(), mine.lookouts.end(), std::back_inserter(after.lookouts));
            auto buried = who_.take_buried();
            after.buried.insert(after.buried.end(), buried.begin(), buried.end());
            return;
        }
        // A full disk is found before the last page of the commit is there, so nothing of it can
        // come back.
        if (committing && !busy(code) && (code & 0xff) != SQLITE_FULL) {
            for (const auto& one : all) {
                if (one.written && one.reply != nullptr) {
                    *one.reply = core::in_doubt(why.detail);
                } else {
                    refuse(one, why);
                }
            }
            return;
        }
        if (all.size() > 1 && !busy(code)) {
            // Perhaps one of them is to blame, such as a result that is too large for what is left
            // of the disk.
            run_alone(all, after);
            return;
        }
        for (const auto& one : all) {
            refuse(one, why);
        }
        return;
    }
}

void database::run_alone(const units& all, aftermath& after) {
    for (auto one : all) {
        one.written = false;
        run_together({one}, after);
    }
}

int database::begin(const units& all) {
    const bool look_now = std::any_of(all.begin(), all.end(), [](const unit& one) {
        return one.entry != nullptr && needs_place(one.entry->what);
    });
    if (has_moved(look_now)) {
        return moved;
    }
    const bool full = options_.full || std::any_of(all.begin(), all.end(), [](const unit& one) {
                          return one.entry != nullptr && durable(one.entry->what);
                      });
    if (const int code = set_synchronous(full); code != SQLITE_OK) {
        return code;
    }
    busy_until_ = core::instant::max();
    for (const auto& one : all) {
        busy_until_ = std::min(busy_until_, one.deadline);
    }
    const int code = begin_.run();
    if (code == SQLITE_OK) {
        records_.begin(all.size() > 1);
    }
    return code;
}

int database::inside(units& all, aftermath& after) {
    const auto now = world_.clock();
    failure invisible;
    const bool self = std::any_of(all.begin(), all.end(), [](const unit& one) {
        return (one.entry != nullptr && needs_self(one.entry->what)) ||
               (one.enrols != nullptr && one.enrols->begins);
    });
    if (self && who_.self() == 0) {
        if (const int code = enter_self(now, invisible); code != SQLITE_OK) {
            return code;
        }
    }
    const rules_context context{now, who_.self(), who_};
    for (auto& one : all) {
        int code = SQLITE_OK;
        if (one.entry != nullptr) {
            if (invisible && needs_self(one.entry->what)) {
                refuse(one, invisible);
                continue;
            }
            code = apply_entry(one, context, after);
        } else if (one.enrols != nullptr) {
            if (invisible && one.enrols->begins) {
                refuse(one, invisible);
                continue;
            }
            code = apply_enrolment(one, now, after);
        } else {
            code = apply_unreachable(one, now, after);
        }
        if (code != SQLITE_OK) {
            return code;
        }
    }
    return tidy(now, all.size());
}

int database::enter_self(core::store_now now, failure& trouble) {
    if (const int code = who_.enrol(now.wall, trouble); code != SQLITE_OK || trouble) {
        return code;
    }
    return who_.sweep(world_.draw(), sweep_rows, now.wall);
}

}  // namespace dibs::store::sqlite
