// SPDX-License-Identifier: Apache-2.0
#include "store/open.hpp"

#include "core/key.hpp"
#include "core/redaction.hpp"
#include "store/memory/memory_store.hpp"

#include <algorithm>
#include <utility>
#ifdef DIBS_WITH_SQLITE
#include "store/sqlite/sqlite_store.hpp"
#endif
#ifdef DIBS_WITH_REDIS
#include "store/redis/redis_store.hpp"
#endif
#ifdef DIBS_WITH_POSTGRES
#include "store/postgres/diagnosis.hpp"
#include "store/postgres/postgres_store.hpp"
#endif
#include "store/url.hpp"

#ifdef DIBS_WITH_SQLITE
#define DIBS_SCHEME_SQLITE "sqlite:, "
#else
#define DIBS_SCHEME_SQLITE ""
#endif
#ifdef DIBS_WITH_REDIS
#ifdef DIBS_WITH_TLS
#define DIBS_SCHEME_REDIS "redis:, rediss:, redis+unix:, "
#else
#define DIBS_SCHEME_REDIS "redis:, redis+unix:, "
#endif
#else
#define DIBS_SCHEME_REDIS ""
#endif
#ifdef DIBS_WITH_POSTGRES
#define DIBS_SCHEME_POSTGRES "postgres:, postgres+advisory:, "
#else
#define DIBS_SCHEME_POSTGRES ""
#endif
#define DIBS_SCHEMES DIBS_SCHEME_SQLITE DIBS_SCHEME_REDIS DIBS_SCHEME_POSTGRES

namespace dibs::store {

namespace {

opened fault(errc code, std::string_view text, const std::string& what) {
    return {nullptr, code, "store " + shown_url(text) + ": " + what};
}

opened open_memory(url where, core::environment env, open_context context, std::string_view text) {
    if (!where.options.empty()) {
        return fault(errc::invalid_url, text, "unknown option " + where.options.begin()->first);
    }
    memory_options options;
    options.name = std::move(where.rest);
    options.who = std::move(context.who);
    options.clock = std::move(context.clock);
    return {make_memory_store(env, std::move(options)), {}, {}};
}

#ifdef DIBS_WITH_SQLITE
opened open_sqlite(url where, core::environment env, open_context context, std::string_view text) {
    sqlite_options options;
    options.who = std::move(context.who);
    for (const auto& [name, value] : where.options) {
        if (name == "create") {
            if (value != "yes" && value != "no") {
                return fault(
                    errc::invalid_url, text, "create is yes or no, not " + core::printable(value));
            }
            options.make = value == "yes";
            continue;
        }
        if (name != "synchronous") {
            return fault(
                errc::invalid_url,
                text,
                "unknown option " + core::printable(name) + "; there are: create, synchronous");
        }
        if (value == "full") {
            options.sync = sqlite_options::durability::full;
        } else if (value != "normal") {
            return fault(errc::invalid_url,
                         text,
                         "synchronous is normal or full, not " + core::printable(value));
        }
    }
    // sqlite:///path is the same as sqlite:/path.
    options.path = where.rest.starts_with("///") ? where.rest.substr(2) : where.rest;
    if (options.path.empty()) {
        return fault(errc::invalid_url, text, "it names no file; write sqlite:/path/to/locks.db");
    }
    if (options.path.starts_with("//")) {
        return fault(errc::invalid_url, text, "a file has no host; write sqlite:/path/to/locks.db");
    }
    opened result;
    result.made = open_sqlite_store(env, std::move(options), result.error, result.detail);
    return result;
}
#endif

#ifdef DIBS_WITH_REDIS
opened open_redis(const url& where,
                  core::environment env,
                  open_context context,
                  std::string_view text) {
    std::string why;
    auto address = redis::parse_address(text, where.options, why);
    if (!address) {
        return fault(errc::invalid_url, text, why);
    }
    redis_options options;
    options.where = std::move(*address);
    options.who = std::move(context.who);
    opened result;
    result.made = open_redis_store(env, std::move(options), result.error, result.detail);
    return result;
}
#endif

#ifdef DIBS_WITH_POSTGRES
bool is_postgres(std::string_view scheme) {
    return scheme == "postgres" || scheme == "postgresql" || scheme == "postgres+advisory" ||
           scheme == "postgresql+advisory";
}

opened open_postgres(core::environment env, open_context context, std::string_view text) {
    std::string why;
    auto address = postgres::parse_address(text, why);
    if (!address) {
        return fault(errc::invalid_url, text, why);
    }
    postgres_options options;
    options.where = std::move(*address);
    options.who = std::move(context.who);
    opened result;
    result.made = open_postgres_store(env, std::move(options), result.error, result.detail);
    return result;
}
#endif

}  // namespace

opened open(std::string_view text, core::environment env, open_context context) {
    std::string why;
    auto where = parse_url(text, why);
    if (!where) {
        return fault(errc::invalid_url, text, why);
    }
    if (where->scheme == "memory") {
        return open_memory(std::move(*where), env, std::move(context), text);
    }
#ifdef DIBS_WITH_SQLITE
    if (where->scheme == "sqlite") {
        return open_sqlite(std::move(*where), env, std::move(context), text);
    }
#endif
#ifdef DIBS_WITH_REDIS
#ifndef DIBS_WITH_TLS
    if (where->scheme == "rediss") {
        return fault(errc::unsupported,
                     text,
                     "this build speaks no TLS: it was made with DIBS_WITH_TLS=OFF");
    }
#endif
    if (where->scheme == "redis" || where->scheme == "rediss" || where->scheme == "redis+unix") {
        return open_redis(*where, env, std::move(context), text);
    }
#endif
#ifdef DIBS_WITH_POSTGRES
    if (is_postgres(where->scheme)) {
        return open_postgres(env, std::move(context), text);
    }
#endif
    return fault(errc::invalid_url,
                 text,
                 "no store of this build has the scheme " + where->scheme +
                     ":; there are " DIBS_SCHEMES "memory:");
}

std::vector<finding> survey([[maybe_unused]] std::string_view text,
                            [[maybe_unused]] core::environment env) {
#ifdef DIBS_WITH_POSTGRES
    std::string why;
    if (const auto where = parse_url(text, why); where && is_postgres(where->scheme)) {
        if (const auto address = postgres::parse_address(text, why)) {
            return postgres::survey(env, *address);
        }
    }
#endif
    return {};
}

std::string shown_url(std::string_view url) {
    return core::printable(core::redacted_url(url), 500);
}

}  // namespace dibs::store
