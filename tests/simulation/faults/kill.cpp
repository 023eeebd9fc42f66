// SPDX-License-Identifier: Apache-2.0
// FL4: a process is killed, at any step. Another one takes its place after a while.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class kill final : public recurring_fault {
  public:
    kill(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, core::milliseconds{200}, std::chrono::seconds{12}) {}

  private:
    void strike() override {
        scene_.kill(some_seat(), random_.skewed(core::milliseconds{1}, std::chrono::seconds{5}));
    }
};

}  // namespace

std::unique_ptr<fault> make_kill(scene& on, random chosen_by) {
    return std::make_unique<kill>(on, chosen_by);
}

}  // namespace dibs::simulation
