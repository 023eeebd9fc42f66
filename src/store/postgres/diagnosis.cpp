// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/diagnosis.hpp"

#include "core/key.hpp"
#include "store/postgres/advisory/pooler.hpp"
#include "store/postgres/conversation.hpp"
#include "store/postgres/data_layer.hpp"
#include "store/postgres/engine.hpp"
#include "store/postgres/inquiry.hpp"
#include "store/postgres/link.hpp"
#include "store/postgres/schema.hpp"
#include "store/postgres/statements.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::store::postgres {

namespace {

using grade = finding::grade;

/// Everything that is one row of numbers and words.
constexpr const char* state_question =
    "SELECT current_setting('server_version'), current_setting('fsync'), "
    "current_setting('full_page_writes'), current_setting('synchronous_standby_names'), "
    "(SELECT count(*) FROM pg_stat_replication), current_setting('autovacuum'), "
    "current_setting('default_transaction_isolation'), "
    "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
    "current_setting('max_connections'), "
    "(date_part('epoch', clock_timestamp()) * 1000)::bigint, "
    "(SELECT coalesce(max(date_part('epoch', clock_timestamp() - xact_start)), 0)::bigint "
    "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()), "
    "(SELECT setting FROM pg_settings WHERE name = 'statement_timeout'), "
    "(SELECT count(*) FROM pg_locks WHERE NOT fastpath), "
    "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), "
    "current_setting('max_locks_per_transaction')::bigint * "
    "(current_setting('max_connections')::bigint + "
    "current_setting('max_prepared_transactions')::bigint), "
    "(SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query_start < "
    "clock_timestamp() - interval '2 s')";

enum column : std::size_t {
    version,
    fsync,
    full_page_writes,
    standby_names,
    standbys,
    autovacuum,
    isolation,
    sessions,
    max_connections,
    clock_ms,
    longest_transaction,
    statement_timeout_ms,
    locks_used,
    advisory_locks,
    locks_max,
    kept_by_standbys,
    column_count
};

constexpr core::nanoseconds patience = std::chrono::seconds{5};
constexpr long long clock_apart_max_ms = 2000;
constexpr long long long_transaction_s = 3600;
constexpr long long short_timeout_ms = 1000;

long long number(const std::string& text) {
    return std::strtoll(text.c_str(), nullptr, 10);
}

std::string in_words(long long apart_ms) {
    const auto tenths = (apart_ms < 0 ? -apart_ms : apart_ms) / 100;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s " +
           (apart_ms > 0 ? "ahead of" : "behind");
}

class examination {
  public:
    enum class tables : std::uint8_t { made, none };

    examination(asking ask, bool pooled, const address& where, tables there)
        : ask_(std::move(ask)), pooled_(pooled), there_(there), where_(where) {}

    std::vector<finding> run() {
        const auto told = ask_(state_question);
        if (!told.fault.empty() || told.rows.size() != 1 || told.rows[0].size() != column_count) {
            add("server", grade::problem, "cannot be asked: " + core::printable(told.fault));
            return std::move(found_);
        }
        state_ = told.rows[0];
        add("server", grade::ok, "PostgreSQL " + core::printable(state_[version]));
        path();
        durability();
        replication();
        settings();
        load();
        locks();
        clock();
        if (there_ == tables::none) {
            right_to_make();
        } else {
            rights();
            records();
        }
        const auto guarded = findings_of_data_layer(ask_, where_);
        found_.insert(found_.end(), guarded.begin(), guarded.end());
        return std::move(found_);
    }

  private:
    void add(std::string subject, grade state, std::string what, std::string advice = "") {
        found_.push_back({std::move(subject), state, std::move(what), std::move(advice)});
    }

    void path() {
        if (!pooled_) {
            add("connection", grade::ok, "direct: waiters are woken by the release");
            return;
        }
        add("connection",
            grade::warning,
            "through a pooler: no notifications arrive, and whoever waits looks every 100 ms",
            "name the server itself where waiting must be quick");
        if (state_[isolation] != "read committed") {
            add("isolation",
                grade::problem,
                "default_transaction_isolation is " + core::printable(state_[isolation]) +
                    ", and through a pooler dibs sets nothing: every step is refused",
                "ALTER ROLE … SET default_transaction_isolation = 'read committed'");
        }
        const auto limit = number(state_[statement_timeout_ms]);
        if (limit > 0 && limit < short_timeout_ms) {
            add("statement timeout",
                grade::warning,
                "statement_timeout is " + std::to_string(limit) +
                    " ms: a slow commit is cancelled, and the step refused",
                "give the user of dibs a longer one");
        }
    }

    void durability() {
        if (state_[fsync] != "on") {
            add("durability",
                grade::problem,
                "fsync is off: after a crash of the host grants, results and holds may be gone, or "
                "the whole database",
                "set fsync = on");
        } else if (state_[full_page_writes] != "on") {
            add("durability",
                grade::warning,
                "full_page_writes is off: a crash of the host may leave damaged pages",
                "set full_page_writes = on, unless the file system cannot tear pages");
        } else {
            add("durability", grade::ok, "fsync is on; grants and results wait for the disk");
        }
    }

