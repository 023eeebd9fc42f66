// SPDX-License-Identifier: Apache-2.0
// Several hold a key at once: the permits of a semaphore, and readers beside a writer. No recipe asks
// for shares yet, so this is the store's side of it, asked as a recipe would: through the batcher, with
// the undo for what is in doubt.

#include "core/deadline.hpp"
#include "simulation/workloads/caller.hpp"
#include "simulation/workloads/workload.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

class shared final : public workload {
  public:
    explicit shared(scene& on) : scene_(on) {
        for (unsigned at = 0; at < on.drawn.keys; ++at) {
            const bool permits = on.chance.chance(500);
            places_.push_back({"k" + std::to_string(at),
                               permits ? static_cast<std::uint32_t>(on.chance.between(2, 5))
                                       : core::share::unlimited});
        }
    }

    void employ(client_process& newcomer) override {
        for (unsigned at = 0; at < scene_.drawn.callers; ++at) {
            rest(newcomer);
        }
    }

  private:
    struct place {
        std::string key;
        std::uint32_t capacity = 1;
    };
    /// One turn of one caller.
    struct turn {
        client_process& by;
        const place& at;
        core::holder_id holder;
        core::share part;
        std::uint64_t call = 0;
        bool heard = false;
        core::fence_number fence = 0;
        core::instant deadline{};
    };
    using turn_ptr = std::shared_ptr<turn>;

    void rest(client_process& by) {
        const auto pause = scene_.chance.skewed(core::microseconds{50}, scene_.drawn.rest_most);
        by.self().post_in(pause, [this, &by] {
            if (!by.core()->closed()) {
                begin(by);
            }
        });
    }

    /// A writer takes all there is; a reader one, and so does who wants a permit, or two.
    [[nodiscard]] core::share part_of(const place& at) {
        auto& chance = scene_.chance;
        if (at.capacity == core::share::unlimited) {
            return {chance.chance(300) ? core::share::unlimited : 1, core::share::unlimited};
        }
        return {static_cast<std::uint32_t>(chance.chance(200) ? 2 : 1), at.capacity};
    }

    void begin(client_process& by) {
        const auto& at = places_[scene_.chance.below(places_.size())];
        auto mine = std::make_shared<turn>(
            turn{by, at, core::holder_id::draw(by.self().env().random), part_of(at)});
        mine->call = scene_.history.new_id();
        call_line(by, "acquire", "inv", mine->call, at.key)
            .time("ttl_ns", core::nanoseconds{scene_.drawn.ttl})
            .number("weight", mine->part.weight)
            .number("capacity", mine->part.capacity);
        core::acquire asked;
        asked.key = at.key;
        asked.holder = mine->holder;
        asked.ttl = scene_.drawn.ttl;
        asked.part = mine->part;
        const auto patience = core::nanoseconds{scene_.drawn.ttl} / 6;
        by.core()->batcher().submit(
            std::move(asked), patience, by.self().now() + patience, [this, mine](auto&& heard) {
                answered(mine, heard);
            });
    }

    void answered(const turn_ptr& mine, const core::reply& heard) {
        auto& by = mine->by;
        const auto& given = heard.given;
        if (!by.alive() || by.core()->closed()) {
            return;
        }
        if (std::exchange(mine->heard, true)) {
            by.core()->undo().acquire_answered(mine->holder);
            return;
        }
        const bool executed = given.took == core::effect::yes;
        if (executed && given.what == core::verdict::granted) {
            got_it(mine, heard);
            return;
        }
        call_line(by,
                  "acquire",
                  given.took == core::effect::unknown ? "info" : "fail",
                  mine->call,
                  mine->at.key)
            .text("error", executed ? "held" : given.error.message());
        if (given.took == core::effect::unknown) {
            by.core()->undo().settle({.key = mine->at.key,
                                      .holder = mine->holder,
                                      .ttl = scene_.drawn.ttl,
                                      .last_sent = heard.sent,
                                      .not_after = std::nullopt,
                                      .answered = heard.final});
        }
        rest(by);
    }

    void got_it(const turn_ptr& mine, const core::reply& heard) {
        mine->fence = heard.given.fences.first;
        mine->deadline = core::local_deadline(heard.sent, scene_.drawn.ttl);
        call_line(mine->by, "acquire", "ok", mine->call, mine->at.key)
            .number("fence", mine->fence)
            .time("ttl_ns", core::nanoseconds{scene_.drawn.ttl})
            .time("sent_local_ns", heard.sent)
            .time("deadline_local_ns", mine->deadline)
            .number("weight", mine->part.weight)
            .number("capacity", mine->part.capacity);
        const auto length = scene_.chance.skewed(core::microseconds{10}, scene_.drawn.work_most);
        mine->by.self().post_in(length, [this, mine] { finish(mine); });
    }

    void finish(const turn_ptr& mine) {
        auto& by = mine->by;
        if (by.core()->closed()) {
            return;
        }
        const auto call = scene_.history.new_id();
        call_line(by, "release", "inv", call, mine->at.key).number("fence", mine->fence);
        core::release asked;
        asked.key = mine->at.key;
        asked.holder = mine->holder;
        const auto patience = core::nanoseconds{scene_.drawn.ttl} / 6;
        by.core()->batcher().submit(
            std::move(asked),
            patience,
            by.self().now() + patience,
            [this, mine, call, first = true](const core::reply& heard) mutable {
                if (!mine->by.alive() || !std::exchange(first, false)) {
                    return;
                }
                const bool executed = heard.given.took == core::effect::yes;
                const bool released = executed && heard.given.what == core::verdict::released;
                const auto phase = released ? "ok" : executed ? "fail" : "info";
                {
                    auto ended = call_line(mine->by, "release", phase, call, mine->at.key);
                    if (!released) {
                        ended.text("error", executed ? "not_held" : heard.given.error.message());
                    }
                }
                if (!mine->by.core()->closed()) {
                    rest(mine->by);
                }
            });
    }

    scene& scene_;
    std::vector<place> places_;
};

}  // namespace

std::unique_ptr<workload> make_shared_leases(scene& on) {
    return std::make_unique<shared>(on);
}

}  // namespace dibs::simulation
