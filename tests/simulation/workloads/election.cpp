// SPDX-License-Identifier: Apache-2.0
// Elections: everybody stands by, leads for a while behind a fence and resigns; everybody observes. The terms that an
// observer is told of never fall.

#include "client/checked_options.hpp"
#include "recipes/observation.hpp"
#include "simulation/workloads/caller.hpp"
#include "simulation/workloads/guarded_counter.hpp"
#include "simulation/workloads/workload.hpp"

#include <memory>
#include <string>
#include <utility>

namespace dibs::simulation {

namespace {

class election final : public workload {
  public:
    explicit election(scene& on) : scene_(on), commanded_(on, "leader") {}

    void employ(client_process& newcomer) override {
        observe(newcomer);
        for (unsigned at = 0; at < scene_.drawn.callers; ++at) {
            rest(newcomer);
        }
    }

    void judge() override {
        commanded_.judge();
        if (led_ > 20 && seen_ == 0) {
            scene_.complain("no observer saw any leader");
        }
    }

  private:
    struct witness {
        std::shared_ptr<recipes::observation> recipe;
        core::fence_number last = 0;
    };

    void observe(client_process& by) {
        auto made = std::make_shared<witness>();
        by.after_client([made] { made->recipe.reset(); });
        const core::nanoseconds ttl = scene_.drawn.ttl;
        const auto every = scene_.chance.between(ttl / 10, ttl);
        by.self().post([this, &by, made, every] {
            auto& core = *by.core();
            made->recipe =
                recipes::observation::start(core.env(),
                                            core.store(),
                                            commanded_.key(),
                                            every,
                                            [this, &by, made_by = std::weak_ptr<witness>(made)](
                                                const recipes::leader_seen& told) {
                                                const auto who = made_by.lock();
                                                if (who && by.alive()) {
                                                    seen(by, *who, told);
                                                }
                                            });
        });
    }

    void seen(client_process& by, witness& who, const recipes::leader_seen& told) {
        if (told.term < who.last) {
            scene_.complain(by.name() + " was told of term " + std::to_string(told.term) +
                            " after " + std::to_string(who.last));
        }
        who.last = told.term;
        seen_ += told.who ? 1 : 0;
    }

    void rest(client_process& by) {
        const auto pause = scene_.chance.skewed(core::microseconds{50}, scene_.drawn.rest_most);
        by.self().post_in(pause, [this, &by] { stand_by(by); });
    }

    void stand_by(client_process& by) {
        if (by.core()->closed()) {
            return;
        }
        acquire_options options;
        options.ttl = scene_.drawn.ttl;
        options.wait = std::chrono::minutes{5};
        options.timeout = core::milliseconds{scene_.chance.between(50, 5000)};
        const operation call;
        acquire(by, commanded_.key(), options, call, [this, &by](std::unique_ptr<held_lease> held) {
            if (!held) {
                rest(by);
                return;
            }
            lead(by, std::move(held), static_cast<unsigned>(scene_.chance.between(1, 4)));
        });
    }

    void lead(client_process& by, std::unique_ptr<held_lease> held, unsigned orders) {
        ++led_;
        commanded_.increment(by,
                             std::move(held),
                             scene_.drawn.work_most / 2,
                             [this, &by, orders](std::unique_ptr<held_lease> back) {
                                 if (orders > 1 && back->held()) {
                                     lead(by, std::move(back), orders - 1);
                                     return;
                                 }
                                 give_back(by, std::move(back), [this, &by](bool) { rest(by); });
                             });
    }

    scene& scene_;
    guarded_counter commanded_;
    std::uint64_t led_ = 0;
    std::uint64_t seen_ = 0;
};

}  // namespace

std::unique_ptr<workload> make_election(scene& on) {
    return std::make_unique<election>(on);
}

}  // namespace dibs::simulation