    void replication() {
        const bool waits = !state_[standby_names].empty();
        if (number(state_[standbys]) == 0 && !waits) {
            return;
        }
        if (waits && number(state_[standbys]) == 0) {
            add("standbys",
                grade::problem,
                "commits wait for a standby (synchronous_standby_names), and none is connected: "
                "what asks for a key is in doubt until one is",
                "bring the standby back, or change synchronous_standby_names");
        } else if (number(state_[kept_by_standbys]) > 0) {
            add("standbys",
                grade::problem,
                "sessions that wait for a synchronous standby for longer than 2 s: " +
                    core::printable(state_[kept_by_standbys]),
                "see pg_stat_replication on the server");
        } else if (waits) {
            add("standbys", grade::ok, "commits wait for a standby (synchronous_standby_names)");
        } else {
            add("standbys",
                grade::warning,
                core::printable(state_[standbys]) +
                    " connected; copying is asynchronous: a standby that is promoted may not know "
                    "of a lease that is held",
                "set synchronous_standby_names, or check fences where the work is done");
        }
    }

    void settings() {
        if (state_[autovacuum] != "on") {
            add("autovacuum",
                grade::warning,
                "it is off: the tables of dibs grow with every step",
                "set autovacuum = on");
        }
        if (number(state_[longest_transaction]) > long_transaction_s) {
            add("transactions",
                grade::warning,
                "one has been open for " +
                    std::to_string(number(state_[longest_transaction]) / 3600) +
                    " h: until it ends nothing is cleaned up, and steps become slower",
                "see xact_start in pg_stat_activity; set idle_in_transaction_session_timeout");
        }
    }

    void load() {
        const auto used = number(state_[sessions]);
        const auto most = number(state_[max_connections]);
        if (most > 0 && used * 10 >= most * 9) {
            add("connections",
                grade::warning,
                std::to_string(used) + " of " + std::to_string(most) +
                    " are in use: who opens a store next may be refused",
                "raise max_connections, or put PgBouncer in front");
        }
    }

    void clock() {
        timespec here{};
        ::clock_gettime(CLOCK_REALTIME, &here);
        const auto apart = number(state_[clock_ms]) -
                           (static_cast<long long>(here.tv_sec) * 1000 + here.tv_nsec / 1'000'000);
        const bool near = apart >= -clock_apart_max_ms && apart <= clock_apart_max_ms;
        add("clock",
            near ? grade::ok : grade::warning,
            near ? "the server's clock and this host's agree"
                 : "the server's clock is " + in_words(apart) + " this host's",
            near
                ? ""
                : "let both follow NTP, and slew: a step of the server's clock moves every expiry");
    }

    void right_to_make() {
        const auto told = ask_(
            "SELECT n.oid IS NOT NULL, has_database_privilege(current_database(), 'CREATE'), "
            "has_schema_privilege(n.oid, 'CREATE') AND has_schema_privilege(n.oid, 'USAGE') "
            "FROM (SELECT 1) one LEFT JOIN pg_namespace n ON n.nspname = " +
            where_.schema_literal());
        if (told.rows.size() != 1 || told.rows[0].size() != 3) {
            return;
        }
        const bool is_there = told.rows[0][0] == "t";
        if (told.rows[0][is_there ? 2 : 1] == "t") {
            add("rights", grade::ok, "this user may make the tables");
            return;
        }
        add("rights",
            grade::problem,
            "this user may not make the tables: no CREATE " +
                (is_there ? "in the schema " + core::printable(where_.schema)
                          : std::string{"on the database, and there is no schema for them"}),
            "let another user take the first lease, or: GRANT CREATE ON " +
                (is_there ? "SCHEMA " + where_.quoted_schema() : std::string{"DATABASE …"}) +
                " TO …; docs/stores/postgres.md lists what is needed after that");
    }

    void rights() {
        const auto told = ask_(missing_rights());
        if (!told.fault.empty()) {
            add("rights", grade::warning, "cannot be looked at: " + core::printable(told.fault));
            return;
        }
        std::string missing;
        for (const auto& row : told.rows) {
            missing += (missing.empty() ? "" : ", ") + core::printable(row.at(0));
        }
        if (missing.empty()) {
            add("rights", grade::ok, "all that dibs needs");
        } else {
            add("rights",
                grade::problem,
                "missing: " + missing,
                "grant what docs/stores/postgres.md lists");
        }
    }

