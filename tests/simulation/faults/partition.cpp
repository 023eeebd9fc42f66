// SPDX-License-Identifier: Apache-2.0
// FL3: a process and the store cannot reach each other, in one direction or in both, or its
// connections break. Half of what was sent meanwhile arrives when the way is open again.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class partition final : public recurring_fault {
  public:
    partition(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, core::milliseconds{300}, std::chrono::seconds{6}) {}

    void heal() override {
        for (auto& one : scene_.seats()) {
            open(one);
        }
        lasting_.clear();
    }

  private:
    void strike() override {
        auto& one = some_seat();
        if (one.now && random_.chance(250)) {
            note_lasting(scene_, "cut", time_to_come_back, one.now->name());
            one.now->cut_connections();
            return;
        }
        const auto which = random_.below(3);
        one.conditions.closed[0] = which != 1;
        one.conditions.closed[1] = which != 0;
        lasting_.push_back(std::make_unique<lasting>(scene_,
                                                     "partition",
                                                     which == 0   ? "to the store"
                                                     : which == 1 ? "to the client"
                                                                  : "both ways"));
        auto* noted = lasting_.back().get();
        const auto length = random_.skewed(core::milliseconds{5}, 3 * scene_.drawn.ttl);
        scene_.world.in(length, [this, &one, noted] {
            if (!scene_.healed()) {
                noted->over();
                open(one);
            }
        });
    }

    void open(seat& one) {
        one.conditions.closed[0] = false;
        one.conditions.closed[1] = false;
        scene_.line_opened(one);
    }

    std::vector<std::unique_ptr<lasting>> lasting_;
};

}  // namespace

std::unique_ptr<fault> make_partition(scene& on, random chosen_by) {
    return std::make_unique<partition>(on, chosen_by);
}

}  // namespace dibs::simulation
