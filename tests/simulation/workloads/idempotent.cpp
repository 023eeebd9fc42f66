// SPDX-License-Identifier: Apache-2.0
// Requests that come many times, some of them with another payload under the same key. Work that may be done at most once
// is begun at most once; all who get an answer get the same one, and none that was given for another payload.

#include "recipes/idempotent.hpp"

#include "client/checked_options.hpp"
#include "simulation/workloads/claims.hpp"
#include "simulation/workloads/workload.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

class idempotent_requests final : public workload {
  public:
    explicit idempotent_requests(scene& on) : scene_(on) {
        const auto count = scene_.chance.between(std::int64_t{3}, std::int64_t{10});
        for (std::int64_t at = 0; at < count; ++at) {
            auto& one = requests_.emplace_back();
            one.key = "request-" + std::to_string(at + 1);
            one.at_most_once = scene_.chance.chance(400);
            one.fails_per_mille = scene_.chance.chance(400) ? 300 : 0;
            const bool must = !one.at_most_once && one.fails_per_mille == 0;
            scene_.history.event("slot")
                .text("key", one.key)
                .text("policy", one.at_most_once ? "at_most_once" : "at_least_once")
                .flag("must_complete", must);
        }
    }

    void employ(client_process& newcomer) override {
        const auto made = employed<worker>(newcomer, newcomer.core()->batcher());
        made->open.resize(requests_.size(), true);
        rest(made);
    }

    [[nodiscard]] bool goes_on() const override { return false; }

  private:
    static constexpr std::string_view right_payload = "right";
    static constexpr std::string_view wrong_payload = "wrong";

    struct request {
        std::string key;
        bool at_most_once = false;
        unsigned fails_per_mille = 0;
        std::string answer;  ///< the first that was told, to anybody
    };
    struct worker : claimant<recipes::idempotent> {
        using claimant::claimant;
        std::vector<bool> open;  ///< requests that this process has no answer to
    };
    using worker_ptr = std::shared_ptr<worker>;

    struct run {
        recipes::idempotent_terms terms;
        recipes::idempotent_record mine;
        recipes::lease_ptr lease;
        std::size_t index = 0;
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
        auto index = scene_.chance.below(requests_.size());
        for (std::size_t tried = 0; !who->open[index]; ++tried) {
            if (tried == requests_.size()) {
                return;
            }
            index = (index + 1) % requests_.size();
        }
        const auto& which = requests_[index];
        const auto options = claim_options(scene_);
        auto mine = std::make_shared<run>();
        mine->index = index;
        mine->terms.key = which.key;
        // Once it was answered: before that, a key that was given up is free for any payload.
        const bool wrong = !which.answer.empty() && scene_.chance.chance(200);
        mine->terms.fingerprint = wrong ? wrong_payload : right_payload;
        mine->terms.acquire = detail::terms_of(options);
        mine->terms.at_most_once = which.at_most_once;
        mine->terms.keep = core::result_to_keep::forever;
        mine->terms.who.host = who->by.name();
        mine->fails = scene_.chance.chance(which.fails_per_mille);

        const auto call = note_claim(who->by, which.key, options.ttl);
        who->call = who->recipe->claim(
            mine->terms,
            [this, who, mine, call, ttl = options.ttl](recipes::idempotent_outcome told) {
                who->call.reset();
                if (who->by.alive()) {
                    claimed(who, mine, call, ttl, std::move(told));
                }
            });
        cancel_by_chance(scene_, who);
    }

    void claimed(const worker_ptr& who,
                 const run_ptr& mine,
                 std::uint64_t call,
                 core::nanoseconds ttl,
                 recipes::idempotent_outcome told) {
        auto& which = requests_[mine->index];
        if (!told.lease) {
            const bool wrong = mine->terms.fingerprint == wrong_payload;
            if (told.verdict == recipes::idempotent_verdict::answered) {
                if (wrong) {
                    scene_.complain("the answer of " + which.key + " was told for another payload");
                }
                heard(which, told.found->answer);
                who->open[mine->index] = false;
            } else if (told.verdict == recipes::idempotent_verdict::in_doubt) {
                if (!which.at_most_once) {
                    scene_.complain(which.key + " is in doubt, and may be done again");
                }
                who->open[mine->index] = false;
            } else if (told.verdict == recipes::idempotent_verdict::differs && !wrong) {
                scene_.complain("the payload of " + which.key + " was taken for another one");
            }
            note_no_lease(who->by, call, which.key, told.error);
            rest(who);
            return;
        }
        note_granted(who->by, "acquire", call, ttl, *told.lease);
        if (mine->terms.fingerprint == wrong_payload) {
            scene_.complain(which.key + " was begun with another payload after its answer");
        }
        mine->lease = std::move(told.lease);
        mine->mine = std::move(told.mine);
        who->by.self().post([this, who, mine] { work(who, mine); });
    }

    void heard(request& which, const std::string& answer) {
        if (which.answer.empty()) {
            which.answer = answer;
        } else if (which.answer != answer) {
            scene_.complain("two answers of " + which.key + " were told: " + which.answer +
                            " and " + answer);
        }
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
        auto& which = requests_[mine->index];
        const auto call = note_release(who->by, *mine->lease);
        // With at_most_once every end is an answer.
        const bool success = job_call != 0 && !mine->fails;
        const bool answers = success || (job_call != 0 && which.at_most_once);
        auto record = mine->mine;
        record.state =
            success ? recipes::idempotent_state::done : recipes::idempotent_state::failed;
        record.answer = "by fence " + std::to_string(mine->lease->fence());
        auto told = [this, who, mine, call, job_call, success, answers, answer = record.answer](
                        recipes::release_reply heard_back) {
            if (!who->by.alive()) {
                return;
            }
            auto& of = requests_[mine->index];
            note_released(who->by, call, of.key, heard_back);
            const auto* phase = !heard_back.released ? "info" : success ? "ok" : "fail";
            note_job_end(who->by, job_call, of.key, phase);
            if (heard_back.released && answers) {
                heard(of, answer);
            }
            rest(who);
        };
        if (answers) {
            who->recipe->finish(mine->lease, mine->terms, std::move(record), std::move(told));
        } else {
            who->recipe->abandon(mine->lease, std::move(told));
        }
    }

    scene& scene_;
    std::vector<request> requests_;
};

}  // namespace

std::unique_ptr<workload> make_idempotent(scene& on) {
    return std::make_unique<idempotent_requests>(on);
}

}  // namespace dibs::simulation
