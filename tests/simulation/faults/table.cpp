// SPDX-License-Identifier: Apache-2.0
// Every fault, by name. A new one is one file and one entry.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

std::unique_ptr<fault> make_kill(scene& on, random chosen_by);
std::unique_ptr<fault> make_lossy(scene& on, random chosen_by);
std::unique_ptr<fault> make_partition(scene& on, random chosen_by);
std::unique_ptr<fault> make_pause(scene& on, random chosen_by);

const std::vector<fault_kind>& fault_kinds() {
    static const std::vector<fault_kind> all{
        {.name = "kill",
         .about = "processes are killed",
         .excuses = "",
         .per_mille = 400,
         .suits = &suits_all,
         .make = &make_kill},
        {.name = "lossy",
         .about = "messages are lost, late, repeated, reordered",
         .excuses = "",
         .per_mille = 400,
         .suits = &suits_networks,
         .make = &make_lossy},
        {.name = "partition",
         .about = "a process and the store cannot reach each other",
         .excuses = "",
         .per_mille = 400,
         .suits = &suits_networks,
         .make = &make_partition},
        {.name = "pause",
         .about = "processes do not run for a while",
         .excuses = "",
         .per_mille = 500,
         .suits = &suits_all,
         .make = &make_pause},
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
