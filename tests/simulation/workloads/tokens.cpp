// SPDX-License-Identifier: Apache-2.0
// Processes share an access token. The provider kills the previous one at each refresh, and may rotate the credential that
// a refresh takes: one that is presented twice ends the account, and all go on with the next one. Whoever finds its token
// refused says so and gets another one.
//
// C11 judges what the provider saw and what the store kept, of accounts that rotate. Of all: nobody refreshes under a
// grant that came after a good token was kept, while that is neither due nor refused.

#include "client/checked_options.hpp"
#include "recipes/cached/cached_value.hpp"
#include "simulation/faults/fault.hpp"
#include "simulation/workloads/caller.hpp"
#include "simulation/workloads/workload.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

/// The timer behind a wait takes a second or more.
constexpr core::nanoseconds soon = core::milliseconds{200};
constexpr std::string_view token_prefix = "t";
constexpr std::string_view credential_prefix = "c";

std::uint64_t number_in(std::string_view text, std::string_view prefix) {
    return text.starts_with(prefix) ? std::stoull(std::string(text.substr(prefix.size()))) : 0;
}

class tokens final : public workload {
  public:
    explicit tokens(scene& on) : scene_(on), random_(on.chance.split()) {
        accounts_.push_back(new_account());
        // Fresh, and not due: that rests on a calendar which nobody steps.
        calendar_is_steady_ =
            std::none_of(on.drawn.faults.begin(), on.drawn.faults.end(), [](const auto* one) {
                return one->name == "calendar" || one->name == "clock-step" ||
                       one->name == "wild-drift";
            });
        nothing_goes_wrong_ = on.drawn.faults.empty() && on.store().wakes();
        on.laws.on_result = [this](const std::string& key, const std::string& value) {
            kept(key, value);
        };
    }

    void employ(client_process& newcomer) override {
        auto made = std::make_shared<worker>(newcomer);
        // After the client has gone: its calls still look at the recipe.
        newcomer.after_client([made] {
            made->calls.clear();
            made->recipes.clear();
        });
        for (unsigned at = 0; at < scene_.drawn.callers; ++at) {
            rest(made, 0);
        }
    }

    [[nodiscard]] bool goes_on() const override { return true; }

    void judge() override {
        if (served_since_healed_ == 0) {
            scene_.complain("after all faults were over nobody got a token any more");
        }
    }

  private:
    /// At the provider.
    struct account {
        std::string key;
        bool rotates = false;
        core::nanoseconds life{};
        std::uint64_t generation = 0;  ///< of the token and the credential that are good
        sim_time issued{};
        sim_time asked{};        ///< when that fetch began: from then on its life is counted
        bool revoked = false;    ///< a credential was presented twice
        std::uint64_t kept = 0;  ///< the newest generation that the store has kept as good
        core::fence_number kept_by = 0;
        sim_time kept_at{};
    };
    struct worker : std::enable_shared_from_this<worker> {
        explicit worker(client_process& process) : by(process) {}
        client_process& by;
        std::map<std::size_t, std::unique_ptr<recipes::cached_value>> recipes;  ///< by account
        std::map<std::uint64_t, recipes::cached_value::call_ptr> calls;
        std::size_t current = 0;  ///< account in use
    };
    using worker_ptr = std::shared_ptr<worker>;
    using brought = core::unique_function<void(recipes::fetched)>;

    account new_account() {
        account made;
        made.key = "token-" + std::to_string(accounts_.size() + 1);
        made.rotates = random_.chance(600);
        made.life = random_.between(2 * scene_.drawn.ttl, 8 * scene_.drawn.ttl);
        return made;
    }

    // --- what the store keeps --------------------------------------------------------------------