    /// A row for each, as `INSERT on lease` or `EXECUTE on pg_notify(text,text)`.
    [[nodiscard]] std::string missing_rights() const {
        const auto in_schema = "n.nspname = " + where_.schema_literal();
        std::string text =
            "SELECT w.p || ' on ' || c.relname FROM pg_class c JOIN pg_namespace n "
            "ON n.oid = c.relnamespace, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) "
            "WITH ORDINALITY AS w(p, at) WHERE " +
            in_schema +
            " AND (c.relname IN ('lease', 'lease_grant', 'lease_ticket', 'lease_waiter', "
            "'lease_epoch') OR (w.at = 1 AND c.relname IN ('lease_format', 'lease_session'))) "
            "AND NOT has_table_privilege(c.oid, w.p) "
            "UNION ALL SELECT 'all rows of ' || c.relname || ' (row level security)' FROM pg_class "
            "c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE " +
            in_schema +
            " AND c.relname ~ '^lease' AND c.relkind = 'r' AND row_security_active(c.oid) "
            "UNION ALL SELECT 'EXECUTE on ' || p.oid::regprocedure FROM pg_proc p "
            "JOIN pg_namespace n ON n.oid = p.pronamespace WHERE " +
            in_schema +
            " AND p.proname ~ '^(lease|session)_[a-z_]+_[0-9]+$' "
            "AND NOT has_function_privilege(p.oid, 'EXECUTE')";
        if (where_.by_session()) {
            text +=
                " UNION ALL SELECT 'EXECUTE on ' || p.oid::regprocedure FROM pg_proc p WHERE "
                "p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN "
                "('pg_try_advisory_lock', 'pg_try_advisory_lock_shared', 'pg_advisory_unlock', "
                "'pg_advisory_unlock_shared', 'pg_advisory_unlock_all', 'pg_terminate_backend', "
                "'pg_notify') AND NOT has_function_privilege(p.oid, 'EXECUTE')";
        }
        return text + " ORDER BY 1";
    }

    /// The server's table of locks is everybody's: whoever fills it stops others, too.
    void locks() {
        const auto used = number(state_[locks_used]);
        const auto most = number(state_[locks_max]);
        const auto text = std::to_string(used) + " of " + std::to_string(most) +
                          " places in the server's table are taken, " +
                          core::printable(state_[advisory_locks]) + " of them by advisory locks";
        if (most > 0 && used * 4 >= most * 3) {
            add("locks",
                grade::warning,
                text + ": when it is full, statements of everybody fail",
                "raise max_locks_per_transaction" +
                    std::string{where_.by_session() ? ", or keep leases as rows (postgres://…)"
                                                    : ""});
        } else {
            add("locks", grade::ok, text);
        }
    }

    void records() {
        const auto told =
            ask_("SELECT (SELECT count(*) FROM " + where_.quoted_schema() +
                 ".lease WHERE expires > (date_part('epoch', clock_timestamp()) * 1e6)::bigint), "
                 "(SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass($dibs$" +
                 where_.quoted_schema() +
                 ".lease$dibs$)), pg_size_pretty(pg_total_relation_size("
                 "to_regclass($dibs$" +
                 where_.quoted_schema() + ".lease$dibs$)))");
        if (told.fault.empty() && told.rows.size() == 1 && told.rows[0].size() == 3) {
            add("records",
                grade::ok,
                core::printable(told.rows[0][0]) + " held; the table takes " +
                    core::printable(told.rows[0][2]));
        }
    }

    const asking ask_;
    const bool pooled_;
    const tables there_;
    const address& where_;
    std::vector<std::string> state_;
    std::vector<finding> found_;
};

}  // namespace

std::vector<finding> diagnose(engine& through, core::environment env, const address& where) {
    const auto put = [&](const std::string& sql) { return ask(through, env, sql); };
    return examination{put, !through.listens(), where, examination::tables::made}.run();
}

std::vector<finding> survey(core::environment env, const address& where) {
    const statements none{where.quoted_schema()};
    link over{where, none, ""};
    over.open(env.time.now());
    if (auto why = greeted(over, env); why.error) {
        return {{"store", grade::problem, why.detail, ""}};
    }
    const auto put = [&](const std::string& sql) {
        const auto told = converse(over, env, as_in_our_sessions + sql, patience);
        return told.result ? rows_of(&told, {}) : rows_of(nullptr, over.fault());
    };
    // By the catalogue, which everybody may read.
    const auto there =
        put("SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
            "c.relname = 'lease_format' AND n.nspname = " +
            where.schema_literal());
    if (!there.fault.empty()) {
        return {{"store", grade::problem, where.shown + ": " + there.fault, ""}};
    }
    if (!there.rows.empty()) {
        return {};
    }
    std::vector<finding> found{
        {"store", grade::warning, where.shown + ": " + no_tables_yet(where), ""}};
    bool pooled = over.pooled();
    if (pooled && where.by_session()) {
        if (const auto why = check_pooler(over, env, where); why.error) {
            found.push_back({"connection", grade::problem, why.detail, ""});
            return found;
        }
        pooled = false;
    }
    auto more = examination{put, pooled, where, examination::tables::none}.run();
    found.insert(found.end(), more.begin(), more.end());
    return found;
}

}  // namespace dibs::store::postgres
