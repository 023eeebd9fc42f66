// SPDX-License-Identifier: Apache-2.0
// FL12: the store throws records away for want of memory.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class eviction final : public recurring_fault {
  public:
    eviction(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, core::milliseconds{200}, std::chrono::seconds{15}) {}

  private:
    void strike() override {
        if (const auto fallen = scene_.store().evict(random_)) {
            note_fault(scene_, "eviction", *fallen);
        }
    }
};

}  // namespace

std::unique_ptr<fault> make_eviction(scene& on, random chosen_by) {
    return std::make_unique<eviction>(on, chosen_by);
}

}  // namespace dibs::simulation
