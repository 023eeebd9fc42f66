// SPDX-License-Identifier: Apache-2.0
// Idempotent work on virtual time: several processes on one memory store, crashes, other payloads, losses.
#include "recipes/idempotent.hpp"

#include "client_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace dibs::recipes {
namespace {

using namespace std::chrono_literals;
using namespace dibs::testing;
using namespace testing;

/// One process. `crash`: nothing of it reaches the store any more.
class server : public client_parts {
  public:
    server(virtual_environment& in, const std::string& space, std::string name)
        : client_parts{in, space}, name_{std::move(name)}, requests{in.view(), batches, keys, [] {
                                                                        return std::int64_t{
                                                                            1'764'460'800'000};
                                                                    }} {}

    [[nodiscard]] idempotent_terms terms(std::string fingerprint = "five euros",
                                         core::nanoseconds wait = 0s) const {
        idempotent_terms made;
        made.key = "order-4711";
        made.fingerprint = std::move(fingerprint);
        made.acquire.lease.ttl = 6s;
        made.acquire.lease.renew_every = 2s;
        made.acquire.lease.attached = false;  // a crash shows by expiry, as over a network
        made.acquire.wait = wait;
        made.acquire.timeout = 5s;
        made.keep = 24h;
        made.who.host = name_;
        return made;
    }
    using told_ptr = std::shared_ptr<std::optional<idempotent_outcome>>;
    told_ptr start(idempotent_terms with) {
        auto told = std::make_shared<std::optional<idempotent_outcome>>();
        call = requests.claim(std::move(with),
                              [told](idempotent_outcome ended) { *told = std::move(ended); });
        return told;
    }
    idempotent_outcome claim(idempotent_terms with) {
        const auto told = start(std::move(with));
        EXPECT_TRUE(world.run_until([&] { return told->has_value(); }, 2h));
        return told->value_or(idempotent_outcome{});
    }
    idempotent_outcome claim() { return claim(terms()); }
    release_reply finish(const idempotent_outcome& run,
                         std::string answer,
                         idempotent_state how = idempotent_state::done) {
        auto mine = run.mine;
        mine.state = how;
        mine.answer = std::move(answer);
        std::optional<release_reply> told;
        requests.finish(run.lease, terms(), std::move(mine), [&](release_reply heard) {
            told = std::move(heard);
        });
        EXPECT_TRUE(world.run_until([&] { return told.has_value(); }, 1min));
        return told.value_or(release_reply{});
    }
    void abandon(const idempotent_outcome& run) {
        bool told = false;
        requests.abandon(run.lease, [&](release_reply) { told = true; });
        EXPECT_TRUE(world.run_until([&] { return told; }, 1min));
    }
    void crash() {
        line.plan = [](std::size_t, const auto&) { return fault::lose_request; };
    }

