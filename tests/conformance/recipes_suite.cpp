// SPDX-License-Identifier: Apache-2.0
// The recipes on each store: two processes, each with all that a client is made of but its threads.

#include "core/batcher.hpp"
#include "core/undo.hpp"
#include "core/watchdog.hpp"
#include "recipes/cached/cached_value.hpp"
#include "recipes/idempotent.hpp"
#include "recipes/mutex.hpp"
#include "recipes/observation.hpp"
#include "recipes/once/once.hpp"
#include "recipes/several_keys.hpp"
#include "suite.hpp"

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dibs::conformance {

namespace {

using recipes::lease_ptr;

std::int64_t some_day() {
    return 1'790'000'000'000;
}

/// One process.
struct member {
    member(core::environment in, store::store& through, std::string name)
        : env{in},
          on{through},
          host{std::move(name)},
          batches{in, through},
          doubts{in, batches},
          dog{in,
              batches,
              doubts,
              {.lost = [this](const lease_ptr& lease) { keys.lost(lease); }, .renewal_failed = {}}},
          keys{in, through, batches, dog, doubts},
          slots{in, through, keys, some_day},
          requests{in, batches, keys, some_day} {}
    member(const member&) = delete;
    member& operator=(const member&) = delete;
    ~member() = default;

    [[nodiscard]] static recipes::mutex_terms terms(core::nanoseconds wait = 0s) {
        recipes::mutex_terms made;
        made.lease.ttl = usual_ttl;
        made.lease.renew_every = usual_ttl / 3;
        made.wait = wait;
        made.timeout = 10s;
        return made;
    }

    core::environment env;
    store::store& on;
    std::string host;
    core::batcher batches;
    core::undo doubts;
    core::watchdog dog;
    recipes::mutex keys;
    recipes::once slots;
    recipes::idempotent requests;
};

template <typename Outcome>
using told_ptr = std::shared_ptr<std::optional<Outcome>>;

/// What the completion of a call was given, once it was.
template <typename Outcome, typename Start>
told_ptr<Outcome> begin(Start start) {
    auto told = std::make_shared<std::optional<Outcome>>();
    start([told](Outcome ended) { *told = std::move(ended); });
    return told;
}

/// Two processes on two views of the data.
class stage {
  public:
    stage(store_under_test& world, store::store& a, store::store& b)
        : world_{world}, here{world.view(), a, "a"}, there{world.view(), b, "b"} {}
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;
    /// What is still on its way has arrived.
    ~stage() {
        (void)found("-");
        (void)run_until([&] { return here.batches.idle() && there.batches.idle(); });
    }

    bool run_until(const std::function<bool()>& told) { return world_.run_until(told); }

    template <typename Outcome>
    Outcome end_of(const told_ptr<Outcome>& call) {
        EXPECT_TRUE(run_until([&] { return call->has_value(); })) << "no end";
        return call->has_value() ? std::move(**call) : Outcome{};
    }
    static told_ptr<recipes::mutex_outcome> acquire(member& by,
                                                    const std::string& key,
                                                    recipes::mutex_terms terms) {
        return begin<recipes::mutex_outcome>([&](auto done) {
            by.keys.acquire(key,
                            std::move(terms),
                            [done = std::move(done)](recipes::mutex_outcome&& told) mutable {
                                done(std::move(told));
                            });
        });
    }
    bool give_back(member& by, const lease_ptr& lease) {
        return end_of(begin<recipes::release_reply>(
                          [&](auto done) { by.keys.release(lease, std::move(done)); }))
            .released;
    }
    /// As others see it.
    core::record_info found(const std::string& key) {
        const auto page = end_of(
            begin<core::page>([&](auto done) { there.on.list(key, {}, 1, std::move(done)); }));
        return page.records.empty() || page.records.front().key != key ? core::record_info{}
                                                                       : page.records.front();
    }
    /// Where a store that wakes nobody does not know who waits, that time was given to begin with that.
    /// It looks for as long as a slow disk may take to write a ticket, not for a number of times.
    bool has_waiters(const std::string& key, std::uint32_t queued = 0) {
        for (int looks = 0; looks < 20; ++looks) {
            (void)found(key);
        }
        if (queued == 0 && !there.on.caps().wakes) {
            return true;
        }
        const auto end = there.env.time.now() + 20s;
        while (there.env.time.now() < end) {
            const auto seen = found(key);
            if (queued > 0 ? seen.queued >= queued : seen.waiters > 0) {
                return true;
            }
            pause(1ms);
        }
        return false;
    }

  private:
    /// Virtual time passes by this alone.
    void pause(core::nanoseconds time) {
        bool over = false;
        core::timer alarm{[&over] { over = true; }};
        there.env.time.arm(alarm, there.env.time.now() + time);
        (void)run_until([&over] { return over; });
    }

    store_under_test& world_;

  public:
    member here;
    member there;
};

}  // namespace

using recipes::once_outcome;
using recipes::once_terms;
using recipes::once_verdict;

namespace {

once_terms slot_terms(const member& by, core::nanoseconds wait = 0s) {
    once_terms made;
    made.job = "nightly";
    made.slot = "2026-11-29[UTC]";
    made.acquire = member::terms(wait);
    made.retries = 1;
    made.backoff = core::microseconds{0};
    made.who.host = by.host;
    return made;
}

told_ptr<once_outcome> claim(member& by, once_terms terms) {
    return begin<once_outcome>(
        [&](auto done) { (void)by.slots.claim(std::move(terms), std::move(done)); });
}

}  // namespace

TEST_P(Conformance, ASlotIsRunOnce) {
    stage on{world(), a(), b()};
    auto run = on.end_of(claim(on.here, slot_terms(on.here)));
    ASSERT_EQ(run.verdict, once_verdict::granted);
    EXPECT_EQ(on.end_of(claim(on.there, slot_terms(on.there))).verdict, once_verdict::running);
    const auto waits = claim(on.there, slot_terms(on.there, 1h));
    ASSERT_TRUE(on.has_waiters("nightly@2026-11-29[UTC]"));
    EXPECT_TRUE(on.end_of(begin<recipes::release_reply>([&](auto done) {
                      on.here.slots.finish(
                          run.lease, slot_terms(on.here), run.mine, true, 0, std::move(done));
                  }))
                    .released);
    const auto told = on.end_of(waits);
    EXPECT_EQ(told.verdict, once_verdict::done);
    ASSERT_TRUE(told.found);
    EXPECT_EQ(told.found->host, "a");
    EXPECT_EQ(on.end_of(claim(on.here, slot_terms(on.here))).verdict, once_verdict::done);
}

TEST_P(Conformance, ASlotThatFailedIsRunAsOftenAsItMayBe) {
    stage on{world(), a(), b()};
    auto run = on.end_of(claim(on.here, slot_terms(on.here)));
    ASSERT_EQ(run.verdict, once_verdict::granted);
    const auto waits = claim(on.there, slot_terms(on.there, 1h));
    ASSERT_TRUE(on.has_waiters("nightly@2026-11-29[UTC]"));
    const auto fail = [&](member& by, const once_outcome& which) {
        return on
            .end_of(begin<recipes::release_reply>([&](auto done) {
                by.slots.finish(which.lease, slot_terms(by), which.mine, false, 3, std::move(done));
            }))
            .released;
    };
    EXPECT_TRUE(fail(on.here, run));
    auto again = on.end_of(waits);
    ASSERT_EQ(again.verdict, once_verdict::granted);
    EXPECT_EQ(again.mine.attempt, 2U);
    EXPECT_TRUE(fail(on.there, again));
    const auto late = on.end_of(claim(on.here, slot_terms(on.here)));
    EXPECT_EQ(late.verdict, once_verdict::failed);
    ASSERT_TRUE(late.found);
    EXPECT_EQ(late.found->failures, 2U);
}

TEST_P(Conformance, ASlotWhoseHostIsGoneIsRunAgainUnlessItMustNot) {
    stage on{world(), a(), b()};
    for (const bool careful : {false, true}) {
        auto terms = slot_terms(on.here);
        terms.slot = careful ? "careful" : "plain";
        terms.at_most_once = careful;
        auto gone = open("host-c");
        {
            member other{world().view(), *gone, "c"};
            ASSERT_EQ(on.end_of(claim(other, terms)).verdict, once_verdict::granted);
        }
        gone.reset();
        pass(usual_ttl + 1s);
        terms.acquire.wait = 1h;  // a server may see its session's end a moment later
        const auto told = on.end_of(claim(on.here, terms));
        EXPECT_EQ(told.verdict, careful ? once_verdict::failed : once_verdict::granted);
        ASSERT_TRUE(told.found);
        EXPECT_EQ(told.found->state, recipes::slot_state::started);
    }
}

namespace {

recipes::idempotent_terms request_terms(const std::string& fingerprint,
                                        core::nanoseconds wait = 0s) {
    recipes::idempotent_terms made;
    made.key = "payment:17";
    made.fingerprint = fingerprint;
    made.acquire = member::terms(wait);
    return made;
}

told_ptr<recipes::idempotent_outcome> claim(member& by, recipes::idempotent_terms terms) {
    return begin<recipes::idempotent_outcome>(
        [&](auto done) { (void)by.requests.claim(std::move(terms), std::move(done)); });
}

}  // namespace

TEST_P(Conformance, ARequestIsAnsweredOnceAndTheAnswerGivenAgain) {
    using recipes::idempotent_verdict;
    stage on{world(), a(), b()};
    auto work = on.end_of(claim(on.here, request_terms("x")));
    ASSERT_EQ(work.verdict, idempotent_verdict::granted);
    EXPECT_EQ(on.end_of(claim(on.there, request_terms("y"))).verdict, idempotent_verdict::differs);
    EXPECT_EQ(on.end_of(claim(on.there, request_terms("x"))).verdict,
              idempotent_verdict::in_flight);
    const auto waits = claim(on.there, request_terms("x", 1h));
    ASSERT_TRUE(on.has_waiters("payment:17"));
    work.mine.state = recipes::idempotent_state::done;
    work.mine.answer = std::string("paid\0\n", 6);
    EXPECT_TRUE(on.end_of(begin<recipes::release_reply>([&](auto done) {
                      on.here.requests.finish(
                          work.lease, request_terms("x"), work.mine, std::move(done));
                  }))
                    .released);
    const auto told = on.end_of(waits);
    ASSERT_EQ(told.verdict, idempotent_verdict::answered);
    EXPECT_EQ(told.found->answer, work.mine.answer);
    EXPECT_EQ(on.end_of(claim(on.here, request_terms("y"))).verdict, idempotent_verdict::differs);
    pass(8 * 24h);
    EXPECT_EQ(on.end_of(claim(on.there, request_terms("y"))).verdict, idempotent_verdict::granted);
}

TEST_P(Conformance, AValueIsFetchedOnceForAllAndAnewWhenItIsRefused) {
    stage on{world(), a(), b()};
    struct party {
        party(member& by, int& fetches)
            : value{by.env,
                    by.on,
                    by.batches,
                    by.keys,
                    terms(),
                    nullptr,
                    [&fetches](const recipes::fetch_request&,
                               core::unique_function<void(recipes::fetched)> done) {
                        recipes::fetched brought;
                        brought.how = recipes::fetched::ending::good;
                        brought.value = "t" + std::to_string(++fetches);
                        brought.life = 1h;
                        done(std::move(brought));
                    },
                    some_day} {}
        static recipes::cached_terms terms() {
            recipes::cached_terms made;
            made.key = "oauth:crm";
            made.acquire = member::terms();
            made.floor = core::microseconds{1000};
            return made;
        }
        told_ptr<recipes::cached_outcome> get(core::fence_number seen) {
            return begin<recipes::cached_outcome>(
                [&](auto done) { (void)value.get({.seen = seen}, std::move(done)); });
        }
        recipes::cached_value value;
    };
    int fetches = 0;
    party one{on.here, fetches};
    party other{on.there, fetches};
    const auto stampede = [&](core::fence_number seen) {
        std::vector<told_ptr<recipes::cached_outcome>> calls;
        for (int number = 0; number < 5; ++number) {
            calls.push_back(one.get(seen));
            calls.push_back(other.get(seen));
        }
        core::fence_number fence = 0;
        for (const auto& call : calls) {
            const auto told = on.end_of(call);
            EXPECT_EQ(told.verdict, recipes::cached_verdict::value) << told.detail;
            EXPECT_EQ(told.value, "t" + std::to_string(fetches));
            fence = told.fence;
        }
        return fence;
    };
    const auto first = stampede(0);
    EXPECT_EQ(fetches, 1);
    EXPECT_EQ(stampede(0), first);
    EXPECT_EQ(fetches, 1);
    EXPECT_GT(stampede(first), first);
    EXPECT_EQ(fetches, 2);
}

TEST_P(Conformance, SeveralKeysAreHadAllOrNone) {
    stage on{world(), a(), b()};
    const auto ask = [&](member& by, core::nanoseconds wait) {
        return begin<recipes::several_outcome>([&](auto done) {
            recipes::several_keys::start(
                by.env,
                by.keys,
                {"y", "x", "z"},
                member::terms(wait),
                [done = std::move(done)](recipes::several_outcome&& told) mutable {
                    done(std::move(told));
                });
        });
    };
    const auto held = on.end_of(on.acquire(on.there, "y", member::terms()));
    ASSERT_TRUE(held.lease);
    const auto refused = on.end_of(ask(on.here, 0s));
    EXPECT_TRUE(refused.leases.empty());
    EXPECT_EQ(refused.key, "y");
    EXPECT_TRUE(on.run_until(
        [&] { return look(b(), "x").holders.empty() && look(b(), "z").holders.empty(); }));
    const auto waits = ask(on.here, 1h);
    ASSERT_TRUE(on.has_waiters("y"));
    EXPECT_TRUE(on.give_back(on.there, held.lease));
    const auto all = on.end_of(waits);
    ASSERT_EQ(all.leases.size(), 3U);
    for (const auto& lease : all.leases) {
        EXPECT_EQ(fences_of(b(), lease->key()).first, lease->fence());
        EXPECT_TRUE(on.give_back(on.here, lease));
    }
}

TEST_P(Conformance, WhoeverObservesSeesEachLeaderWithALargerTerm) {
    stage on{world(), a(), b()};
    std::vector<recipes::leader_seen> seen;
    const auto watching = recipes::observation::start(
        world().view(), b(), "leader", 10ms, [&](const recipes::leader_seen& what) {
            seen.push_back(what);
        });
    const auto leads = [&] { return !seen.empty() && seen.back().who.has_value(); };
    const auto first = on.end_of(on.acquire(on.here, "leader", member::terms()));
    ASSERT_TRUE(first.lease);
    ASSERT_TRUE(on.run_until(leads));
    EXPECT_EQ(seen.back().term, first.lease->fence());
    const auto stands_by = on.acquire(on.there, "leader", member::terms(1h));
    ASSERT_TRUE(on.has_waiters("leader"));
    EXPECT_TRUE(on.give_back(on.here, first.lease));
    const auto second = on.end_of(stands_by);
    ASSERT_TRUE(second.lease);
    EXPECT_GT(second.lease->fence(), first.lease->fence());
    ASSERT_TRUE(on.run_until([&] { return leads() && seen.back().term == second.lease->fence(); }));
    EXPECT_TRUE(on.give_back(on.there, second.lease));
    ASSERT_TRUE(on.run_until([&] { return !leads(); }));
    watching->stop();
}

TEST_P(Conformance, WhoWaitsForAPermitGetsTheNextThatIsFree) {
    if (!caps().shared) {
        GTEST_SKIP() << caps().name << " has no shared grants";
    }
    stage on{world(), a(), b()};
    const auto permit = [](core::nanoseconds wait) {
        auto terms = member::terms(wait);
        terms.part = {.weight = 1, .capacity = 2};
        return terms;
    };
    const auto first = on.end_of(on.acquire(on.here, "encoders", permit(0s)));
    const auto second = on.end_of(on.acquire(on.there, "encoders", permit(0s)));
    ASSERT_TRUE(first.lease && second.lease);
    EXPECT_NE(first.lease->fence(), second.lease->fence());
    EXPECT_FALSE(on.end_of(on.acquire(on.here, "encoders", permit(0s))).lease);
    const auto waits = on.acquire(on.there, "encoders", permit(1h));
    ASSERT_TRUE(on.has_waiters("encoders"));
    auto other = permit(0s);
    other.part.capacity = 3;
    EXPECT_EQ(on.end_of(on.acquire(on.here, "encoders", other)).error, errc::capacity_differs);
    EXPECT_TRUE(on.give_back(on.here, first.lease));
    const auto third = on.end_of(waits);
    ASSERT_TRUE(third.lease);
    EXPECT_TRUE(on.give_back(on.there, third.lease));
    EXPECT_TRUE(on.give_back(on.there, second.lease));
}

TEST_P(Conformance, AWriterInTheQueueIsNotPassedByReaders) {
    if (!caps().shared || !caps().queues) {
        GTEST_SKIP() << caps().name << " has no queue, or no shared grants";
    }
    stage on{world(), a(), b()};
    const auto reader = [](core::nanoseconds wait) {
        auto terms = member::terms(wait);
        terms.part = {.weight = 1, .capacity = core::share::unlimited};
        terms.queue = true;
        return terms;
    };
    auto writer = member::terms(1h);
    writer.queue = true;
    const auto reads = on.end_of(on.acquire(on.here, "catalogue", reader(0s)));
    ASSERT_TRUE(reads.lease);
    const auto writes = on.acquire(on.there, "catalogue", writer);
    ASSERT_TRUE(on.has_waiters("catalogue", 1));
    const auto reads_later = on.acquire(on.here, "catalogue", reader(1h));
    ASSERT_TRUE(on.has_waiters("catalogue", 2));
    EXPECT_FALSE(reads_later->has_value());
    EXPECT_TRUE(on.give_back(on.here, reads.lease));
    const auto wrote = on.end_of(writes);
    ASSERT_TRUE(wrote.lease);
    EXPECT_FALSE(reads_later->has_value());
    EXPECT_TRUE(on.give_back(on.there, wrote.lease));
    const auto last = on.end_of(reads_later);
    ASSERT_TRUE(last.lease);
    EXPECT_GT(last.lease->fence(), wrote.lease->fence());
    EXPECT_TRUE(on.give_back(on.here, last.lease));
}

}  // namespace dibs::conformance
