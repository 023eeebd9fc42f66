// SPDX-License-Identifier: Apache-2.0
// Every workload, by name. A new one is one file and one entry.

#include "simulation/workloads/workload.hpp"

namespace dibs::simulation {

std::unique_ptr<workload> make_backlog(scene& on);
std::unique_ptr<workload> make_counter(scene& on);
std::unique_ptr<workload> make_election(scene& on);
std::unique_ptr<workload> make_fair(scene& on);
std::unique_ptr<workload> make_hand_over(scene& on);
std::unique_ptr<workload> make_idempotent(scene& on);
std::unique_ptr<workload> make_once(scene& on);
std::unique_ptr<workload> make_queue(scene& on);
std::unique_ptr<workload> make_register(scene& on);
std::unique_ptr<workload> make_set(scene& on);
std::unique_ptr<workload> make_several(scene& on);
std::unique_ptr<workload> make_shared_leases(scene& on);
std::unique_ptr<workload> make_tokens(scene& on);
std::unique_ptr<workload> make_unfenced(scene& on);
std::unique_ptr<workload> make_waiting(scene& on);

const std::vector<workload_kind>& workload_kinds() {
    static const std::vector<workload_kind> all{
        {.name = "register", .about = "a register behind lock and fence", .make = &make_register},
        {.name = "counter", .about = "a counter behind lock and fence", .make = &make_counter},
        {.name = "set", .about = "a set behind lock and fence", .make = &make_set},
        {.name = "hand-over",
         .about = "leases go from process to process as text",
         .make = &make_hand_over},
        {.name = "idempotent",
         .about = "requests that come many times, and are answered once",
         .make = &make_idempotent,
         .counts_on_results = true},
        {.name = "once",
         .about = "jobs that run once per slot",
         .make = &make_once,
         .counts_on_results = true},
        {.name = "backlog",
         .about = "jobs that make up for slots that were missed, in turn",
         .make = &make_backlog,
         .counts_on_results = true},
        {.name = "election",
         .about = "leaders that resign, standbys, and observers",
         .make = &make_election},
        {.name = "waiting",
         .about = "everybody waits in line for as long as it takes",
         .make = &make_waiting},
        {.name = "queue",
         .about = "everybody waits in the order of arrival",
         .make = &make_queue,
         .queues = true},
        {.name = "fair",
         .about = "everybody stands in the queue all the time, and gets the key equally often",
         .make = &make_fair,
         .queues = true},
        {.name = "shared",
         .about = "permits of a semaphore, readers beside a writer",
         .make = &make_shared_leases,
         .queues = true,
         .shares = true},
        {.name = "several",
         .about = "several keys at once, all or none, in sets that overlap",
         .make = &make_several,
         .queues = true},
        {.name = "tokens",
         .about = "an access token that all share, and one of them refreshes",
         .make = &make_tokens,
         .counts_on_results = true},
        {.name = "unfenced",
         .about = "a counter behind the lock alone; loses updates",
         .make = &make_unfenced,
         .drawn = false},
    };
    return all;
}

const workload_kind* workload_kind_named(std::string_view name) {
    for (const auto& one : workload_kinds()) {
        if (one.name == name) {
            return &one;
        }
    }
    return nullptr;
}

}  // namespace dibs::simulation