    std::string name_;
    idempotent requests;
    idempotent::call_ptr call;
};

fault renewals_are_lost(std::size_t, const faulty_store::seen_batch& batch) {
    const bool renews =
        std::any_of(batch.entries.begin(), batch.entries.end(), [](const auto& one) {
            return std::holds_alternative<core::renew>(one.what);
        });
    return renews ? fault::lose_request : fault::none;
}

class Idempotent : public ::testing::Test {
  protected:
    std::string space = [] {
        static std::atomic<int> last{0};
        return "idempotent-test-" + std::to_string(++last);
    }();
    virtual_environment world;
    server a{world, space, "a"};
    server b{world, space, "b"};
    server c{world, space, "c"};
};

TEST_F(Idempotent, TheFirstAnswerIsToldToWhoeverAsksAgain) {
    const auto run = a.claim();
    ASSERT_EQ(run.verdict, idempotent_verdict::granted);
    EXPECT_EQ(run.mine.attempt, 1U);
    EXPECT_TRUE(a.finish(run, "paid").released);
    world.advance(23h);
    const auto again = b.claim();
    ASSERT_EQ(again.verdict, idempotent_verdict::answered);
    EXPECT_EQ(again.found->state, idempotent_state::done);
    EXPECT_EQ(again.found->answer, "paid");
    EXPECT_EQ(again.found->host, "a");
    EXPECT_EQ(a.claim().verdict, idempotent_verdict::answered);
}

TEST_F(Idempotent, AnAnswerMayBeAnyBytes) {
    const std::string bytes("\0\n{\xff\n", 5);
    EXPECT_TRUE(a.finish(a.claim(), bytes).released);
    EXPECT_EQ(b.claim().found->answer, bytes);
}

TEST_F(Idempotent, AFirstRequestTakesOneRoundTripAndSoDoesARepetition) {
    const auto run = a.claim();
    EXPECT_EQ(a.line.seen.size(), 1U);
    EXPECT_TRUE(a.finish(run, "paid").released);
    EXPECT_EQ(a.line.seen.size(), 2U);
    EXPECT_EQ(b.claim().verdict, idempotent_verdict::answered);
    EXPECT_EQ(b.line.seen.size(), 1U);
}

TEST_F(Idempotent, AnswersAreForgottenAfterTheirTime) {
    EXPECT_TRUE(a.finish(a.claim(), "paid").released);
    world.advance(24h + 1s);
    EXPECT_EQ(b.claim(b.terms("six euros")).verdict, idempotent_verdict::granted);
}

TEST_F(Idempotent, AnotherPayloadIsRefusedAlsoWhileTheFirstIsAtWork) {
    const auto run = a.claim();
    ASSERT_TRUE(run.lease);
    EXPECT_EQ(b.claim(b.terms("six euros")).verdict, idempotent_verdict::differs);
    EXPECT_EQ(b.claim(b.terms("six euros", 1min)).verdict, idempotent_verdict::differs);
    EXPECT_TRUE(a.finish(run, "paid").released);
    EXPECT_EQ(b.claim(b.terms("six euros")).verdict, idempotent_verdict::differs);
    EXPECT_EQ(b.claim().found->answer, "paid");
}

TEST_F(Idempotent, AnotherPayloadIsRefusedAfterACrashAndChangesNothing) {
    const auto run = a.claim();
    a.crash();
    world.advance(10s);
    EXPECT_EQ(b.claim(b.terms("six euros")).verdict, idempotent_verdict::differs);
    const auto again = c.claim();
    EXPECT_EQ(again.verdict, idempotent_verdict::granted);
    EXPECT_EQ(again.mine.attempt, 2U);
}

TEST_F(Idempotent, WhoeverIsAtItIsTold) {
    const auto run = a.claim();
    const auto meanwhile = b.claim();
    EXPECT_EQ(meanwhile.verdict, idempotent_verdict::in_flight);
    ASSERT_EQ(meanwhile.holders.size(), 1U);
    EXPECT_EQ(meanwhile.holders.front().fences.first, run.lease->fence());
}

TEST_F(Idempotent, WhoWaitsGetsTheAnswer) {
    const auto run = a.claim();
    const auto waits = b.start(b.terms("five euros", 1min));
    const auto same_process = a.start(a.terms("five euros", 1min));
    world.advance(20s);
    EXPECT_FALSE(*waits);
    EXPECT_FALSE(*same_process);
    EXPECT_TRUE(a.finish(run, "paid").released);
    EXPECT_TRUE(world.run_until([&] { return *waits && *same_process; }, 10s));
    ASSERT_TRUE(*waits && *same_process);
    EXPECT_EQ((*waits)->found->answer, "paid");
    EXPECT_EQ((*same_process)->found->answer, "paid");
}

TEST_F(Idempotent, AWaitEndsWhenItIsOver) {
    const auto run = a.claim();
    const auto before = world.now();
    EXPECT_EQ(b.claim(b.terms("five euros", 20s)).verdict, idempotent_verdict::in_flight);
    EXPECT_GE(world.now() - before, 20s);
    EXPECT_LE(world.now() - before, 21s);
    EXPECT_TRUE(run.lease->held(world.now()));
}

TEST_F(Idempotent, WhoWaitsGoesOnWhenTheStoreIsInTrouble) {
    for (const auto what : {fault::refuse, fault::deny, fault::not_ready}) {
        b.line.plan = [what](std::size_t, const auto&) { return what; };
        const auto asked = world.now();
        const auto said_before = b.line.seen.size();
        const auto gives_up = b.claim(b.terms("five euros", 20s));
        EXPECT_TRUE(gives_up.error);
        EXPECT_GE(world.now() - asked, 19s);
        EXPECT_LE(world.now() - asked, 21s);
        EXPECT_LE(b.line.seen.size(), said_before + 60) << "it asks without end";
        const auto waits = b.start(b.terms("five euros", 1min));
        world.advance(30s);
        EXPECT_FALSE(*waits);
        b.line.plan = nullptr;
        ASSERT_TRUE(world.run_until([&] { return waits->has_value(); }, 10s));
        ASSERT_EQ((*waits)->verdict, idempotent_verdict::granted);
        EXPECT_EQ((*waits)->mine.attempt, 1U);
        b.abandon(**waits);
    }
}

TEST_F(Idempotent, AShortWaitEndsAlsoWhileTheStoreRefuses) {
    b.line.plan = [](std::size_t, const auto&) { return fault::deny; };
    const auto asked = world.now();
    EXPECT_EQ(b.claim(b.terms("five euros", 300ms)).error, errc::store_refused);
    EXPECT_GE(world.now() - asked, 300ms);
    EXPECT_LE(world.now() - asked, 320ms);
}

TEST_F(Idempotent, ACrashLetsAnotherOneDoItAlsoOneWhoWaits) {
    const auto run = a.claim();
    const auto waits = b.start(b.terms("five euros", 1min));
    world.advance(1s);
    a.crash();
    EXPECT_TRUE(world.run_until([&] { return waits->has_value(); }, 20s));
    ASSERT_TRUE(*waits);
    EXPECT_EQ((*waits)->verdict, idempotent_verdict::granted);
    EXPECT_EQ((*waits)->mine.attempt, 2U);
    EXPECT_EQ((*waits)->found->host, "a");
    EXPECT_TRUE(b.finish(**waits, "paid by b").released);
    EXPECT_EQ(c.claim().found->answer, "paid by b");
}

TEST_F(Idempotent, AtMostOnceACrashIsInDoubtForAllWhoAsk) {
    auto careful = a.terms();
    careful.at_most_once = true;
    ASSERT_EQ(a.claim(careful).verdict, idempotent_verdict::granted);
    EXPECT_EQ(b.claim(careful).verdict, idempotent_verdict::in_flight);
    a.crash();
    world.advance(10s);
    const auto refused = b.claim(careful);
    EXPECT_EQ(refused.verdict, idempotent_verdict::in_doubt);
    EXPECT_EQ(refused.found->host, "a");
    EXPECT_EQ(c.claim().verdict, idempotent_verdict::in_doubt);
}

TEST_F(Idempotent, WhatWasBegunWithoutThatIsInDoubtForWhoAsksForAtMostOnce) {
    ASSERT_EQ(a.claim().verdict, idempotent_verdict::granted);
    a.crash();
    world.advance(10s);
    auto careful = b.terms();
    careful.at_most_once = true;
    EXPECT_EQ(b.claim(careful).verdict, idempotent_verdict::in_doubt);
    EXPECT_EQ(c.claim().verdict, idempotent_verdict::granted);
}

TEST_F(Idempotent, AFailureThatIsTheAnswerIsKept) {
    EXPECT_TRUE(a.finish(a.claim(), "card declined", idempotent_state::failed).released);
    const auto again = b.claim();
    ASSERT_EQ(again.verdict, idempotent_verdict::answered);
    EXPECT_EQ(again.found->state, idempotent_state::failed);
    EXPECT_EQ(again.found->answer, "card declined");
}

TEST_F(Idempotent, WorkThatIsAbandonedLeavesNothing) {
    a.abandon(a.claim());
    const auto again = b.claim(b.terms("six euros"));
    EXPECT_EQ(again.verdict, idempotent_verdict::granted);
    EXPECT_EQ(again.mine.attempt, 1U);
}

TEST_F(Idempotent, AnAnswerThatIsLateIsKeptAsLongAsNobodyElseBegan) {
    const auto run = a.claim();
    a.line.plan = renewals_are_lost;
    world.advance(10s);
    EXPECT_FALSE(run.lease->held(world.now()));
    EXPECT_TRUE(a.finish(run, "paid").released);
    EXPECT_EQ(b.claim().found->answer, "paid");
}

TEST_F(Idempotent, AnAnswerThatIsLateIsKeptAlsoWhenTheLeaseCouldNotBeGivenBack) {
    const auto run = a.claim();
    a.line.plan = [](std::size_t, const auto&) { return fault::lose_request; };
    world.advance(10s);
    EXPECT_FALSE(run.lease->held(world.now()));
    a.line.plan = nullptr;
    EXPECT_TRUE(a.finish(run, "paid").released);
    EXPECT_EQ(b.claim().found->answer, "paid");
}

TEST_F(Idempotent, AnAnswerThatIsTooLateReplacesNothing) {
    const auto run = a.claim();
    a.line.plan = renewals_are_lost;
    world.advance(10s);
    const auto second = b.claim();
    ASSERT_EQ(second.verdict, idempotent_verdict::granted);
    const auto told = a.finish(run, "paid by a");
    EXPECT_FALSE(told.released);
    EXPECT_TRUE(b.finish(second, "paid by b").released);
    EXPECT_FALSE(a.finish(run, "paid by a").released);
    EXPECT_EQ(c.claim().found->answer, "paid by b");
}

TEST_F(Idempotent, AKeyThatIsUsedForSomethingElseIsLeftAlone) {
    const auto keep = [&](std::string value, core::microseconds fresh) {
        std::optional<mutex_outcome> got;
        auto terms = a.terms().acquire;
        terms.seen = 9'007'199'254'740'991;
        a.keys.acquire(
            "order-4711", terms, [&](mutex_outcome&& outcome) { got = std::move(outcome); });
        EXPECT_TRUE(world.run_until([&] { return got.has_value(); }, 10s));
        bool given_back = false;
        a.keys.release(got->lease,
                       core::result_to_keep{.value = std::move(value), .fresh = fresh, .keep = 1h},
                       [&](release_reply told) { given_back = told.released; });
        EXPECT_TRUE(world.run_until([&] { return given_back; }, 10s));
    };
    keep("of another recipe", 1h);
    EXPECT_EQ(b.claim().error, errc::store_damaged);
    keep("of another recipe", 0s);
    EXPECT_EQ(b.claim().error, errc::store_damaged);
    const auto page = [&] {
        std::optional<core::page> told;
        c.line.list("order-4711", {}, 1, [&](core::page read) { told = std::move(read); });
        EXPECT_TRUE(world.run_until([&] { return told.has_value(); }, 10s));
        return told.value_or(core::page{});
    };
    EXPECT_TRUE(world.run_until([&] { return page().records.front().holders.empty(); }, 10s));
    const auto left = page();
    ASSERT_TRUE(left.records.front().result);
    EXPECT_EQ(left.records.front().result->value, "of another recipe");
    keep(R"({"v":2,"kind":"idempotent","state":"partly"})"
         "\n",
         1h);
    EXPECT_EQ(b.claim().error, errc::newer_format);
}

TEST_F(Idempotent, AGrantWhoseAnswerIsLostIsFoundAgain) {
    a.line.plan = [](std::size_t number, const auto&) {
        return number == 1 ? fault::lose_answer : fault::none;
    };
    const auto run = a.claim();
    ASSERT_EQ(run.verdict, idempotent_verdict::granted);
    EXPECT_TRUE(a.finish(run, "paid").released);
    EXPECT_EQ(b.claim().found->answer, "paid");
}

TEST_F(Idempotent, AHoldIsToldButWhatWasAnsweredIsAnsweredAgain) {
    const auto hold = [&](core::microseconds length) {
        core::block asked;
        asked.key = "order-4711";
        asked.duration = length;
        asked.reason = "moving house";
        bool told = false;
        c.batches.submit(asked, 1s, world.now() + 10s, [&](const core::reply& heard) {
            told = heard.given.what == core::verdict::block_set;
        });
        EXPECT_TRUE(world.run_until([&] { return told; }, 10s));
    };
    hold(1h);
    const auto refused = a.claim();
    EXPECT_EQ(refused.verdict, idempotent_verdict::blocked);
    EXPECT_EQ(refused.blocked_reason, "moving house");
    hold(0s);
    EXPECT_TRUE(a.finish(a.claim(), "paid").released);
    hold(1h);
    EXPECT_EQ(b.claim().verdict, idempotent_verdict::answered);
}

TEST_F(Idempotent, ACallThatIsCancelledBeforeItsGrantLeavesNothing) {
    const auto told = a.start(a.terms());
    a.requests.cancel(a.call);
    EXPECT_TRUE(world.run_until([&] { return told->has_value(); }, 10s));
    EXPECT_EQ((*told)->error, errc::cancelled);
    world.advance(10s);
    EXPECT_EQ(b.claim(b.terms("six euros")).verdict, idempotent_verdict::granted);
}

TEST(IdempotentRecord, WhatMayBeShownHasNoAnswer) {
    idempotent_record record;
    record.state = idempotent_state::done;
    record.fingerprint = "f";
    record.answer = "secret";
    const auto shown = without_answer(to_text(record));
    EXPECT_EQ(shown.find("secret"), std::string::npos);
    EXPECT_NE(shown.find("\"done\""), std::string::npos);
    EXPECT_EQ(without_answer("of another kind\nwith lines"), "of another kind\nwith lines");
}

TEST(IdempotentRecord, WhatWasCutShortIsNoAnswer) {
    idempotent_record record;
    record.state = idempotent_state::done;
    record.answer = "paid";
    auto text = to_text(record);
    bool newer = false;
    EXPECT_TRUE(idempotent_record_of(text, newer));
    text.pop_back();
    EXPECT_FALSE(idempotent_record_of(text, newer));
    EXPECT_FALSE(newer);
}

}  // namespace
}  // namespace dibs::recipes
