// SPDX-License-Identifier: Apache-2.0
// A value that several processes share, on virtual time: stampedes, rotation, crashes in the middle, failures.
#include "recipes/cached/cached_value.hpp"

#include "cached_process.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace dibs::recipes {
namespace {

using namespace testing;

class CachedValue : public ::testing::Test {
  protected:
    bool all_told(const std::vector<cached_process::told_ptr>& of,
                  core::nanoseconds within = 2min) {
        return world.run_until(
            [&] {
                for (const auto& one : of) {
                    if (!one->has_value()) {
                        return false;
                    }
                }
                return true;
            },
            within);
    }
    std::vector<cached_process::told_ptr> stampede(int callers, cached_wish wish = {}) {
        std::vector<cached_process::told_ptr> told;
        for (auto* one : {&a, &b, &c}) {
            for (int at = 0; at < callers; ++at) {
                told.push_back(one->ask(wish));
            }
        }
        return told;
    }

    std::string space = [] {
        static std::atomic<int> last{0};
        return "cached-test-" + std::to_string(++last);
    }();
    virtual_environment world;
    provider from{world};
    cached_process a{world, space, from};
    cached_process b{world, space, from};
    cached_process c{world, space, from};
};

TEST_F(CachedValue, AStampedeOfThreeProcessesFetchesOnce) {
    const auto told = stampede(50);
    ASSERT_TRUE(all_told(told));
    for (const auto& one : told) {
        EXPECT_EQ((*one)->verdict, cached_verdict::value);
        EXPECT_EQ((*one)->value, "t1");
    }
    EXPECT_EQ(from.fetches, 1);
    EXPECT_LE(world.now() - core::instant{5h}, from.takes + 500ms);
}

TEST_F(CachedValue, AFreshValueIsServedWithoutAskingTheStore) {
    EXPECT_EQ(a.get().value, "t1");
    const auto asked = a.line.seen.size();
    for (int at = 0; at < 10; ++at) {
        EXPECT_EQ(a.get().value, "t1");
    }
    EXPECT_EQ(a.line.seen.size(), asked);
    world.advance(2s);
    EXPECT_EQ(a.get().value, "t1");
    EXPECT_EQ(a.line.count<core::acquire>(), 2U) << "one question, past the window";
    EXPECT_EQ(from.fetches, 1);
}

TEST_F(CachedValue, AValueThatIsDueIsServedWhileItIsFetched) {
    from.takes = 3s;
    EXPECT_EQ(a.get().value, "t1");
    world.advance(52s);
    const auto before = world.now();
    EXPECT_EQ(a.get().value, "t1");
    EXPECT_LT(world.now() - before, 100ms);
    EXPECT_EQ(b.get().value, "t1") << "somebody else is at it";
    world.advance(4s);
    EXPECT_EQ(a.get().value, "t2");
    EXPECT_EQ(b.get().value, "t2");
    EXPECT_EQ(from.fetches, 2);
}

TEST_F(CachedValue, WhoDoesNotOutliveTheFetchWaitsForIt) {
    auto terms = cached_process::usual_terms();
    terms.background = false;
    a.restart(terms);
    EXPECT_EQ(a.get().value, "t1");
    world.advance(52s);
    EXPECT_EQ(a.get().value, "t2");
    EXPECT_EQ(from.most_at_once, 1);
}

TEST_F(CachedValue, FiftyWhoSawTheSameTokenRefusedFetchOnce) {
    const auto first = a.get();
    EXPECT_EQ(b.get().value, "t1");
    const auto told = stampede(17, {.seen = first.fence});
    ASSERT_TRUE(all_told(told));
    for (const auto& one : told) {
        EXPECT_EQ((*one)->value, "t2");
        EXPECT_GT((*one)->fence, first.fence);
    }
    EXPECT_EQ(from.fetches, 2);
    EXPECT_EQ(a.get({.seen = first.fence}).value, "t2") << "who comes late with it, too";
    EXPECT_EQ(from.fetches, 2);
}

TEST_F(CachedValue, WhenTheFetcherDiesAnotherOneContendsAtTheEndOfItsLease) {
    from.takes = 1s;
    const auto lost = a.ask();
    world.advance(500ms);
    EXPECT_EQ(from.fetches, 1);
    a.crash();
    const auto told = b.ask();
    ASSERT_TRUE(all_told({told}, 9s));
    EXPECT_EQ((*told)->value, "t2");
    EXPECT_EQ(c.get().value, "t2");
}

TEST_F(CachedValue, EachCredentialOfARotatingOneIsPresentedOnce) {
    from.rotates = true;
    auto terms = cached_process::usual_terms();
    terms.rotates = true;
    for (auto* one : {&a, &b, &c}) {
        one->restart(terms);
    }
    for (int round = 1; round <= 30; ++round) {
        const auto told = stampede(8);
        ASSERT_TRUE(all_told(told));
        for (const auto& one : told) {
            ASSERT_EQ((*one)->verdict, cached_verdict::value) << (*one)->detail;
            EXPECT_EQ((*one)->value, from.valid_token);
        }
        EXPECT_EQ(from.fetches, round);
        world.advance(61s);
    }
    EXPECT_FALSE(from.family_revoked);
    EXPECT_EQ(from.used_credentials.size(), 30U);
}

TEST_F(CachedValue, ACredentialThatMayHaveBeenUsedIsNotPresentedAgain) {
    from.rotates = true;
    EXPECT_EQ(a.get().value, "t1");
    world.advance(61s);
    const auto lost = a.ask();
    world.advance(100ms);
    EXPECT_EQ(from.fetches, 2);
    a.crash();
    world.advance(1s);
    const auto told = b.get({.wait = 10s});
    EXPECT_EQ(told.verdict, cached_verdict::refused);
    EXPECT_NE(told.detail.find("pid 7"), std::string::npos) << told.detail;
    EXPECT_EQ(told.retry_after, cached_record::unlimited);
    EXPECT_EQ(from.fetches, 2);
    EXPECT_FALSE(from.family_revoked);
    // It was not dead, only cut off: what it brought replaces the doubt.
    world.advance(1s);
    a.recover();
    world.advance(20s);
    EXPECT_EQ(c.get().value, "t2");
    EXPECT_EQ(from.fetches, 2);
}

TEST_F(CachedValue, AFetchThatMayHaveReachedTheProviderIsNotRepeated) {
    from.rotates = true;
    EXPECT_EQ(a.get().value, "t1");
    world.advance(61s);
    from.instead = [](int number) -> std::optional<fetched> {
        fetched answer;
        answer.how = fetched::ending::unknown;
        answer.trouble = "cut off";
        return number == 2 ? std::optional(answer) : std::nullopt;
    };
    for (auto* one : {&a, &b, &a}) {
        const auto told = one->get({.wait = 10s});
        EXPECT_EQ(told.verdict, cached_verdict::refused);
        EXPECT_NE(told.detail.find("cut off; whether"), std::string::npos) << told.detail;
        world.advance(1h);
    }
    EXPECT_EQ(from.fetches, 2);
}

TEST_F(CachedValue, WithoutACredentialOfOneUseItIsRepeated) {
    from.instead = [](int number) -> std::optional<fetched> {
        fetched answer;
        answer.how = fetched::ending::unknown;
        return number == 1 ? std::optional(answer) : std::nullopt;
    };
    EXPECT_EQ(a.get().verdict, cached_verdict::failing);
    world.advance(2s);
    EXPECT_EQ(a.get().value, "t2");
}

TEST_F(CachedValue, AFenceThatNoValueHadCausesOneFetchPerProcess) {
    constexpr core::fence_number no_value_had = 9'007'199'254'740'991;
    EXPECT_EQ(a.get({.seen = no_value_had}).value, "t1");
    EXPECT_EQ(from.fetches, 1);
    const auto told = stampede(17, {.seen = no_value_had});
    ASSERT_TRUE(all_told(told, 10s));
    for (const auto& one : told) {
        EXPECT_EQ((*one)->verdict, cached_verdict::value);
        EXPECT_NE((*one)->value, "t1");
    }
    EXPECT_LE(from.fetches, 1 + 3);
    const auto before = from.fetches;
    EXPECT_EQ(a.get().value, from.valid_token);
    EXPECT_EQ(from.fetches, before);
}

TEST_F(CachedValue, AValueThatHasRunOutWhenItComesIsAFailure) {
    from.rotates = true;
    from.life = 150ms;
    const auto before = world.now();
    const auto told = a.get({.wait = 30s});
    EXPECT_EQ(told.verdict, cached_verdict::failing);
    EXPECT_NE(told.detail.find("run out"), std::string::npos) << told.detail;
    EXPECT_LT(world.now() - before, 1s);
    EXPECT_EQ(b.get().verdict, cached_verdict::failing);
    EXPECT_EQ(from.fetches, 1);
    from.life = 60s;
    world.advance(2s);
    EXPECT_EQ(b.get().value, "t2") << "with the credential that the first one brought";
    EXPECT_FALSE(from.family_revoked);
}

TEST_F(CachedValue, WhatAProviderQuotesOfTheSecretsIsBlanked) {
    from.instead = [](int number) -> std::optional<fetched> {
        fetched answer;
        answer.life = 60s;
        answer.how = number == 1 ? fetched::ending::good : fetched::ending::refused;
        answer.value = "the-token";
        answer.successor = "the-credential";
        answer.trouble = "the-credential of the-token is revoked: the-credential";
        return answer;
    };
    const auto first = a.get();
    EXPECT_EQ(a.get({.seen = first.fence}).detail, "*** of *** is revoked: ***");
}

TEST_F(CachedValue, AProviderThatTakesACredentialAgainIsAskedAgain) {
    from.rotates = true;
    EXPECT_EQ(a.get().value, "t1");
    world.advance(61s);
    (void)a.ask();
    world.advance(100ms);
    a.crash();
    auto terms = cached_process::usual_terms();
    terms.retry_after_doubt = true;
    b.restart(terms);
    from.used_credentials.erase("c1");
    EXPECT_EQ(b.get().value, "t3");
}

TEST_F(CachedValue, AFetchThatOutlastsItsLeaseIsStoredAllTheSame) {
    from.rotates = true;
    from.takes = 20s;
    auto terms = cached_process::usual_terms();
    terms.acquire.lease.renew_every = {};
    a.restart(terms);
    const auto told = a.ask({.wait = 1min});
    ASSERT_TRUE(all_told({told}));
    EXPECT_EQ((*told)->verdict, cached_verdict::value) << (*told)->detail;
    EXPECT_EQ(b.get().value, "t1");
    EXPECT_EQ(from.fetches, 1);
}

TEST_F(CachedValue, WhoGoesStoresTheCredentialThatItAloneHas) {
    from.rotates = true;
    EXPECT_EQ(a.get().value, "t1");
    world.advance(61s);
    const auto told = a.ask({.wait = 2s});
    world.advance(100ms);
    ASSERT_EQ(from.fetches, 2);
    a.crash();
    ASSERT_TRUE(all_told({told}));
    EXPECT_EQ((*told)->verdict, cached_verdict::busy);
    EXPECT_NE((*told)->detail.find("storing"), std::string::npos) << (*told)->detail;
    std::optional<std::string> landed;
    a.value->close([&](std::string trouble) { landed = std::move(trouble); });
    world.advance(1s);
    EXPECT_FALSE(landed);
    a.recover();
    ASSERT_TRUE(world.run_until([&] { return landed.has_value(); }, 1min));
    EXPECT_EQ(*landed, "");
    EXPECT_EQ(b.get().value, "t2");
    EXPECT_EQ(from.fetches, 2);
}

TEST_F(CachedValue, WhoGoesAndCannotStoreTheCredentialIsTold) {
    from.rotates = true;
    EXPECT_EQ(a.get().value, "t1");
    world.advance(61s);
    (void)a.ask({.wait = 2s});
    world.advance(100ms);
    a.crash();
    world.advance(3s);
    std::optional<std::string> landed;
    a.value->close([&](std::string trouble) { landed = std::move(trouble); });
    ASSERT_TRUE(world.run_until([&] { return landed.has_value(); }, 5min)) << "it has an end";
    EXPECT_NE(landed->find("could not be stored"), std::string::npos) << *landed;
}

TEST_F(CachedValue, AValueThatTheStoreDoesNotTakeIsGivenAllTheSame) {
    const auto told = a.ask({.wait = 2s});
    world.advance(100ms);
    a.crash();
    ASSERT_TRUE(all_told({told}));
    EXPECT_EQ((*told)->verdict, cached_verdict::value) << (*told)->detail;
    EXPECT_EQ((*told)->value, "t1");
}

TEST_F(CachedValue, WithoutACredentialNobodyIsHeldUpWhoGoes) {
    (void)a.ask({.wait = 2s});
    world.advance(100ms);
    a.crash();
    world.advance(1s);
    std::optional<std::string> landed;
    a.value->close([&](std::string trouble) { landed = std::move(trouble); });
    EXPECT_EQ(landed, "");
}

TEST_F(CachedValue, ForgetsNothingWhileSomebodyFetches) {
    from.takes = 1min;
    (void)a.ask({.wait = 2min});
    world.advance(1s);
    const auto told = b.forget();
    EXPECT_EQ(told.verdict, cached_verdict::busy);
    EXPECT_EQ(told.holders.size(), 1U);
}

TEST_F(CachedValue, AnOlderPairDoesNotReplaceANewerOne) {
    from.takes = 20s;
    auto terms = cached_process::usual_terms();
    terms.acquire.lease.renew_every = {};
    a.restart(terms);
    const auto slow = a.ask({.wait = 1min});
    world.advance(7s);
    from.takes = 100ms;
    EXPECT_EQ(b.get().value, "t2");
    ASSERT_TRUE(all_told({slow}));
    EXPECT_EQ((*slow)->value, "t2") << "the newer one is for all";
    EXPECT_EQ(c.get().value, "t2");
}

TEST_F(CachedValue, InvalidGrantAfterTheLeaseWasLostIsNotFinal) {
    from.takes = 20s;
    from.instead = [](int number) -> std::optional<fetched> {
        if (number != 1) {
            return std::nullopt;
        }
        fetched answer;
        answer.how = fetched::ending::refused;
        answer.trouble = "invalid_grant";
        return answer;
    };
    auto terms = cached_process::usual_terms();
    terms.acquire.lease.renew_every = {};
    a.restart(terms);
    const auto slow = a.ask({.wait = 1min});
    world.advance(7s);
    from.takes = 100ms;
    EXPECT_EQ(b.get().value, "t2");
    ASSERT_TRUE(all_told({slow}));
    EXPECT_EQ((*slow)->verdict, cached_verdict::value);
    EXPECT_EQ((*slow)->value, "t2");
}

TEST_F(CachedValue, ARefusalIsAskedForOnceAndToldToAll) {
    from.instead = [](int) -> std::optional<fetched> {
        fetched answer;
        answer.how = fetched::ending::refused;
        answer.trouble = "invalid_grant";
        return answer;
    };
    for (int second = 0; second < 10; ++second) {
        const auto told = stampede(30);
        ASSERT_TRUE(all_told(told));
        for (const auto& one : told) {
            EXPECT_EQ((*one)->verdict, cached_verdict::refused);
            EXPECT_EQ((*one)->detail, "invalid_grant");
        }
        world.advance(1s);
    }
    EXPECT_EQ(from.fetches, 1);
    EXPECT_EQ(b.forget().verdict, cached_verdict::value);
    from.instead = {};
    EXPECT_EQ(b.get().value, "t2") << "a new login";
}

TEST_F(CachedValue, FailuresAreAskedForOncePerStepOfTheBackOff) {
    bool up = false;
    from.instead = [&](int) -> std::optional<fetched> {
        if (up) {
            return std::nullopt;
        }
        fetched answer;
        answer.trouble = "503";
        return answer;
    };
    for (int step = 0; step < 100; ++step) {  // 10 s
        const auto told = stampede(3);
        ASSERT_TRUE(all_told(told));
        for (const auto& one : told) {
            EXPECT_EQ((*one)->verdict, cached_verdict::failing);
            EXPECT_EQ((*one)->detail, "503");
            EXPECT_GT((*one)->retry_after, 0s);
        }
        world.advance(100ms);
    }
    EXPECT_GE(from.fetches, 3);
    EXPECT_LE(from.fetches, 6) << "1 s, 2 s, 4 s, 8 s, each a fifth more or less, over some 30 s";
    up = true;
    world.advance(20s);
    EXPECT_EQ(a.get().verdict, cached_verdict::value);
}

TEST_F(CachedValue, AValueThatIsStillValidIsServedWhileFetchesFail) {
    EXPECT_EQ(a.get().value, "t1");
    from.instead = [](int) -> std::optional<fetched> {
        fetched answer;
        answer.retry_after = 30s;
        answer.trouble = "429";
        return answer;
    };
    world.advance(52s);
    for (int second = 0; second < 7; ++second) {
        EXPECT_EQ(a.get().value, "t1");
        EXPECT_EQ(b.get().value, "t1");
        world.advance(1s);
    }
    EXPECT_EQ(from.fetches, 2);
    world.advance(2s);
    const auto told = c.get();
    EXPECT_EQ(told.verdict, cached_verdict::failing);
    EXPECT_GT(told.retry_after, 15s) << "what the provider asked for, counted from its answer";
    EXPECT_LT(told.retry_after, 25s);
    EXPECT_EQ(from.fetches, 2);
}

TEST_F(CachedValue, ShortLivesDoNotMakeItFetchWithoutEnd) {
    for (const auto life : {500ms, 1000ms, 5000ms, 30'000ms}) {
        SCOPED_TRACE(life.count());
        from.life = life;
        from.takes = 10ms;
        const auto before = from.fetches;
        const auto start = world.now();
        while (world.now() - start < 2min) {
            (void)a.get({.min_life = 60s, .wait = 5s});
            (void)b.get({.wait = 5s});
            world.advance(20ms);
        }
        const auto spent = std::chrono::duration<double>(world.now() - start);
        const auto step = std::max<core::milliseconds>(1s, life * 76 / 100);
        // Whoever wants more than there is to be had asks once per floor.
        EXPECT_LE(from.fetches - before, spent / 1s + 2) << "the floor";
        EXPECT_GE(from.fetches - before, spent / step / 2);
        EXPECT_EQ(a.forget().verdict, cached_verdict::value);
    }
}

TEST_F(CachedValue, WhoWaitsIsToldAtItsOwnDeadline) {
    from.takes = 1min;
    from.life = 1h;
    const auto fetching = a.ask({.wait = 2min});
    world.advance(100ms);
    const auto before = world.now();
    EXPECT_EQ(b.get({.wait = 3s}).verdict, cached_verdict::busy);
    EXPECT_GE(world.now() - before, 3s);
    EXPECT_LT(world.now() - before, 3200ms);
    EXPECT_EQ(a.get({.wait = 1s}).verdict, cached_verdict::busy);
    const auto gone = a.ask({.wait = 1min});
    a.value->cancel(a.last_call);
    ASSERT_TRUE(all_told({gone}, 1s));
    EXPECT_EQ((*gone)->error, errc::cancelled);
    ASSERT_TRUE(all_told({fetching}));
    EXPECT_EQ((*fetching)->value, "t1");
}

TEST_F(CachedValue, AStoreThatIsGoneDoesNotTakeAValidValueAway) {
    EXPECT_EQ(a.get().value, "t1");
    world.advance(2s);
    a.crash();
    const auto before = world.now();
    EXPECT_EQ(a.get().value, "t1");
    EXPECT_LT(world.now() - before, 1s);
    world.advance(1min);
    const auto told = a.get({.wait = 10s});
    EXPECT_EQ(told.verdict, cached_verdict::trouble);
    EXPECT_TRUE(told.error);
}

TEST_F(CachedValue, WhoIsPatientWaitsForAStoreThatIsAway) {
    for (const auto trouble :
         {fault::refuse, fault::deny, fault::not_ready, fault::lose_request, fault::doubt}) {
        SCOPED_TRACE(static_cast<int>(trouble));
        a.restart();
        a.line.plan = [&](std::size_t, const auto&) { return trouble; };
        const auto patient = a.ask({.wait = 1min, .patient = true});
        const auto other = a.ask({.wait = 1min});
        ASSERT_TRUE(all_told({other}, 7s));
        EXPECT_TRUE((*other)->error);
        world.advance(30s);
        EXPECT_FALSE(patient->has_value());
        a.recover();
        ASSERT_TRUE(all_told({patient}, 8s));
        EXPECT_EQ((*patient)->verdict, cached_verdict::value);
        world.advance(61s);
    }
    EXPECT_EQ(from.most_at_once, 1);
}

TEST_F(CachedValue, WhoIsPatientDoesNotAskAStoreThatRefusesWithoutPause) {
    auto asked = 0;
    a.line.plan = [&](std::size_t, const auto&) {
        ++asked;
        return fault::not_ready;
    };
    const auto patient = a.ask({.wait = 1min, .patient = true});
    world.advance(30s);
    EXPECT_LE(asked, 65);
    EXPECT_GE(asked, 10);
}

TEST_F(CachedValue, WhoIsPatientIsToldTheTroubleAtTheEndOfTheWait) {
    a.crash();
    const auto silent = a.ask({.wait = 20s, .patient = true});
    world.advance(19s);
    EXPECT_FALSE(silent->has_value());
    ASSERT_TRUE(all_told({silent}, 2s));
    EXPECT_EQ((*silent)->error, condition::outcome_unknown) << (*silent)->error.message();
    a.line.plan = [](std::size_t, const auto&) { return fault::refuse; };
    const auto refused = a.ask({.wait = 20s, .patient = true});
    world.advance(19s);
    EXPECT_FALSE(refused->has_value());
    ASSERT_TRUE(all_told({refused}, 2s));
    EXPECT_EQ((*refused)->error, errc::store_unreachable) << (*refused)->error.message();
}

TEST_F(CachedValue, AnAnswerWithoutACredentialKeepsTheOneOfBefore) {
    for (const auto& given : {std::optional<std::string>{}, std::optional<std::string>{""}}) {
        from.instead = [&](int number) -> std::optional<fetched> {
            fetched answer;
            answer.how = fetched::ending::good;
            answer.value = "v" + std::to_string(number);
            answer.life = 60s;
            answer.successor = number == 1 ? std::optional<std::string>{"first"} : given;
            return answer;
        };
        (void)a.get();
        world.advance(61s);
        (void)b.get();
    }
    core::page found;
    bool read = false;
    a.line.list("oauth:crm", {}, 1, [&](core::page page) {
        found = std::move(page);
        read = true;
    });
    ASSERT_TRUE(world.run_until([&] { return read; }, 1s));
    ASSERT_EQ(found.records.size(), 1U);
    cached_fault fault{};
    const auto record =
        cached_record_of(found.records[0].result->value, "oauth:crm", nullptr, fault);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->successor, "first");
}

TEST_F(CachedValue, AKeyWithAnotherResultIsLeftAlone) {
    core::acquire taken;
    taken.key = "oauth:crm";
    taken.holder = core::holder_id::draw(world.random());
    taken.ttl = 1s;
    taken.mark = core::result_to_keep{.value = "not ours", .fresh = 0s, .keep = 1h};
    bool granted = false;
    b.batches.submit(taken, 1s, world.now() + 1s, [&](const core::reply&) { granted = true; });
    ASSERT_TRUE(world.run_until([&] { return granted; }, 1s));
    world.advance(2s);
    const auto told = a.get();
    EXPECT_EQ(told.error, errc::store_damaged);
    EXPECT_EQ(from.fetches, 0);
}

}  // namespace
}  // namespace dibs::recipes
