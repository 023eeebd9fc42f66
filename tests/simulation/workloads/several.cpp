// SPDX-License-Identifier: Apache-2.0
// Several keys at once: callers want sets of keys that overlap, named in any order, all or none. What is handed over is
// all there and all held; who gets nothing keeps nothing; nobody waits in a circle, or for longer than he wanted to. That
// a key has one holder at a time, and that leases which were taken on the way are not left behind, the checker says.

#include "client/checked_options.hpp"
#include "recipes/several_keys.hpp"
#include "simulation/workloads/lease_notes.hpp"
#include "simulation/workloads/workload.hpp"

#include <dibs/lease_set.hpp>

#include <algorithm>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

class overlapping_sets final : public workload {
  public:
    explicit overlapping_sets(scene& on) : scene_(on) {
        const auto count = on.chance.between(std::int64_t{3}, std::int64_t{5});
        for (std::int64_t at = 0; at < count; ++at) {
            keys_.push_back("k" + std::to_string(at));
        }
    }

    void employ(client_process& newcomer) override {
        for (unsigned at = 0; at < std::min(scene_.drawn.callers, 3U); ++at) {
            rest(newcomer);
        }
    }

    void judge() override {
        for (const auto& one : open_) {
            // Who races while others stand in a queue may go on to lose.
            if (!one->queues) {
                continue;
            }
            if (one->by.alive() && !one->by.core()->closed() &&
                one->began <= scene_.drawn.faults_for) {
                scene_.complain(one->by.name() + " waits for " + named(one->names) +
                                " since before the faults were over");
            }
        }
    }

  private:
    struct turn {
        turn(client_process& in, std::vector<std::string> wanted)
            : by(in), names(std::move(wanted)) {}

        client_process& by;
        const std::vector<std::string> names;
        sim_time began{};
        core::nanoseconds longest{};  ///< that the call may take
        bool queues = false;
        bool calm = false;  ///< nothing of the faults was left when it began
        std::shared_ptr<lease_notes> notes;
        std::shared_ptr<recipes::several_keys> call;
        std::vector<std::unique_ptr<held_lease>> leases;
    };
    using turn_ptr = std::shared_ptr<turn>;

    static std::string named(const std::vector<std::string>& names) {
        std::string told;
        for (const auto& one : names) {
            told += (told.empty() ? "" : " and ") + one;
        }
        return told;
    }

    void rest(client_process& by) {
        const auto pause =
            scene_.chance.skewed(core::milliseconds{1}, scene_.drawn.faults_for / 20);
        by.self().post_in(pause, [this, &by] {
            if (!by.core()->closed()) {
                begin(by);
            }
        });
    }

    [[nodiscard]] std::vector<std::string> some_keys() {
        auto left = keys_;
        std::vector<std::string> names;
        const auto count = static_cast<std::size_t>(scene_.chance.between(2, 3));
        while (names.size() < count) {
            const auto at = scene_.chance.below(left.size());
            names.push_back(left[at]);
            left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
        }
        return names;
    }

    [[nodiscard]] acquire_options options() {
        auto& chance = scene_.chance;
        acquire_options asked;
        asked.ttl = scene_.drawn.ttl;
        switch (chance.below(4)) {
            case 0:
                break;
            case 1:
                asked.wait = core::milliseconds{chance.between(1, 3 * asked.ttl.count())};
                break;
            default:
                asked.wait = std::chrono::minutes{5};
        }
        asked.timeout = core::milliseconds{chance.between(50, 5000)};
        asked.order = chance.chance(500) ? order::queue : order::race;
        asked.renew = !chance.chance(100);
        return asked;
    }

    void begin(client_process& by) {
        const auto asked = options();
        auto mine = std::make_shared<turn>(by, some_keys());
        mine->began = scene_.world.now();
        mine->longest = std::max(asked.wait, asked.timeout);
        mine->queues = asked.order == order::queue;
        mine->calm = all_is_well();
        mine->notes = std::make_shared<lease_notes>(by);
        open_.push_back(mine);
        mine->call = recipes::several_keys::start(
            by.core()->env(),
            by.core()->mutex(),
            mine->names,
            detail::terms_of(asked),
            [this, mine](recipes::several_outcome&& told) { ended(mine, std::move(told)); },
            mine->notes);
        if (!scene_.healed() && scene_.chance.chance(scene_.drawn.cancel_per_mille)) {
            by.self().post_in(scene_.chance.skewed(core::nanoseconds{0}, scene_.drawn.ttl), [mine] {
                if (mine->call && !mine->by.core()->closed()) {
                    mine->call->cancel();
                }
            });
        }
    }

    void ended(const turn_ptr& mine, recipes::several_outcome&& told) {
        mine->call.reset();
        open_.remove(mine);
        auto& by = mine->by;
        if (!by.alive()) {
            return;
        }
        const auto took = scene_.world.now() - mine->began;
        if (mine->calm && took > mine->longest + scheduling) {
            scene_.complain("a call of " + by.name() + " for " + named(mine->names) + " took " +
                            std::to_string(took.count() / 1'000'000) + " ms, and may take " +
                            std::to_string(mine->longest.count() / 1'000'000));
        }
        if (told.leases.empty()) {
            if (mine->notes->taken() > 0) {
                scene_.complain(by.name() + " did not get " + named(mine->names) +
                                ", and has not given back what it had of them");
            }
            rest(by);
            return;
        }
        take(*mine, std::move(told.leases));
        by.self().post([this, mine] { work(mine); });
    }

    void take(turn& mine, std::vector<recipes::lease_ptr>&& granted) {
        auto set = detail::lease_access::make(mine.by.core(), std::move(granted));
        if (set.size() != mine.names.size() || !set.held()) {
            scene_.complain("of " + named(mine.names) + " " + mine.by.name() +
                            " was given some alone, or was given some too late");
        }
        for (const auto& name : mine.names) {
            if (auto* one = set.find(name)) {
                mine.leases.push_back(std::make_unique<held_lease>(mine.by, std::move(*one)));
            }
        }
    }

    void work(const turn_ptr& mine) {
        look(*mine);
        const auto length =
            scene_.chance.between(core::microseconds{10}, scene_.drawn.faults_for / 50);
        mine->by.self().post_in(length, [this, mine] {
            if (mine->by.core()->closed()) {
                return;
            }
            look(*mine);
            finish(mine);
        });
    }

    static void look(turn& mine) {
        for (const auto& one : mine.leases) {
            static_cast<void>(one->held());
        }
    }

    void finish(const turn_ptr& mine) {
        if (mine->leases.empty()) {
            rest(mine->by);
            return;
        }
        auto last = std::move(mine->leases.back());
        mine->leases.pop_back();
        give_back(mine->by, std::move(last), [this, mine](bool) {
            if (!mine->by.core()->closed()) {
                finish(mine);
            }
        });
    }

    /// The faults are over, and what they left behind has ended.
    [[nodiscard]] bool all_is_well() const {
        const auto quiet = 2 * scene_.drawn.ttl + std::chrono::seconds{3};
        return scene_.healed() && scene_.world.now() > scene_.drawn.faults_for + quiet;
    }

    /// A call may be over by its own clock so much later than it should.
    static constexpr core::nanoseconds scheduling = core::milliseconds{250};

    scene& scene_;
    std::vector<std::string> keys_;
    std::list<turn_ptr> open_;
};

}  // namespace

std::unique_ptr<workload> make_several(scene& on) {
    return std::make_unique<overlapping_sets>(on);
}

}  // namespace dibs::simulation
