// SPDX-License-Identifier: Apache-2.0
// dibs demo NAME.
#include "cli/commands.hpp"
#include "cli/demo/demos.hpp"
#include "cli/demo/stage.hpp"
#include "cli/options/option_table.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/redact.hpp"
#include "cli/output/speech.hpp"
#ifdef DIBS_WITH_POSTGRES
#include "store/postgres/address.hpp"
#endif

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace dibs::cli {

namespace {

struct demo {
    std::string_view name;
    int (*play)(const demo_scene& scene);
    bool can_be_fast = true;
    bool takes_a_store = true;
    bool by_advisory_locks = true;
    enum class data { of_its_own, may_be_given } where = data::of_its_own;
};

constexpr std::array demos{
    demo{.name = "duplicate-jobs", .play = demo_duplicate_jobs, .can_be_fast = false},
#ifdef DIBS_WITH_SQLITE
    demo{.name = "token-stampede", .play = demo_token_stampede},
    demo{.name = "watchdog", .play = demo_watchdog},
    demo{.name = "blind-release", .play = demo_blind_release},
    demo{.name = "no-expiry", .play = demo_no_expiry},
    demo{.name = "fencing",
         .play = demo_fencing,
         .by_advisory_locks = false,
         .where = demo::data::may_be_given},
    demo{.name = "concurrent-updates",
         .play = demo_concurrent_updates,
         .where = demo::data::may_be_given},
#ifdef DIBS_WITH_REDIS
    demo{.name = "failover", .play = demo_failover, .can_be_fast = false, .takes_a_store = false},
#endif
#endif
};

constexpr auto demo_names = [] {
    std::array<std::string_view, demos.size()> names;
    std::transform(
        demos.begin(), demos.end(), names.begin(), [](const demo& one) { return one.name; });
    return names;
}();

constexpr std::array demo_options{
    option{"store",
           0,
           "URL",
           "the store to show it on, not for failover (default:\nfresh SQLite files, removed "
           "afterwards)"},
    option{"data",
           0,
           "URL",
           "a PostgreSQL database for what the work changes, for\nfencing and concurrent-updates "
           "(default: the store, where\nit is one; else a file)"},
    option{"fast", 0, "", "with shorter times; not for duplicate-jobs and failover"},
    option{"help", 'h', "", "this text"},
};

const command_syntax syntax{
    .name = "demo",
    .usage = "dibs demo NAME [--store URL] [--data URL] [--fast]",
    .summary =
        "Shows with real processes what goes wrong without a lease, and what a lease cannot do.\n"
        "\n"
        "  duplicate-jobs   the same nightly job in three processes, without a lock and with one\n"
        "  token-stampede   fifty requests need a new token, and each refresh kills the one "
        "before\n"
        "  watchdog         work of 12 s under a ttl of 5 s, without renewal and with it\n"
        "  blind-release    a late holder deletes the lock of the next one; and what dibs does\n"
        "  no-expiry        a holder is killed, and its lock has no expiry, or not yet\n"
        "  fencing          a holder is stopped for longer than its lease, and writes too late\n"
        "  concurrent-updates\n"
        "                   two sell from one stock and lose an update; three ways without\n"
        "  failover         a Redis replica takes over, and does not know of the lock: two holders",
    .options = demo_options,
    .operands_max = 1,
    .choices = demo_names,
    .notes =
        "On a server the demos use keys of their own, which expire, and in a database a schema of "
        "their\n"
        "own, which is dropped; it takes the right to make one. failover starts two servers\n"
        "itself, and needs redis-server or valkey-server on the path.\n"
        "\n"
        "exit status: 0 when everything came about as told, else 1; 64 usage; 69 store not "
        "reachable;\n"
        "78 configuration.",
    .examples =
        "  dibs demo duplicate-jobs\n"
        "  dibs demo fencing\n"
        "  dibs demo no-expiry --store redis://localhost\n"
        "  dibs demo concurrent-updates\n"
        "  dibs demo concurrent-updates --data postgres://localhost/test",
};

bool is_postgres(const std::string& url) {
    return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

/// For libpq. Errors: usage_error.
std::string database_in(const std::string& url) {
#ifdef DIBS_WITH_POSTGRES
    std::string why;
    if (const auto where = store::postgres::parse_address(url, why)) {
        return where->uri;
    }
    throw usage_error(redact_url(url) + ": " + why);
#else
    throw usage_error(redact_url(url) + ": this dibs was built without PostgreSQL");
#endif
}

std::string all_names() {
    std::string all;
    for (const auto name : demo_names) {
        all += (all.empty() ? "" : ", ") + std::string(name);
    }
    return all;
}

}  // namespace

const command_syntax& demo_syntax() {
    return syntax;
}

int demo_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (found.has("help")) {
        deliver(help_text(syntax));
        return exit_status::ok;
    }
    const auto name = found.operands.empty() ? std::string{} : found.operands.front();
    const auto* which =
        std::find_if(demos.begin(), demos.end(), [&](const demo& one) { return one.name == name; });
    if (which == demos.end()) {
        throw usage_error("which demo? there are: " + all_names());
    }
    const auto* store = found.value("store") != nullptr ? found.value("store") : global.store;
    if (store != nullptr && !which->takes_a_store) {
        throw usage_error("--store does not go with " + name + ", which starts servers of its own");
    }
    if (store != nullptr && store->starts_with("memory:")) {
        throw usage_error("--store memory: is of one process, and a demo is played by several");
    }
    const bool store_is_database = store != nullptr && is_postgres(*store);
    const auto* data = found.value("data") != nullptr ? found.value("data")
                       : store_is_database            ? store
                                                      : nullptr;
    if (found.has("data") && which->where == demo::data::of_its_own) {
        throw usage_error("--data does not go with " + name);
    }
    if (data != nullptr && which->where != demo::data::of_its_own && !is_postgres(*data)) {
        throw usage_error("--data is postgres://…, not " + redact_url(*data));
    }
    if (found.has("fast") && !which->can_be_fast) {
        throw usage_error("--fast does not go with " + name);
    }
    if (store != nullptr) {
        if (store->starts_with("postgres+advisory:") && !which->by_advisory_locks) {
            throw usage_error(name +
                              " needs leases that end by time; an advisory lock is kept while its "
                              "session lives, also by a holder that is stopped: name postgres://…");
        }
        // Before any process of the demo waits for one that cannot begin.
        (void)open_demo_client(*store);
    }
    const auto database = data != nullptr && which->where != demo::data::of_its_own
                              ? database_in(*data)
                              : std::string{};
    return on_stage([&](const std::string& folder) {
        demo_scene scene;
        scene.folder = folder;
        scene.store = store != nullptr ? *store : "";
        scene.data = database;
        scene.fast = found.has("fast");
        return which->play(scene);
    });
}

}  // namespace dibs::cli