    void kept(const std::string& key, const std::string& value) {
        auto fault = recipes::cached_fault::none;
        const auto record = recipes::cached_outline_of(value, fault);
        const auto at = std::find_if(
            accounts_.begin(), accounts_.end(), [&](const auto& one) { return one.key == key; });
        if (!record || at == accounts_.end() || !record->has_value()) {
            return;
        }
        if (at->rotates) {
            scene_.history.event("keep")
                .text("key", key)
                .number("generation", record->generation)
                .number("fence", record->value_fence);
        }
        if (record->state == recipes::cached_state::good) {
            if (at->kept != record->generation) {
                at->kept_at = scene_.world.now();
            }
            at->kept = record->generation;
            at->kept_by = record->value_fence;
        }
    }

    // --- the provider ----------------------------------------------------------------------------

    struct provider_answer {
        bool good = false;
        bool refused = false;
        std::uint64_t generation = 0;
    };

    [[nodiscard]] bool is_good(const account& at, std::uint64_t generation) const {
        return !at.revoked && at.generation == generation && generation != 0 &&
               scene_.world.now() < at.issued + at.life;
    }

    provider_answer refresh(account& at, std::uint64_t presented, sim_time asked) {
        if (at.rotates && (at.revoked || presented != at.generation)) {
            at.revoked = true;
            return {.good = false, .refused = true, .generation = 0};
        }
        ++at.generation;
        at.issued = scene_.world.now();
        at.asked = asked;
        return {.good = true, .refused = false, .generation = at.generation};
    }

