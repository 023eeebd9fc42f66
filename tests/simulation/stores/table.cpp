// SPDX-License-Identifier: Apache-2.0
// Every store model, by name. A new one is one file and one entry.

#include "simulation/stores/store_model.hpp"

namespace dibs::simulation {

std::unique_ptr<store_model> make_reference_store(store_context context);
std::unique_ptr<store_model> make_sqlite_store(store_context context);
std::unique_ptr<store_model> make_redis_store(store_context context);
std::unique_ptr<store_model> make_postgres_store(store_context context);

const std::vector<store_kind>& store_kinds() {
    static const std::vector<store_kind> all{
        {.name = "reference",
         .about = "the rules of the record behind a network, with a replica",
         .one_host = false,
         .weight = 4,
         .make = &make_reference_store},
        {.name = "sqlite",
         .about = "the real database of the SQLite store on a disk in memory",
         .one_host = true,
         .weight = 3,
         .make = &make_sqlite_store},
#ifdef DIBS_SIMULATES_REDIS
        {.name = "redis",
         .about = "the script of the Redis store on a server in memory, with a replica",
         .one_host = false,
         .weight = 2,
         .make = &make_redis_store},
#endif
#ifdef DIBS_SIMULATES_POSTGRES
        {.name = "postgres",
         .about = "the requests of the PostgreSQL store on a server in memory, with a standby",
         .one_host = false,
         .weight = 2,
         .make = &make_postgres_store},
#endif
    };
    return all;
}

const store_kind* store_kind_named(std::string_view name) {
    for (const auto& one : store_kinds()) {
        if (one.name == name) {
            return &one;
        }
    }
    return nullptr;
}

}  // namespace dibs::simulation
