// SPDX-License-Identifier: Apache-2.0
// FL9: the store stops and comes back, in good order or by power loss.

#include "simulation/faults/fault.hpp"

#include <algorithm>

namespace dibs::simulation {

namespace {

class restart final : public recurring_fault {
  public:
    restart(scene& on, random chosen_by, bool by_power_loss)
        : recurring_fault(on, chosen_by, std::chrono::seconds{1}, std::chrono::seconds{15}),
          by_power_loss_(by_power_loss) {}

  private:
    void strike() override {
        const auto left = scene_.drawn.faults_for - scene_.world.now();
        const auto down_for =
            std::min(random_.skewed(core::milliseconds{1}, 2 * scene_.drawn.ttl), left);
        auto& store = scene_.store();
        if (scene_.drawn.store->one_host) {
            // The store's machine is everybody's.
            for (auto& one : scene_.seats()) {
                scene_.kill(one, down_for);
            }
        }
        const auto fallen = by_power_loss_ ? store.lose_power(down_for) : store.restart(down_for);
        if (fallen) {
            note_lasting(scene_,
                         by_power_loss_ ? "power loss" : "restart",
                         down_for + time_to_come_back,
                         {},
                         *fallen);
            scene_.cut_all();
        }
    }

    const bool by_power_loss_;
};

}  // namespace

std::unique_ptr<fault> make_restart(scene& on, random chosen_by) {
    return std::make_unique<restart>(on, chosen_by, false);
}

std::unique_ptr<fault> make_power_loss(scene& on, random chosen_by) {
    return std::make_unique<restart>(on, chosen_by, true);
}

}  // namespace dibs::simulation
