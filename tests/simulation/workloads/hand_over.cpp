// SPDX-License-Identifier: Apache-2.0
// Leases go from process to process as text. The text is late, lost, delivered twice, to somebody
// who is dead or asleep, or after the lease has expired; whoever sends or adopts may die at any step,
// and any answer may be lost. Never do two believe to hold the lease, and what the first one has
// still under way does no harm to the next.

#include "simulation/workloads/caller.hpp"
#include "simulation/workloads/guarded_counter.hpp"
#include "simulation/workloads/workload.hpp"

#include <deque>
#include <string>
#include <utility>

namespace dibs::simulation {

namespace {

class hand_over_between_processes final : public workload {
  public:
    explicit hand_over_between_processes(scene& on) : scene_(on) {
        for (unsigned at = 0; at < on.drawn.keys; ++at) {
            counters_.emplace_back(on, "k" + std::to_string(at));
        }
    }

    void employ(client_process& newcomer) override {
        for (unsigned at = 0; at < scene_.drawn.callers; ++at) {
            rest(newcomer);
        }
    }

    void judge() override {
        for (auto& one : counters_) {
            one.judge();
        }
    }

  private:
    /// A lease on its way.
    struct parcel {
        guarded_counter& what;
        std::string text;
        unsigned hops = 0;
        bool must_arrive = false;
    };

    void rest(client_process& by) {
        const auto pause = scene_.chance.skewed(core::microseconds{50}, scene_.drawn.rest_most);
        by.self().post_in(pause, [this, &by] { begin(by); });
    }

    void begin(client_process& by) {
        auto& what = counters_[scene_.chance.below(counters_.size())];
        auto asked = options();
        if (scene_.chance.chance(700)) {
            asked.wait = std::chrono::minutes{5};
        }
        const operation call;
        acquire(by, what.key(), asked, call, [this, &by, &what](std::unique_ptr<held_lease> held) {
            if (!held) {
                rest(by);
                return;
            }
            work(by, what, std::move(held), 0);
            // The caller's turn goes on elsewhere.
            rest(by);
        });
    }

    [[nodiscard]] acquire_options options() {
        auto& chance = scene_.chance;
        acquire_options asked;
        asked.ttl = chance.chance(700) ? scene_.drawn.ttl : scene_.drawn.ttl * 3 / 4;
        asked.timeout = core::milliseconds{chance.between(50, 5000)};
        asked.renew = !chance.chance(100);
        return asked;
    }

    void work(client_process& by,
              guarded_counter& what,
              std::unique_ptr<held_lease> held,
              unsigned hops) {
        what.increment(by,
                       std::move(held),
                       scene_.drawn.work_most / 2,
                       [this, &by, &what, hops](std::unique_ptr<held_lease> back) {
                           go_on(by, what, std::move(back), hops);
                       });
    }

    void go_on(client_process& by,
               guarded_counter& what,
               std::unique_ptr<held_lease> held,
               unsigned hops) {
        // Once all is well a lease must not go round while others wait for it.
        const auto hops_most = scene_.healed() ? 1U : 8U;
        if (hops >= hops_most || !scene_.chance.chance(600)) {
            give_back(by, std::move(held), [](bool) {});
            return;
        }
        hand_over(by,
                  std::move(held),
                  [this, &by, &what, hops](std::string text, std::unique_ptr<held_lease> kept) {
                      if (kept) {
                          give_back(by, std::move(kept), [](bool) {});
                          return;
                      }
                      send({what, std::move(text), hops + 1, all_is_well()});
                  });
    }

    void send(const parcel& one) {
        auto& chance = scene_.chance;
        const auto copies = !scene_.healed() && chance.chance(150) ? 2U : 1U;
        for (unsigned at = 0; at < copies; ++at) {
            const auto longest = scene_.healed() ? core::nanoseconds{scene_.drawn.ttl} / 8
                                                 : core::nanoseconds{scene_.drawn.ttl} * 3 / 2;
            const auto delay = chance.skewed(core::microseconds{20}, longest);
            if (scene_.healed() || !chance.chance(50)) {
                scene_.world.in(delay, [this, one] { deliver(one); });
            }
        }
    }

    /// To anybody, also to who sent it.
    void deliver(const parcel& one) {
        auto& seats = scene_.seats();
        auto& to = seats[scene_.chance.below(seats.size())];
        if (to.now && to.now->alive()) {
            to.now->self().post([this, &by = *to.now, one] { receive(by, one, 0); });
        }
    }

    void receive(client_process& by, const parcel& one, unsigned tried) {
        adopt(by,
              one.what.key(),
              one.text,
              options(),
              [this, &by, one, tried](std::unique_ptr<held_lease> held) {
                  if (held) {
                      work(by, one.what, std::move(held), one.hops);
                  } else if (one.must_arrive) {
                      scene_.complain("a lease of " + one.what.key() +
                                      " was handed over, and could not be adopted");
                  } else if (tried < 2 && scene_.chance.chance(300)) {
                      // Whatever became of the first try.
                      const auto pause =
                          scene_.chance.skewed(core::microseconds{50}, scene_.drawn.ttl);
                      by.self().post_in(pause,
                                        [this, &by, one, tried] { receive(by, one, tried + 1); });
                  }
              });
    }

    /// The faults are over, and what they left behind has ended.
    [[nodiscard]] bool all_is_well() const {
        const auto quiet = 2 * scene_.drawn.ttl + std::chrono::seconds{3};
        return scene_.healed() && scene_.world.now() > scene_.drawn.faults_for + quiet;
    }

    scene& scene_;
    std::deque<guarded_counter> counters_;
};

}  // namespace

std::unique_ptr<workload> make_hand_over(scene& on) {
    return std::make_unique<hand_over_between_processes>(on);
}

}  // namespace dibs::simulation
