// SPDX-License-Identifier: Apache-2.0
// Every fault, by name. A new one is one file and one entry.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

std::unique_ptr<fault> make_calendar(scene& on, random chosen_by);
std::unique_ptr<fault> make_clock_step(scene& on, random chosen_by);
std::unique_ptr<fault> make_close(scene& on, random chosen_by);
std::unique_ptr<fault> make_drift(scene& on, random chosen_by);
std::unique_ptr<fault> make_eviction(scene& on, random chosen_by);
std::unique_ptr<fault> make_failover(scene& on, random chosen_by);
std::unique_ptr<fault> make_intervention(scene& on, random chosen_by);
std::unique_ptr<fault> make_kill(scene& on, random chosen_by);
std::unique_ptr<fault> make_lossy(scene& on, random chosen_by);
std::unique_ptr<fault> make_partition(scene& on, random chosen_by);
std::unique_ptr<fault> make_pause(scene& on, random chosen_by);
std::unique_ptr<fault> make_power_loss(scene& on, random chosen_by);
std::unique_ptr<fault> make_refusal(scene& on, random chosen_by);
std::unique_ptr<fault> make_restart(scene& on, random chosen_by);
std::unique_ptr<fault> make_suspend(scene& on, random chosen_by);
std::unique_ptr<fault> make_wild_drift(scene& on, random chosen_by);

const std::vector<fault_kind>& fault_kinds() {
    static const std::vector<fault_kind> all{
        {.name = "calendar",
         .about = "calendars differ and are stepped",
         .per_mille = 200,
         .suits = &suits_all,
         .make = &make_calendar},
        {.name = "clock-step",
         .about = "the store's clock is stepped",
         .per_mille = 100,
         .suits = &suits_all,
         .make = &make_clock_step},
        {.name = "close",
         .about = "processes end in good order",
         .per_mille = 200,
         .suits = &suits_all,
         .make = &make_close},
        {.name = "drift",
         .about = "clocks run at rates within the margin",
         .per_mille = 300,
         .suits = &suits_all,
         .make = &make_drift},
        {.name = "eviction",
         .about = "the store forgets records",
         .per_mille = 100,
         .suits = &suits_networks,
         .make = &make_eviction,
         .loses_results = true},
        {.name = "failover",
         .about = "a copy that lags behind takes over",
         .per_mille = 120,
         .suits = &suits_networks,
         .make = &make_failover,
         .loses_results = true},
        {.name = "intervention",
         .about = "an operator ends leases and sets keys on hold",
         .per_mille = 150,
         .suits = &suits_all,
         .make = &make_intervention},
        {.name = "kill",
         .about = "processes are killed",
         .per_mille = 400,
         .suits = &suits_all,
         .make = &make_kill},
        {.name = "lossy",
         .about = "messages are lost, late, repeated, reordered",
         .per_mille = 400,
         .suits = &suits_all,
         .make = &make_lossy},
        {.name = "partition",
         .about = "a process and the store cannot reach each other",
         .per_mille = 400,
         .suits = &suits_networks,
         .make = &make_partition},
        {.name = "pause",
         .about = "processes do not run for a while",
         .per_mille = 500,
         .suits = &suits_all,
         .make = &make_pause},
        {.name = "power-loss",
         .about = "the store's machine loses power",
         .per_mille = 120,
         .suits = &suits_all,
         .make = &make_power_loss},
        {.name = "refusal",
         .about = "the store refuses steps",
         .per_mille = 250,
         .suits = &suits_all,
         .make = &make_refusal},
        {.name = "restart",
         .about = "the store stops and comes back",
         .per_mille = 250,
         .suits = &suits_networks,
         .make = &make_restart},
        {.name = "suspend",
         .about = "machines sleep",
         .per_mille = 250,
         .suits = &suits_all,
         .make = &make_suspend},
        {.name = "wild-drift",
         .about = "clocks run at rates beyond the margin",
         .per_mille = 80,
         .suits = &suits_networks,
         .make = &make_wild_drift},
    };
    return all;
}

const fault_kind* fault_kind_named(std::string_view name) {
    for (const auto& one : fault_kinds()) {
        if (one.name == name) {
            return &one;
        }
    }
    return nullptr;
}

}  // namespace dibs::simulation
