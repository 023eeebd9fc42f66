// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processes that grants and waiters belong to: this one's own row, who the others are, whether
// they are gone, and the removal of those that are.
//
// A row is removed only once its process is surely gone, and its number never comes again: an
// attached grant whose process has no row is dead. A process that gave detached grants keeps its
// row for a while, to be told to people.
//
// Thread safety: none; the database guards it.

#include "core/verbs.hpp"
#include "store/record/rules.hpp"
#include "store/sqlite/process_id.hpp"
#include "store/sqlite/statement.hpp"
#include "store/sqlite/surroundings.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dibs::store::sqlite {

class processes final : public parties {
  public:
    processes(surroundings& world, process_id self, core::party who)
        : world_(world), self_id_(self), self_who_(std::move(who)) {}

    // Those that return an int return an SQLite code.
    [[nodiscard]] int prepare(sqlite3* db) noexcept;

    /// Finds or makes the number of this boot.
    [[nodiscard]] int enter_boot(std::string_view kernel_boot_id);
    [[nodiscard]] std::int64_t boot() const noexcept { return boot_; }

    /// Writes this process's row, inside a transaction, if it is not there yet; `trouble` says why
    /// it cannot be seen by others. `settle` afterwards tells whether the transaction was
    /// committed.
    [[nodiscard]] int enrol(core::wall_instant now, failure& trouble);
    void settle(bool committed) noexcept;

    /// 0 before `enrol`.
    [[nodiscard]] std::uint64_t self() const noexcept { return self_; }
    [[nodiscard]] const process_id& self_id() const noexcept { return self_id_; }

    /// This process is about to give a detached grant.
    [[nodiscard]] int note_detached();

    /// Surely gone: a row of another boot, no row, or nobody holds its descriptor. Remembers those
    /// it found.
    [[nodiscard]] bool gone(std::uint64_t process);

    /// Null if the process is not known.
    [[nodiscard]] const process_id* id_of(std::uint64_t process) const;

    [[nodiscard]] core::party who(std::uint64_t process) const override;

    /// Removes the rows of those found gone since the last commit, with their waiters and tickets.
    [[nodiscard]] int bury(core::wall_instant now);

    /// Looks at a few rows for processes that died and left nothing that anybody would stumble on.
    [[nodiscard]] int sweep(std::uint64_t random, std::int64_t rows, core::wall_instant now);

    /// Whose files may go: buried in transactions that were committed. Empties the list.
    [[nodiscard]] std::vector<process_id> take_buried() { return std::exchange(buried_, {}); }

    /// Whether a process that is not known by number has left files: true if no row names it.
    [[nodiscard]] bool unknown(const process_id& id);

    /// Removes this process's row, waiters and tickets, on leaving; the row stays if others count on
    /// it.
    [[nodiscard]] int leave(bool everybody_gone, core::wall_instant now);

  private:
    struct known {
        process_id id;
        std::int64_t boot = 0;
        core::party who;
        bool there = false;
        bool gone = false;
    };
    const known& look_up(std::uint64_t process) const;

    surroundings& world_;
    const process_id self_id_;
    const core::party self_who_;
    std::int64_t boot_ = 0;
    std::uint64_t self_ = 0;
    bool self_settled_ = false;
    bool detached_ = false;
    bool detached_settled_ = false;

    std::vector<std::uint64_t> dying_;  // found gone; their rows are still there
    std::vector<process_id> in_grave_;  // removed in the present transaction
    std::vector<process_id> buried_;

    sqlite3* db_ = nullptr;
    mutable std::unordered_map<std::uint64_t, known> known_;
    mutable statement find_;
    statement find_boot_, insert_boot_, insert_, mark_detached_, mark_gone_, delete_, forget_;
    statement scan_, last_, find_id_, delete_waiters_, delete_tickets_;
};

}  // namespace dibs::store::sqlite
