// SPDX-License-Identifier: Apache-2.0
// What one step does inside a transaction: to its record, its queue, and to those who wait.
#include "store/record/rules.hpp"
#include "store/sqlite/codes.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/sql.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <utility>
#include <variant>

namespace dibs::store::sqlite {

namespace {

using core::microseconds;

/// So many records are looked at, and those that nobody needs any more are removed: after so many
/// steps, and after as many times more when a whole round has found none, for a look in vain costs as
/// much as several steps. A new record counts as that many steps, so more are looked at
/// than can be made, and the file does not grow by records alone.
constexpr std::int64_t purge_rows = 32;
constexpr std::size_t purge_every = 16;
constexpr std::size_t purge_rarely = 16;
/// A record that was granted lately stays: making it anew costs more than keeping it.
constexpr microseconds purge_age = std::chrono::minutes{10};

bool makes_detached(const core::verb& what, core::verdict verdict) {
    if (const auto* asked = std::get_if<core::acquire>(&what)) {
        return verdict == core::verdict::granted && asked->attached == core::attachment::detached;
    }
    if (const auto* prolonged = std::get_if<core::renew>(&what)) {
        return verdict == core::verdict::renewed && prolonged->adopt &&
               prolonged->adopt->attached == core::attachment::detached;
    }
    return false;
}

}  // namespace

int database::apply_entry(unit& one, const rules_context& context, aftermath& after) {
    const auto& what = one.entry->what;
    const auto& key = core::key_of(what);
    auto& found = entrys_record_;
    found.reset();
    if (const int code = records_.find(key, context.now, gone_, found); code != SQLITE_OK) {
        return code;
    }
    if (!found.readable()) {
        refuse(one,
               {errc::newer_format,
                "the record has format " + std::to_string(found.format) + ", this release knows " +
                    std::to_string(core::record_format) + "; update dibs on this host"});
        return SQLITE_OK;
    }
    queue_sight sight;
    if (found.queued > 0) {
        const int code = tickets_.look(found.id, ticket_holder(what), context.now, sight);
        records_.waiters_changed(key);
        if (code != SQLITE_OK) {
            return code;
        }
    }
    auto taken = apply(what, found.kept, context, sight);
    *one.reply = std::move(taken.reply);
    one.reply->waiters = found.waiting > 0 || sight.head.has_value();
    if (taken.changed) {
        bool undone_alone = false;
        const int code = save(*one.entry, found, undone_alone);
        if (code != SQLITE_OK && !undone_alone) {
            return code;
        }
        if (code != SQLITE_OK) {
            refuse(one, explain(code, shown_path(options_.path) + ": the step cannot be written"));
            return SQLITE_OK;
        }
        one.written = true;
        if (makes_detached(what, one.reply->what)) {
            if (const int noted = who_.note_detached(); noted != SQLITE_OK) {
                return noted;
            }
        }
    }
    if (taken.ticket != queue_step::none) {
        if (const int code = apply_ticket(found, taken, what, context); code != SQLITE_OK) {
            return code;
        }
        one.reply->ticket = taken.reply.ticket;
        one.reply->position = taken.reply.position;
        one.written = true;
    }
    if (taken.freed && (found.waiting > 0 || found.queued > 0)) {
        return wake_next(key, found, context.now, after);
    }
    if (one.reply->what == core::verdict::held && waiters_.waits(key)) {
        lookout next;
        const int code = waiters_.look(key, found, context.now, next);
        records_.waiters_changed(key);
        after.lookouts.push_back(std::move(next));
        return code;
    }
    return SQLITE_OK;
}

int database::save(const core::entry& entry, found_record& changed, bool& undone_alone) {
    const bool fenced = records::needs_savepoint(changed);
    if (fenced) {
        records_.pause();
        if (const int code = savepoint_.run(); code != SQLITE_OK) {
            return code;
        }
    }
    const int code = records_.save(core::key_of(entry.what), changed);
    undone_alone =
        code != SQLITE_OK && !of_the_file(code) && sqlite3_get_autocommit(db_.get()) == 0;
    if (!fenced || (code != SQLITE_OK && !undone_alone)) {
        return code;
    }
    if (undone_alone) {
        if (const int undone = undo_savepoint_.run(); undone != SQLITE_OK) {
            undone_alone = false;
            return undone;
        }
        records_.forget(core::key_of(entry.what));
    }
    const int released = release_savepoint_.run();
    return code != SQLITE_OK ? code : released;
}

int database::apply_enrolment(unit& one, core::store_now now, aftermath& after) {
    auto& wish = *one.enrols;
    found_record found;
    if (const int code = records_.find(wish.key, now, gone_, found); code != SQLITE_OK) {
        return code;
    }
    if (wish.begins) {
        if (found.id == 0) {
            if (const int code = records_.save(wish.key, found); code != SQLITE_OK) {
                return code;
            }
        }
        if (const int code = waiters_.enter(wish.key, found); code != SQLITE_OK) {
            return code;
        }
        lookout next;
        const int code = waiters_.look(wish.key, found, now, next);
        records_.waiters_changed(wish.key);
        after.lookouts.push_back(std::move(next));
        return code;
    }
    after.lookouts.push_back({wish.key, {}});
    wake_order next{wish.key, {}};
    const int code = waiters_.leave(wish.key, found, now, next);
    records_.waiters_changed(wish.key);
    if (code != SQLITE_OK || next.candidates.empty()) {
        return code;
    }
    if (found.queued == 0) {
        after.wakes.push_back(std::move(next));
        return code;
    }
    // Those in the queue do not look out for each other: a ticket that is taken back wakes the next
    // head, and the beat does the rest.
    return room_left(found.kept, now) ? wake_next(wish.key, found, now, after) : code;
}

int database::apply_unreachable(const unit& one, core::store_now now, aftermath& after) {
    found_record found;
    if (const int code = records_.find(one.lost->key, now, gone_, found);
        code != SQLITE_OK || found.id == 0) {
        return code;
    }
    bool not_yet_listening = false;
    for (const auto process : one.lost->processes) {
        if (const int code = waiters_.remove(found.id, process); code != SQLITE_OK) {
            return code;
        }
        // A head that does not listen yet is no dead head: it asks again as soon as it does.
        const bool gone = who_.gone(process);
        not_yet_listening = not_yet_listening || (found.queued > 0 && !gone);
        if (const int code = gone ? tickets_.remove(found.id, process) : SQLITE_OK;
            code != SQLITE_OK) {
            return code;
        }
    }
    records_.waiters_changed(one.lost->key);
    return one.lost->nobody_woken && !not_yet_listening
               ? wake_next(one.lost->key, found, now, after)
               : SQLITE_OK;
}

int database::apply_ticket(const found_record& found,
                           step& taken,
                           const core::verb& what,
                           const rules_context& context) {
    const int code = tickets_.carry_out(found.id, taken, what, context);
    records_.waiters_changed(core::key_of(what));
    return code;
}

int database::wake_next(const std::string& key,
                        const found_record& found,
                        core::store_now now,
                        aftermath& after) {
    // An earlier step of the transaction may have named one who is not the next any more.
    std::erase_if(after.wakes, [&](const auto& order) { return order.key == key; });
    wake_order order{key, {}};
    std::optional<core::ticket> head;
    int code = SQLITE_OK;
    if (found.queued > 0) {
        code = tickets_.head(found.id, now, head);
        records_.waiters_changed(key);
    }
    if (head) {
        const auto* id = who_.id_of(head->process);
        order.candidates.push_back({head->process, id != nullptr ? *id : process_id{}});
    } else if (code == SQLITE_OK) {
        code = waiters_.oldest(found.id, order.candidates);
    }
    if (!order.candidates.empty()) {
        after.wakes.push_back(std::move(order));
    }
    return code;
}

int database::tidy(core::store_now now, std::size_t steps) {
    purge_debt_ += steps + purge_rarely * records_.take_made();
    if (purge_debt_ >= purge_due_) {
        purge_debt_ = 0;
        if (purge_cursor_ < 0) {
            // Short-lived processes must not all look at the same records.
            purge_cursor_ = static_cast<std::int64_t>(
                world_.draw() % (static_cast<std::uint64_t>(records_.last()) + 1));
        }
        const auto old = std::max(now.wall.time_since_epoch() - purge_age, microseconds{0});
        bool found = false;
        const int code = records_.purge(purge_cursor_,
                                        purge_rows,
                                        static_cast<core::fence_number>(old.count()),
                                        now,
                                        gone_,
                                        [&](const found_record& one) {
                                            const bool goes = purgeable(one.kept, now);
                                            found = found || goes;
                                            return goes;
                                        });
        if (found) {
            purge_vain_rounds_ = 0;
        } else if (purge_cursor_ == 0) {
            ++purge_vain_rounds_;
        }
        // The first round may have begun anywhere.
        purge_due_ = purge_vain_rounds_ < 2 ? purge_every : purge_every * purge_rarely;
        if (code != SQLITE_OK) {
            return code;
        }
    }
    return who_.bury(now.wall);
}

}  // namespace dibs::store::sqlite
