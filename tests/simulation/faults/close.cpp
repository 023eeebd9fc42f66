// SPDX-License-Identifier: Apache-2.0
// A process ends in good order: its client gives back what it has and settles what is in doubt, as far
// as its patience goes. Another one takes its place.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class close final : public recurring_fault {
  public:
    close(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, core::milliseconds{200}, std::chrono::seconds{12}) {}

  private:
    void strike() override {
        // The client takes a second at most, where the store does not answer.
        scene_.close(some_seat(),
                     random_.skewed(core::microseconds{100}, core::milliseconds{1200}),
                     random_.skewed(core::milliseconds{1}, std::chrono::seconds{2}));
    }
};

}  // namespace

std::unique_ptr<fault> make_close(scene& on, random chosen_by) {
    return std::make_unique<close>(on, chosen_by);
}

}  // namespace dibs::simulation
