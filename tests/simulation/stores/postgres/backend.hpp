// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a PostgreSQL server does with a statement of the store (store/postgres/schema.sql), by the
// rules of the record: one transaction each, from the bytes of its parameters to those of its rows.
//
// It is held to the real thing by postgres_model_test.cpp.

#include "core/verbs.hpp"
#include "simulation/stores/postgres/arguments.hpp"
#include "simulation/stores/postgres/tables.hpp"
#include "store/postgres/carrier.hpp"
#include "store/record/rules.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dibs::simulation::postgres {

class backend final : public store::parties {
  public:
    /// What a listener is told.
    struct note {
        std::string process;
        std::string key;
        /// Whose step it was, as the message says.
        store::wake_by whose = store::wake_by::unknown;
        bool as_head = false;  ///< of the queue
    };
    struct surroundings {
        std::int64_t now_us = 0;
        std::uint32_t timeline = 1;
        /// Whether another session has locked the row of the key.
        std::function<bool(const std::string& key)> locked;
        /// Waits for it. False: not within the patience of the statement.
        std::function<bool(const std::string& key)> is_let_go;
        /// Whether the session of that server process is still there.
        std::function<bool(std::int64_t pid)> listens;
        /// After the commit, in this order.
        std::function<void(const core::verb& what, const core::answer& given)> carried_out;
        std::function<void(const note& what)> notified;
    };

    [[nodiscard]] store::postgres::reply run(store::postgres::statement which,
                                             const store::postgres::parameters& with,
                                             tables& on,
                                             const surroundings& around);

    /// Whether the last statement waited for the disk: else a crash may undo it.
    [[nodiscard]] bool waited_for_the_disk() const noexcept { return waited_for_the_disk_; }

    /// lease_watch_1 and lease_unwatch_1, of one key.
    void watch(const std::string& key,
               const std::string& process,
               std::int64_t pid,
               tables& on,
               const surroundings& around) const;
    static void unwatch(const std::string& key, const std::string& process, tables& on);

    /// Stands in the records for who it is.
    [[nodiscard]] core::party who(std::uint64_t number) const override;

  private:
    struct transaction;
    struct known_process {
        std::string process;
        std::string who;
    };

    [[nodiscard]] std::uint64_t number_of(const std::string& process, const std::string& who);
    [[nodiscard]] store::postgres::reply execute(const arguments& with,
                                                 tables& on,
                                                 const surroundings& around);
    [[nodiscard]] store::postgres::reply execute_one(const one_step& asked,
                                                     tables& on,
                                                     const surroundings& around);
    [[nodiscard]] store::postgres::reply execute_some(const some_steps& asked,
                                                      tables& on,
                                                      const surroundings& around);
    [[nodiscard]] store::postgres::reply list(const arguments& with,
                                              const tables& on,
                                              const surroundings& around) const;
    [[nodiscard]] static store::postgres::reply purge(const arguments& with,
                                                      tables& on,
                                                      const surroundings& around);
    static void wake(transaction& in, const std::string& key, const std::string& process);
    static void commit(transaction& in);
    [[nodiscard]] std::vector<std::string> holder_texts(const core::record& of,
                                                        core::store_now now) const;

    std::vector<known_process> processes_;
    std::map<std::string, std::uint64_t> numbers_;
    bool waited_for_the_disk_ = true;
};

}  // namespace dibs::simulation::postgres
