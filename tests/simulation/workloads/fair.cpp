// SPDX-License-Identifier: Apache-2.0
// Everybody stands in the queue of one key all the time: whoever gives it back asks again at once. So
// once the faults are over, all get it equally often.

#include "recipes/mutex_parts.hpp"
#include "simulation/workloads/caller.hpp"
#include "simulation/workloads/guarded_counter.hpp"
#include "simulation/workloads/workload.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

class fair final : public workload {
  public:
    explicit fair(scene& on) : scene_(on), counter_(on, "k0") {}

    void employ(client_process& newcomer) override {
        for (unsigned at = 0; at < scene_.drawn.callers; ++at) {
            auto mine = std::make_shared<caller>(caller{newcomer, scene_.world.now()});
            callers_.push_back(mine);
            newcomer.self().post([this, mine] { ask(mine); });
        }
    }

    void judge() override {
        counter_.judge();
        const auto shown = grants_per_caller();
        if (shown && shown->most > shown->least + 2) {
            scene_.complain("of those who stood in the queue all the time, one got the key " +
                            std::to_string(shown->most) + " times and another " +
                            std::to_string(shown->least) + " times");
        }
    }

    [[nodiscard]] std::optional<spread> grants_per_caller() const override {
        std::optional<spread> shown;
        for (const auto& one : callers_) {
            if (one->by.alive() && one->since < counts_from()) {
                shown = shown ? spread{std::min(shown->least, one->grants),
                                       std::max(shown->most, one->grants)}
                              : spread{one->grants, one->grants};
            }
        }
        return shown;
    }

  private:
    struct caller {
        client_process& by;
        sim_time since{};
        std::uint64_t grants = 0;  ///< since all was well
    };
    using caller_ptr = std::shared_ptr<caller>;

    /// What the faults have left behind is over: late messages, tickets of the dead.
    [[nodiscard]] sim_time counts_from() const {
        return scene_.drawn.faults_for + recipes::ticket_time + 3 * scene_.drawn.ttl;
    }

    void ask(const caller_ptr& mine) {
        acquire_options asked;
        asked.ttl = scene_.drawn.ttl;
        asked.wait = std::chrono::minutes{5};
        asked.order = order::queue;
        asked.timeout = std::chrono::seconds{5};
        const operation call;
        acquire(mine->by, counter_.key(), asked, call, [this, mine](auto held) {
            if (!held) {
                mine->by.self().post_in(core::milliseconds{1}, [this, mine] { ask(mine); });
                return;
            }
            mine->grants += scene_.world.now() >= counts_from() ? 1 : 0;
            work(mine, std::move(held));
        });
    }

    void work(const caller_ptr& mine, std::unique_ptr<held_lease> held) {
        const auto parties = std::int64_t{scene_.drawn.processes} * scene_.drawn.callers;
        counter_.increment(mine->by,
                           std::move(held),
                           core::nanoseconds{std::chrono::seconds{3}} / parties,
                           [this, mine](std::unique_ptr<held_lease> back) {
                               give_back(
                                   mine->by, std::move(back), [this, mine](bool) { ask(mine); });
                           });
    }

    scene& scene_;
    guarded_counter counter_;
    std::vector<caller_ptr> callers_;
};

}  // namespace

std::unique_ptr<workload> make_fair(scene& on) {
    return std::make_unique<fair>(on);
}

}  // namespace dibs::simulation
