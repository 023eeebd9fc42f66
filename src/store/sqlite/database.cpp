// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/database.hpp"

#include "store/record/rules.hpp"
#include "store/sqlite/schema.hpp"
#include "store/sqlite/sql.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>
#include <variant>

namespace dibs::store::sqlite {

namespace {

using core::microseconds;
using std::chrono::seconds;

/// Pauses between two tries for the write lock. SQLite's own handler grows them so much that a
/// process starves.
constexpr microseconds first_pause{50};
constexpr microseconds later_pause{500};
constexpr int first_pauses = 10;

constexpr auto open_wait = seconds{5};
constexpr auto list_wait = seconds{5};
constexpr auto leave_wait = core::milliseconds{100};

/// After so many steps so many records are looked at, and those that nobody needs any more are
/// removed. More are looked at than can be made, so the file does not grow by records alone.
constexpr std::size_t purge_every = 16;
constexpr std::int64_t purge_rows = 32;
/// A record that was granted lately stays: making it anew costs more than keeping it.
constexpr microseconds purge_age = std::chrono::minutes{10};

/// The path is looked at, whether it still leads to this file, before every grant, since whoever
/// moved the file may have let others in, and before every release, which tells the holder whether
/// it was protected to the end; before other steps only this often.
constexpr auto place_every = core::milliseconds{50};

/// A log of up to this size is left behind by the last process, which would have to sync the disk
/// twice to fold it into the file; the next one reads it in less than a millisecond.
constexpr sqlite3_int64 log_left_bytes = 1 << 20;

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

/// Trouble of the whole file, as opposed to trouble with one value.
bool of_the_file(int code) {
    switch (code & 0xff) {
        case SQLITE_TOOBIG:
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_RANGE:
            return false;
        default:
            return true;
    }
}

bool busy(int code) {
    return (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED;
}

bool log_is_short(sqlite3* db) {
    sqlite3_file* log = nullptr;
    sqlite3_int64 bytes = 0;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
           log != nullptr && log->pMethods != nullptr &&
           log->pMethods->xFileSize(log, &bytes) == SQLITE_OK && bytes <= log_left_bytes;
}

// Not a code of SQLite's: the file behind the connection is no longer the one at its path.
constexpr int moved = -1;

}  // namespace

database::database(database_options options, surroundings& world)
    : options_(std::move(options)),
      world_(world),
      db_(nullptr, &sqlite3_close_v2),
      who_(world, options_.self, options_.who),
      waiters_(who_),
      tickets_(who_),
      gone_([this](std::uint64_t process) { return who_.gone(process); }),
      purge_debt_(purge_every) {}

database::~database() {
    if (db_ && log_is_short(db_.get())) {
        sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    }
}

std::unique_ptr<database> database::open(database_options options,
                                         surroundings& world,
                                         failure& trouble) {
    std::unique_ptr<database> made{new database{std::move(options), world}};
    trouble = made->start();
    if (trouble) {
        made.reset();
    }
    return made;
}

failure database::start() {
    const auto& path = options_.path;
    const std::string doing = shown_path(path) + ": cannot be opened";
    sqlite3* raw = nullptr;
    // The file was made before (or is the simulator's): SQLite would make it readable by everybody.
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                      SQLITE_OPEN_EXRESCODE | (options_.vfs.empty() ? 0 : SQLITE_OPEN_CREATE);
    int code = sqlite3_open_v2(
        path.c_str(), &raw, flags, options_.vfs.empty() ? nullptr : options_.vfs.c_str());
    db_.reset(raw);
    if (code != SQLITE_OK) {
        return translate(raw, code, doing);
    }
    busy_until_ = world_.now() + open_wait;
    sqlite3_busy_handler(raw, &database::on_busy, this);
    sqlite3_wal_autocheckpoint(raw, options_.fold_log_after);
    if (auto trouble = ensure_schema(raw, path, options_.make); trouble) {
        // A file that is not ours is left as it is, its log included.
        sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
        return trouble;
    }
    // The log is cut back after a long reader made it grow. The cache is an upper bound, used by
    // large stores alone.
    code = sqlite3_exec(raw,
                        "PRAGMA journal_size_limit = 16777216; PRAGMA cache_size = -16384; "
                        "PRAGMA temp_store = MEMORY",
                        nullptr,
                        nullptr,
                        nullptr);
    full_now_ = !options_.full;
    if (code == SQLITE_OK) {
        code = set_synchronous(options_.full);
    }
    const std::pair<statement*, std::string_view> all[] = {{&begin_, "BEGIN IMMEDIATE"},
                                                           {&begin_reading_, "BEGIN"},
                                                           {&commit_, "COMMIT"},
                                                           {&rollback_, "ROLLBACK"},
                                                           {&savepoint_, "SAVEPOINT step"},
                                                           {&undo_savepoint_, "ROLLBACK TO step"},
                                                           {&release_savepoint_, "RELEASE step"}};
    for (const auto& [made, text] : all) {
        code = code == SQLITE_OK ? made->prepare(raw, text) : code;
    }
    code = code == SQLITE_OK ? records_.prepare(raw) : code;
    code = code == SQLITE_OK ? who_.prepare(raw) : code;
    code = code == SQLITE_OK ? waiters_.prepare(raw) : code;
    code = code == SQLITE_OK ? tickets_.prepare(raw) : code;
    code = code == SQLITE_OK ? who_.enter_boot(options_.boot_id) : code;
    if (code != SQLITE_OK) {
        return explain(code, doing);
    }
    records_.set_boot(who_.boot());
    if (options_.vfs.empty()) {
        identity_ = identity_of(path);
        // SQLite compares the number of the file alone, which files on two disks may share.
        if (!identity_ || sqlite_has_moved()) {
            return explain(moved, {});
        }
        log_path_ = sqlite3_filename_wal(sqlite3_db_filename(raw, "main"));
        log_ = identity_of(log_path_);
    }
    return {};
}

int database::on_busy(void* self, int times) {
    auto& mine = *static_cast<database*>(self);
    if (mine.giving_up_.load(std::memory_order_relaxed) || mine.world_.now() >= mine.busy_until_) {
        return 0;
    }
    mine.world_.pause(times < first_pauses ? first_pause : later_pause);
    return 1;
}

int database::set_synchronous(bool full) {
    if (full == full_now_) {
        return SQLITE_OK;
    }
    const int code =
        sqlite3_exec(db_.get(),
                     full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
                     nullptr,
                     nullptr,
                     nullptr);
    full_now_ = code == SQLITE_OK ? full : full_now_;
    return code;
}

failure database::explain(int code, std::string_view doing) const {
    if (giving_up_.load(std::memory_order_relaxed) && busy(code)) {
        return {errc::closed, "the store was closed"};
    }
    if (code == moved) {
        return {errc::store_unreachable,
                shown_path(options_.path) +
                    ": the file or its log was moved, removed or replaced while it was in use, so "
                    "others may "
                    "already work with another one at its path; open the store again"};
    }
    return translate(db_.get(), code, doing);
}

// --- a group -------------------------------------------------------------------------------------

void database::run(const group& work, aftermath& after) {
    units all;
    collect(work, all);
    run_together(std::move(all), after);
}

void database::collect(const group& work, units& all) const {
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

bool database::has_moved(bool look_now) {
    const auto now = world_.now();
    if (!look_now && now < place_due_) {
        return false;
    }
    bool displaced = identity_ ? identity_of(options_.path) != identity_ : sqlite_has_moved();
    // Whoever opens the file when its log is gone makes a new one, and neither sees what the other
    // writes. Not before every grant: a look costs as much as a tenth of one.
    if (!displaced && log_ && now >= log_due_) {
        displaced = identity_of(log_path_) != log_;
        log_due_ = displaced ? core::instant{} : now + place_every;
    }
    place_due_ = displaced ? core::instant{} : now + place_every;
    return displaced;
}

bool database::sqlite_has_moved() {
    int answer = 0;
    sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &answer);
    return answer != 0;
}

int database::commit(core::instant deadline) {
    records_.pause();
    for (;;) {
        const int code = commit_.run();
        if (!busy(code) || giving_up_.load(std::memory_order_relaxed) || world_.now() >= deadline) {
            return code;
        }
        world_.pause(later_pause);
    }
}

void database::undo() noexcept {
    records_.pause();
    if (sqlite3_get_autocommit(db_.get()) == 0) {
        static_cast<void>(rollback_.run());
    }
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

int database::apply_entry(unit& one, const rules_context& context, aftermath& after) {
    const auto& what = one.entry->what;
    const auto& key = core::key_of(what);
    found_record found;
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
    purge_debt_ += steps;
    if (purge_debt_ >= purge_every) {
        purge_debt_ = 0;
        if (purge_cursor_ < 0) {
            // Short-lived processes must not all look at the same records.
            purge_cursor_ = static_cast<std::int64_t>(
                world_.draw() % (static_cast<std::uint64_t>(records_.last()) + 1));
        }
        const auto old = std::max(now.wall.time_since_epoch() - purge_age, microseconds{0});
        const int code =
            records_.purge(purge_cursor_,
                           purge_rows,
                           static_cast<core::fence_number>(old.count()),
                           now,
                           gone_,
                           [&](const found_record& one) { return purgeable(one.kept, now); });
        if (code != SQLITE_OK) {
            return code;
        }
    }
    return who_.bury(now.wall);
}

// --- the rest ------------------------------------------------------------------------------------

void database::list(const std::string& prefix,
                    const std::string& after,
                    std::size_t limit,
                    core::page& page) {
    busy_until_ = world_.now() + list_wait;
    std::size_t unreadable = 0;
    int code = has_moved(false) ? moved : begin_reading_.run();
    if (code == SQLITE_OK) {
        const auto now = world_.clock();
        const rules_context context{now, who_.self(), who_};
        int queues = SQLITE_OK;
        const auto add = [&](std::string_view key, const found_record& found) {
            if (!key.starts_with(prefix)) {
                return false;
            }
            if (page.records.size() == limit) {
                page.more = true;
                return false;
            }
            if (!found.readable()) {
                ++unreadable;
                return true;
            }
            page.records.push_back(describe(std::string{key}, found.kept, context));
            page.records.back().waiters = static_cast<std::uint32_t>(found.waiting);
            if (found.queued > 0) {
                queues = tickets_.describe(found.id, page.records.back(), context);
            }
            return queues == SQLITE_OK;
        };
        code = records_.list(prefix, after, now, gone_, add);
        code = code == SQLITE_OK ? queues : code;
    }
    if (code != SQLITE_OK) {
        auto why = explain(code, shown_path(options_.path) + ": cannot be read");
        page.error = why.error;
        page.detail = std::move(why.detail);
    } else if (unreadable != 0) {
        page.detail = std::to_string(unreadable) +
                      " records of a newer release were left out; update dibs on this host";
    }
    if (sqlite3_get_autocommit(db_.get()) == 0) {
        static_cast<void>(commit_.run());
        undo();
    }
}

bool database::leave(bool everybody_gone) {
    if (who_.self() == 0) {
        return true;
    }
    // What is taken away here would be found and taken away by others: no need to wait for the
    // disk.
    giving_up_.store(false, std::memory_order_relaxed);
    busy_until_ = world_.now() + leave_wait;
    int code = set_synchronous(false);
    code = code == SQLITE_OK ? begin_.run() : code;
    if (code != SQLITE_OK) {
        return false;
    }
    code = who_.leave(everybody_gone, world_.clock().wall);
    code = code == SQLITE_OK ? commit(busy_until_) : code;
    undo();
    return code == SQLITE_OK && everybody_gone;
}

}  // namespace dibs::store::sqlite
