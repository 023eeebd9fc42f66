// SPDX-License-Identifier: Apache-2.0
#pragma once
// The store without threads, sockets and clocks: a file, and groups of work on it, each of them one
// transaction.
//
// A transaction begins by taking the write lock (BEGIN IMMEDIATE: one that begins as a reader
// cannot be upgraded when somebody else has written meanwhile), reads the clock after that, and
// applies the rules of the record to each step in turn. What fails before the commit was surely not
// done; a commit that fails otherwise than by a full disk is in doubt.
//
// Thread safety: one thread at a time, except `give_up`.

#include "core/verbs.hpp"
#include "store/sqlite/errors.hpp"
#include "store/sqlite/place.hpp"
#include "store/sqlite/processes.hpp"
#include "store/sqlite/records.hpp"
#include "store/sqlite/surroundings.hpp"
#include "store/sqlite/tickets.hpp"
#include "store/sqlite/waiters.hpp"
#include "store/store.hpp"

#include <sqlite3.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dibs::store::sqlite {

struct database_options {
    std::string path;
    std::string vfs;  ///< empty: the system's
    bool full = false;
    bool make = true;           ///< an empty file becomes a store
    int fold_log_after = 1000;  ///< pages in the log, at which a commit folds them into the file
    std::string boot_id;
    process_id self;
    core::party who;
};

/// One batch of the caller, and where its answers go.
struct batch {
    lane which = lane::others;
    std::span<const core::entry> entries;
    std::span<core::answer> replies;
};

/// This process's waiting for a key begins or ends.
struct enrolment {
    std::string key;
    bool begins = true;
    core::instant deadline{};
    failure trouble;  ///< the answer
};

/// Waiters of a key that could not be reached.
struct unreachable {
    std::string key;
    std::vector<std::uint64_t> processes;
    bool nobody_woken = true;  ///< ask for the next ones
};

struct group {
    std::vector<batch> batches;
    std::vector<enrolment*> enrolments;
    std::vector<unreachable> lost;
};

/// What remains to be done outside the file once it is committed.
struct aftermath {
    std::vector<wake_order> wakes;
    std::vector<lookout> lookouts;
    std::vector<process_id> buried;
};

class database {
  public:
    [[nodiscard]] static std::unique_ptr<database> open(database_options options,
                                                        surroundings& world,
                                                        failure& trouble);
    ~database();
    database(const database&) = delete;
    database& operator=(const database&) = delete;

    /// Answers every entry and enrolment of the group.
    void run(const group& work, aftermath& after);

    void list(const std::string& prefix,
              const std::string& after,
              std::size_t limit,
              core::page& page);

    /// Makes every wait for the file end at once, now and later. Thread safety: any thread.
    void give_up() noexcept { giving_up_.store(true, std::memory_order_relaxed); }

    /// Takes this process's rows away. `everybody_gone`: nobody inherited its descriptor. Best
    /// effort, and short. False when the row stays: its files must stay, too.
    bool leave(bool everybody_gone);

    /// Whether no row names that process.
    [[nodiscard]] bool unknown(const process_id& id) { return who_.unknown(id); }

  private:
    /// One thing to do that succeeds or fails alone.
    struct unit {
        const core::entry* entry = nullptr;
        core::answer* reply = nullptr;
        enrolment* enrols = nullptr;
        const unreachable* lost = nullptr;
        core::instant deadline = core::instant::max();
        bool written = false;
    };
    using units = std::vector<unit>;

    database(database_options options, surroundings& world);
    failure start();

    void collect(const group& work, units& all) const;
    void run_together(units all, aftermath& after);
    void run_alone(const units& all, aftermath& after);
    /// An SQLite code; anything but SQLITE_OK was undone.
    int begin(const units& all);
    int inside(units& all, aftermath& after);
    [[nodiscard]] bool has_moved(bool look_now);
    [[nodiscard]] bool sqlite_has_moved();
    void answer_displaced(const units& all);
    int commit(core::instant deadline);
    void undo() noexcept;

    int enter_self(core::store_now now, failure& trouble);
    int apply_entry(unit& one, const rules_context& context, aftermath& after);
    int apply_enrolment(unit& one, core::store_now now, aftermath& after);
    int apply_unreachable(const unit& one, core::store_now now, aftermath& after);
    int save(const core::entry& entry, found_record& changed, bool& undone_alone);
    int apply_ticket(const found_record& found,
                     step& taken,
                     const core::verb& what,
                     const rules_context& context);
    /// The head of the queue, if there is one; else the oldest waiter.
    int wake_next(const std::string& key,
                  const found_record& found,
                  core::store_now now,
                  aftermath& after);
    int tidy(core::store_now now, std::size_t steps);

    static void refuse(const unit& one, const failure& why);
    void refuse_overdue(units& all, bool waited);
    [[nodiscard]] failure explain(int code, std::string_view doing) const;
    static int on_busy(void* self, int times);
    int set_synchronous(bool full);

    const database_options options_;
    surroundings& world_;
    std::unique_ptr<sqlite3, int (*)(sqlite3*)> db_;
    statement begin_, begin_reading_, commit_, rollback_, savepoint_, undo_savepoint_,
        release_savepoint_;
    records records_;
    found_record entrys_record_;  // of the step that is being carried out
    processes who_;
    waiters waiters_;
    tickets tickets_;
    gone_query gone_;

    bool full_now_ = false;
    core::instant busy_until_{};
    std::optional<file_identity> identity_;  // of the open file; empty with another vfs
    core::instant place_due_{};              // when to look at the path again
    std::string log_path_;
    std::optional<file_identity> log_;  // of the open log, which lasts as long as the connection
    core::instant log_due_{};
    std::atomic<bool> giving_up_ = false;

    std::int64_t purge_cursor_ = -1;  // -1: nowhere yet
    std::size_t purge_debt_ = 0;
    std::size_t purge_due_ = 0;       // at which debt records are looked at
    unsigned purge_vain_rounds_ = 0;  // how often the last record was passed since some were found
};

}  // namespace dibs::store::sqlite
