// SPDX-License-Identifier: Apache-2.0
// dibs guard: the data layer of PostgreSQL, printed and installed.
#include "cli/options/command_support.hpp"
#include "cli/output/redact.hpp"
#include "cli/output/speech.hpp"
#include "guard/install.hpp"
#include "guard/script.hpp"
#include "store/postgres/address.hpp"

#include <array>
#include <string>
#include <string_view>

namespace dibs::cli {

namespace {

constexpr std::array options{
    option{"schema",
           0,
           "NAME",
           "the schema for its functions and tables (default: that of\nthe store's URL, which is "
           "dibs)"},
    option{"store", 0, "URL", "the database, postgres://… (default: $DIBS_STORE, the settings)"},
    quiet_option,
    help_option,
};

constexpr std::array<std::string_view, 2> actions{"install", "sql"};

const command_syntax syntax{
    .name = "guard",
    .usage = "dibs guard install | sql [OPTIONS]",
    .summary =
        "Functions for a PostgreSQL database by which the data itself refuses late and lost\n"
        "writers, from any language.\n"
        "\n"
        "  install   puts them into the database, or brings them up to date\n"
        "  sql       prints what install would run, for review or for your own migrations",
    .options = options,
    .operands_max = 1,
    .choices = actions,
    .notes =
        "install may be repeated, and changes nothing where a newer release was installed (78).\n"
        "It needs CREATE on the database, or a schema that it owns. Afterwards:\n"
        "\n"
        "  SELECT dibs.protect('product');      a table refuses writes with an older fence\n"
        "  SELECT dibs.allow('app');            a role may claim keys and keep requests\n"
        "  SELECT * FROM dibs.guard_report();   what is protected, and what was refused\n"
        "\n"
        "exit status: 0 done; 64 usage; 69 the database cannot be reached, or failed; 78 rights, "
        "or a\n"
        "newer release.",
    .examples =
        "  dibs guard install --store postgres://localhost/shop\n"
        "  dibs guard sql | psql -v ON_ERROR_STOP=1 shop",
};

/// Errors: usage_error.
store::postgres::address database_in(const std::string& url) {
    if (!url.starts_with("postgres://") && !url.starts_with("postgresql://")) {
        throw usage_error("dibs guard install is for postgres://…, and the store is " +
                          redact_url(url));
    }
    std::string why;
    const auto where = store::postgres::parse_address(url, why);
    if (!where) {
        throw configuration_error(redact_url(url) + ": " + why);
    }
    return *where;
}

std::string checked_schema(const std::string& name) {
    if (!guard::is_schema_name(name)) {
        throw usage_error(
            "--schema is up to 63 small letters, digits and underscores, no digit first and "
            "no pg_, not " +
            as_given(name));
    }
    return name;
}

}  // namespace

const command_syntax& guard_syntax() {
    return syntax;
}

int guard_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto action = found.operands.empty() ? std::string{} : found.operands.front();
    if (action != "install" && action != "sql") {
        throw usage_error("dibs guard install, or dibs guard sql? see dibs guard --help");
    }
    const auto* schema_given = found.value("schema");
    if (action == "sql") {
        if (found.has("store")) {
            throw usage_error("--store does not go with dibs guard sql, which asks no database");
        }
        deliver(guard::script(checked_schema(schema_given != nullptr ? *schema_given : "dibs")));
        return exit_status::ok;
    }
    const auto* flag = found.has("store") ? found.value("store") : global.store;
    const auto store =
        settle_store(flag, find_settings(real_surroundings()), true, store_use::existing);
    const auto where = database_in(store.url);
    const auto schema = checked_schema(schema_given != nullptr ? *schema_given : where.schema);
    try {
        guard::install(where.uri, schema);
    } catch (const error& trouble) {
        const bool rights_or_release = trouble.code() == condition::invalid_argument ||
                                       trouble.code() == condition::unsupported;
        throw failure(rights_or_release ? exit_status::configuration : exit_status::unavailable,
                      where.shown + ": " + trouble.what());
    }
    if (!found.has("quiet")) {
        say_at_terminal("schema " + schema + " of " + where.shown + " is up to date");
    }
    return exit_status::ok;
}

}  // namespace dibs::cli
