// SPDX-License-Identifier: Apache-2.0
// Once per slot: every process keeps claiming every slot until it hears that the slot is over. A
// slot that may run at most once is begun at most once; one that must run is done in the end.

#include "recipes/once/once.hpp"

#include "client/checked_options.hpp"
#include "simulation/workloads/claims.hpp"
#include "simulation/workloads/workload.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

class once_per_slot final : public workload {
  public:
    explicit once_per_slot(scene& on) : scene_(on) {
        const auto count = scene_.chance.between(std::int64_t{3}, std::int64_t{10});
        for (std::int64_t at = 0; at < count; ++at) {
            auto& one = slots_.emplace_back();
            one.name = "s" + std::to_string(at);
            one.at_most_once = scene_.chance.chance(300);
            one.fails_per_mille = scene_.chance.chance(500) ? 300 : 0;
            const bool must = !one.at_most_once && one.fails_per_mille == 0;
            scene_.history.event("slot")
                .text("key", recipes::key_of_slot(job, one.name))
                .text("policy", one.at_most_once ? "at_most_once" : "at_least_once")
                .flag("must_complete", must);
        }
    }

    void employ(client_process& newcomer) override {
        const auto made = employed<worker>(newcomer, newcomer.core()->store());
        made->open.resize(slots_.size(), true);
        rest(made);
    }

    [[nodiscard]] bool goes_on() const override { return false; }

  private:
    static constexpr std::string_view job = "job";

    struct slot {
        std::string name;
        bool at_most_once = false;
        unsigned fails_per_mille = 0;
    };
    struct worker : claimant<recipes::once> {
        using claimant::claimant;
        std::vector<bool> open;  ///< slots that this process does not know to be over
    };
    using worker_ptr = std::shared_ptr<worker>;

    struct run {
        recipes::once_terms terms;
        recipes::slot_record mine;
        recipes::lease_ptr lease;
        bool fails = false;
    };
    using run_ptr = std::shared_ptr<run>;

    void rest(const worker_ptr& who) {
        const auto pause = scene_.chance.skewed(core::milliseconds{1}, scene_.drawn.rest_most);
        who->by.self().post_in(pause, [this, who] { begin(who); });
    }

    void begin(const worker_ptr& who) {
        if (who->by.core()->closed()) {
            return;
        }
        auto index = scene_.chance.below(slots_.size());
        for (std::size_t tried = 0; !who->open[index]; ++tried) {
            if (tried == slots_.size()) {
                return;
            }
            index = (index + 1) % slots_.size();
        }
        const auto& which = slots_[index];
        const auto options = claim_options(scene_);
        auto mine = std::make_shared<run>();
        mine->terms.job = job;
        mine->terms.slot = which.name;
        mine->terms.acquire = detail::terms_of(options);
        mine->terms.at_most_once = which.at_most_once;
        mine->terms.retries = 1000;
        mine->terms.backoff = scene_.drawn.ttl / 4;
        mine->terms.who.host = who->by.name();
        mine->fails = scene_.chance.chance(which.fails_per_mille);

        const auto key = recipes::key_of_slot(job, which.name);
        const auto call = note_claim(who->by, key, options.ttl);
        who->call = who->recipe->claim(
            mine->terms,
            [this, who, mine, index, call, key, ttl = options.ttl](recipes::once_outcome told) {
                who->call.reset();
                if (who->by.alive()) {
                    claimed_slot(who, mine, index, call, key, ttl, std::move(told));
                }
            });
        cancel_by_chance(scene_, who);
    }

    void claimed_slot(const worker_ptr& who,
                      const run_ptr& mine,
                      std::size_t index,
                      std::uint64_t call,
                      const std::string& key,
                      core::nanoseconds ttl,
                      recipes::once_outcome told) {
        if (!told.lease) {
            const bool over = told.verdict == recipes::once_verdict::done ||
                              told.verdict == recipes::once_verdict::failed;
            if (over) {
                who->open[index] = false;
            }
            note_no_lease(who->by, call, key, told.error);
            rest(who);
            return;
        }
        note_granted(who->by, "acquire", call, ttl, *told.lease);
        mine->lease = std::move(told.lease);
        mine->mine = std::move(told.mine);
        who->by.self().post([this, who, mine] { work(who, mine); });
    }

    void work(const worker_ptr& who, const run_ptr& mine) {
        do_job(scene_,
               who->by,
               *mine->lease,
               mine->lease->held(who->by.self().now()),
               scene_.chance.skewed(core::milliseconds{1}, scene_.drawn.work_most),
               [this, who, mine](std::uint64_t job_call) { finish(who, mine, job_call); });
    }

    void finish(const worker_ptr& who, const run_ptr& mine, std::uint64_t job_call) {
        if (who->by.core()->closed()) {
            return;
        }
        const auto call = note_release(who->by, *mine->lease);
        // A run that did not begin has not ended well.
        const bool success = job_call != 0 && !mine->fails;
        who->recipe->finish(mine->lease,
                            mine->terms,
                            mine->mine,
                            success,
                            success ? 0 : 1,
                            [this, who, key = mine->lease->key(), call, job_call, success](
                                recipes::release_reply told) {
                                if (!who->by.alive()) {
                                    return;
                                }
                                note_released(who->by, call, key, told);
                                note_job_end(who->by, job_call, key, phase_of_run(told, success));
                                rest(who);
                            });
    }

    scene& scene_;
    std::vector<slot> slots_;
};

}  // namespace

std::unique_ptr<workload> make_once(scene& on) {
    return std::make_unique<once_per_slot>(on);
}

}  // namespace dibs::simulation