    /// The request arrives also when its sender is gone; the answer finds nobody then.
    template <typename Act, typename Then>
    void visit(client_process& by, Act act, Then then) {
        auto& world = scene_.world;
        const auto delay = [this] {
            const bool slow = !scene_.healed() && random_.chance(50);
            const core::nanoseconds least{20'000};
            const core::nanoseconds most = core::microseconds{300};
            return slow ? random_.skewed(least, 2 * scene_.drawn.ttl)
                        : random_.between(least, most);
        };
        world.in(
            delay(),
            [&world,
             &runner = by.self(),
             life = by.self().life(),
             back = delay(),
             act = std::move(act),
             then = std::move(then)]() mutable {
                auto given = act();
                world.in(
                    back,
                    [&runner, life, given = std::move(given), then = std::move(then)]() mutable {
                        if (*life) {
                            runner.post([given = std::move(given),
                                         then = std::move(then)]() mutable { then(given); });
                        }
                    });
            });
    }

    void fetch(const worker_ptr& who,
               std::size_t index,
               recipes::fetch_request request,
               brought told) {
        auto& at = accounts_[index];
        const auto presented =
            request.previous ? number_in(request.previous->successor, credential_prefix) : 0;
        complain_if_needless(at, request.fence);
        // Only now is it known that there is a lease. Whoever was paused until it was over was never told of one that he
        // could believe in, and others may have had the key since.
        const bool told_of_lease =
            !request.lease->lost_reason() && who->by.self().now() < request.lease->deadline();
        if (told_of_lease) {
            const auto acquired = scene_.history.new_id();
            call_line(who->by, "acquire", "inv", acquired, at.key)
                .time("ttl_ns", core::nanoseconds{scene_.drawn.ttl});
            note_granted(who->by, "acquire", acquired, scene_.drawn.ttl, *request.lease);
        }
        const auto call = scene_.history.new_id();
        if (at.rotates) {
            call_line(who->by, "refresh", "inv", call, at.key)
                .number("generation", presented)
                .number("fence", request.fence);
        }
        const bool troubled = !scene_.healed();
        // What is over is nothing that a later answer could be taken for.
        auto once = std::make_shared<brought>(std::move(told));
        const auto end = [this, who, index, call, once, told_of_lease, fence = request.fence](
                             std::string_view phase, recipes::fetched made) {
            if (!*once) {
                return;
            }
            auto& of = accounts_[index];
            if (of.rotates) {
                auto line = call_line(who->by, "refresh", phase, call, of.key);
                if (phase == "ok") {
                    line.number("new_generation", number_in(made.value, token_prefix));
                } else {
                    line.text("error", made.trouble);
                }
            }
            // How its release ends is told to the recipe alone.
            if (told_of_lease) {
                const auto release = scene_.history.new_id();
                call_line(who->by, "release", "inv", release, of.key).number("fence", fence);
                call_line(who->by, "release", "info", release, of.key);
            }
            auto tell = std::exchange(*once, brought{});
            tell(std::move(made));
        };
        if (troubled && random_.chance(80)) {
            who->by.self().post_in(
                random_.skewed(core::milliseconds{1}, scene_.drawn.ttl), [this, end] {
                    recipes::fetched made;
                    made.trouble = "503";
                    if (random_.chance(300)) {
                        made.retry_after = core::microseconds{scene_.drawn.ttl} / 4;
                    }
                    end("fail", std::move(made));
                });
            return;
        }
        const bool answer_is_lost = troubled && random_.chance(50);
        visit(
            who->by,
            [this, index, presented, asked = scene_.world.now()] {
                return refresh(accounts_[index], presented, asked);
            },
            [this, index, end, answer_is_lost](const provider_answer& given) {
                if (answer_is_lost) {
                    return;
                }
                recipes::fetched made;
                if (!given.good) {
                    made.how = recipes::fetched::ending::refused;
                    made.trouble = "invalid_grant";
                    end("fail", std::move(made));
                    return;
                }
                const auto& of = accounts_[index];
                made.how = recipes::fetched::ending::good;
                made.value = std::string{token_prefix} + std::to_string(given.generation);
                made.life = std::chrono::floor<core::microseconds>(of.life);
                if (of.rotates) {
                    made.successor =
                        std::string{credential_prefix} + std::to_string(given.generation);
                }
                end("ok", std::move(made));
            });
        // Longer than a slow provider takes.
        who->by.self().post_in(5 * scene_.drawn.ttl, [end] {
            recipes::fetched made;
            made.how = recipes::fetched::ending::unknown;
            made.trouble = "no answer";
            end("info", std::move(made));
        });
    }

    void complain_if_needless(const account& at, core::fence_number fence) {
        const bool came_later = fence > at.kept_by;
        const bool good = at.kept == at.generation && is_good(at, at.generation) &&
                          scene_.world.now() < at.asked + at.life * 7 / 10;
        if (calendar_is_steady_ && came_later && good) {
            scene_.complain("a token of " + at.key + " was refreshed under fence " +
                            std::to_string(fence) + ", though generation " +
                            std::to_string(at.kept) + " was kept by fence " +
                            std::to_string(at.kept_by) + " and neither due nor refused");
        }
    }

    /// Where nothing goes wrong, and a release wakes: whoever waited has the token as soon as it is kept.
    void complain_if_late(const account& at, sim_time asked, const recipes::cached_outcome& told) {
        const auto now = scene_.world.now();
        const bool of_the_latest = told.verdict == recipes::cached_verdict::value &&
                                   number_in(told.value, token_prefix) == at.kept;
        if (nothing_goes_wrong_ && of_the_latest && asked < at.kept_at && now - at.kept_at > soon) {
            scene_.complain("a token of " + at.key + " was given to one who waited for it " +
                            std::to_string((now - at.kept_at) / core::milliseconds{1}) +
                            " ms after it was kept");
        }
    }

    // --- those who use it ------------------------------------------------------------------------

    recipes::cached_value& recipe(const worker_ptr& who, std::size_t index) {
        auto& made = who->recipes[index];
        if (!made) {
            auto& core = *who->by.core();
            const core::microseconds ttl = scene_.drawn.ttl;
            acquire_options of_lease;
            of_lease.ttl = scene_.drawn.ttl;
            of_lease.timeout = scene_.drawn.ttl;
            recipes::cached_terms terms;
            terms.key = accounts_[index].key;
            terms.acquire = detail::terms_of(of_lease);
            terms.floor = ttl / 8;
            terms.looked_at_every = ttl / 4;
            terms.backoff = ttl / 20;
            terms.longest_backoff = ttl;
            terms.rotates = accounts_[index].rotates;
            terms.background = random_.chance(500);
            terms.who.host = who->by.name();
            made = std::make_unique<recipes::cached_value>(
                core.env(),
                core.store(),
                core.batcher(),
                core.mutex(),
                std::move(terms),
                nullptr,
                [this, &by = *who, index](recipes::fetch_request request, brought told) {
                    fetch(by.shared_from_this(), index, std::move(request), std::move(told));
                },
                [&machine = who->by.self().machine()] {
                    return std::chrono::floor<core::milliseconds>(machine.wall().time_since_epoch())
                        .count();
                });
        }
        return *made;
    }

    void rest(const worker_ptr& who, core::fence_number seen) {
        const core::nanoseconds ttl = scene_.drawn.ttl;
        const auto pause =
            scene_.chance.skewed(ttl / 40, std::max(scene_.drawn.rest_most, ttl / 4));
        who->by.self().post_in(pause, [this, who, seen] { get(who, seen); });
    }

    void get(const worker_ptr& who, core::fence_number seen) {
        if (who->by.core()->closed()) {
            return;
        }
        const auto index = who->current;
        recipes::cached_wish wish;
        wish.seen = seen;
        wish.wait = scene_.chance.chance(200)
                        ? core::nanoseconds{0}
                        : scene_.chance.between(core::milliseconds{1}, 6 * scene_.drawn.ttl);
        const auto number = ++calls_;
        auto& slot = who->calls[number];
        const auto asked = scene_.world.now();
        slot = recipe(who, index).get(wish, [this, who, index, number, seen, asked](auto&& told) {
            who->calls.erase(number);
            if (who->by.alive()) {
                complain_if_late(accounts_[index], asked, told);
                got(who, index, seen, std::move(told));
            }
        });
        if (!scene_.healed() && scene_.chance.chance(scene_.drawn.cancel_per_mille)) {
            who->by.self().post_in(scene_.chance.skewed(core::nanoseconds{0}, scene_.drawn.ttl),
                                   [this, who, index, number] {
                                       const auto at = who->calls.find(number);
                                       if (at != who->calls.end()) {
                                           recipe(who, index).cancel(at->second);
                                       }
                                   });
        }
    }

    void got(const worker_ptr& who,
             std::size_t index,
             core::fence_number seen,
             recipes::cached_outcome told) {
        if (told.verdict == recipes::cached_verdict::refused) {
            next_account(who, index);
            rest(who, 0);
            return;
        }
        if (told.verdict != recipes::cached_verdict::value) {
            rest(who, seen);
            return;
        }
        const auto generation = number_in(told.value, token_prefix);
        if (told.fence <= seen && calendar_is_steady_) {
            scene_.complain("a token by fence " + std::to_string(told.fence) +
                            " was given to one who had seen it refused");
        }
        visit(
            who->by,
            [this, index, generation] { return is_good(accounts_[index], generation); },
            [this, who, seen, fence = told.fence](bool good) {
                if (good && scene_.healed()) {
                    ++served_since_healed_;
                }
                rest(who, good ? core::fence_number{0} : std::max(seen, fence));
            });
    }

    /// Somebody has logged in anew.
    void next_account(const worker_ptr& who, std::size_t index) {
        if (who->current == index) {
            ++who->current;
        }
        if (who->current == accounts_.size()) {
            accounts_.push_back(new_account());
        }
    }

    scene& scene_;
    random random_;
    std::deque<account> accounts_;
    bool calendar_is_steady_ = false;
    bool nothing_goes_wrong_ = false;
    std::uint64_t calls_ = 0;
    std::uint64_t served_since_healed_ = 0;
};

}  // namespace

std::unique_ptr<workload> make_tokens(scene& on) {
    return std::make_unique<tokens>(on);
}

}  // namespace dibs::simulation
