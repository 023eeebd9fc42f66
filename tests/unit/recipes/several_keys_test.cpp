// SPDX-License-Identifier: Apache-2.0
// Several keys at once, on virtual time: all or none, whatever the order in which they are named, and
// nothing is left behind by a call that fails.

#include "recipes/several_keys.hpp"

#include "mutex_process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dibs::recipes {

namespace {

class SeveralKeys : public Mutex {
  protected:
    struct call {
        std::shared_ptr<several_keys> itself;
        std::optional<several_outcome> outcome;
        core::instant when{};
        [[nodiscard]] bool all() const { return outcome && !outcome->leases.empty(); }
    };
    using call_ptr = std::shared_ptr<call>;

    call_ptr ask(process& by, std::vector<std::string> names, mutex_terms terms = terms_of()) {
        auto made = std::make_shared<call>();
        made->itself = several_keys::start(by.world.view(),
                                           by.keys,
                                           std::move(names),
                                           std::move(terms),
                                           [this, made](several_outcome&& ended) {
                                               made->outcome = std::move(ended);
                                               made->when = world.now();
                                           });
        return made;
    }

    void give_back(process& by, const call_ptr& which) {
        for (const auto& lease : which->outcome->leases) {
            by.keys.release(lease, [](release_reply) {});
        }
        which->outcome->leases.clear();
    }
};

}  // namespace

TEST_F(SeveralKeys, AllAreHeldEachWithItsFence) {
    const auto told = ask(here, {"b", "a", "c"});
    EXPECT_FALSE(told->outcome) << "never inside the call";
    world.run_ready();
    ASSERT_TRUE(told->all());
    ASSERT_EQ(told->outcome->leases.size(), 3U);
    for (std::size_t at = 0; at < 3; ++at) {
        const auto& lease = *told->outcome->leases[at];
        EXPECT_EQ(lease.key(), std::string(1, static_cast<char>('a' + at)));
        ASSERT_EQ(here.holders(lease.key()).size(), 1U);
        EXPECT_EQ(here.holders(lease.key())[0].fences.first, lease.fence());
    }
}

TEST_F(SeveralKeys, FreeKeysAreTakenInOneStep) {
    const auto before = here.line.seen.size();
    const auto told = ask(here, {"b", "a", "c"});
    world.run_ready();
    ASSERT_TRUE(told->all());
    ASSERT_EQ(here.line.seen.size(), before + 1);
    EXPECT_EQ(here.line.seen.back().entries.size(), 3U);
    give_back(here, told);
    world.run_ready();
    EXPECT_EQ(here.line.seen.size(), before + 2);
}

TEST_F(SeveralKeys, WhoeverWaitsKeepsNoKeyBehindTheOneItWaitsFor) {
    const auto held = there.take(terms_of(), "b");
    const auto told = ask(here, {"c", "b", "a"}, terms_of(10min));
    world.run_ready();
    EXPECT_FALSE(told->outcome);
    EXPECT_EQ(here.holders("a").size(), 1U);
    EXPECT_TRUE(here.holders("c").empty());
    there.release(held);
    ASSERT_TRUE(world.run_until([&] { return told->outcome.has_value(); }, 1min));
    EXPECT_TRUE(told->all());
}

TEST_F(SeveralKeys, OneThatIsHeldLeavesNothingOfTheOthers) {
    const auto held = there.take(terms_of(), "b");
    const auto told = ask(here, {"c", "b", "a"});
    world.run_ready();
    ASSERT_TRUE(told->outcome);
    EXPECT_FALSE(told->all());
    EXPECT_FALSE(told->outcome->last.error);
    EXPECT_EQ(told->outcome->key, "b");
    ASSERT_EQ(told->outcome->last.holders.size(), 1U);
    EXPECT_TRUE(here.holders("a").empty());
    EXPECT_TRUE(here.holders("c").empty());
    world.advance(10s);
    EXPECT_EQ(here.keys.known_keys(), 0U);
}

TEST_F(SeveralKeys, CallersWithOppositeOrdersAreAllServed) {
    const std::vector<std::vector<std::string>> orders{
        {"a", "b"}, {"b", "a"}, {"c", "a", "b"}, {"b", "c"}, {"c", "b", "a"}};
    std::vector<call_ptr> calls;
    for (int round = 0; round < 4; ++round) {
        for (std::size_t at = 0; at < orders.size(); ++at) {
            calls.push_back(ask(at % 2 == 0 ? here : there, orders[at], terms_of(10min)));
        }
    }
    std::size_t served = 0;
    while (served < calls.size()) {
        const auto begun = served;
        for (std::size_t at = 0; at < calls.size(); ++at) {
            if (calls[at]->all()) {
                world.advance(5ms);
                give_back(at % orders.size() % 2 == 0 ? here : there, calls[at]);
                ++served;
            }
        }
        ASSERT_TRUE(served > begun || world.run_until(
                                          [&] {
                                              return std::any_of(
                                                  calls.begin(), calls.end(), [](const auto& one) {
                                                      return one->all();
                                                  });
                                          },
                                          1min))
            << served << " of " << calls.size() << " were served, the others wait for each other";
    }
    world.run_ready();
    for (const auto* key : {"a", "b", "c"}) {
        EXPECT_TRUE(here.holders(key).empty());
    }
}

TEST_F(SeveralKeys, TheWaitIsOneForAllOfThem) {
    const auto first = there.take(terms_of(), "a");
    const auto second = there.take(terms_of(), "b");
    const auto begun = world.now();
    const auto told = ask(here, {"a", "b"}, terms_of(5s));
    world.advance(4s);
    there.release(first);
    world.run_ready();
    ASSERT_EQ(here.holders("a").size(), 1U);
    EXPECT_FALSE(told->outcome);
    world.advance(4s);
    ASSERT_TRUE(told->outcome);
    EXPECT_FALSE(told->all());
    EXPECT_FALSE(told->outcome->last.error) << "busy is no error";
    EXPECT_LE(told->when - begun, 5s + 20ms);
    EXPECT_TRUE(here.holders("a").empty());
}

TEST_F(SeveralKeys, AStoreThatNeverAnswersIsAnErrorInTime) {
    here.line.plan = [&](std::size_t, const faulty_store::seen_batch& batch) {
        const bool asks = std::holds_alternative<core::acquire>(batch.entries.at(0).what);
        return asks ? fault::lose_request : fault::none;
    };
    const auto begun = world.now();
    const auto told = ask(here, {"a", "b"});
    world.advance(20s);
    ASSERT_TRUE(told->outcome);
    EXPECT_EQ(told->outcome->last.error, condition::outcome_unknown);
    EXPECT_EQ(told->outcome->key, "a");
    EXPECT_LE(told->when - begun, 5s + 20ms);
    EXPECT_TRUE(there.holders("a").empty());
}

TEST_F(SeveralKeys, WhoeverWaitsGoesOnWhenTheStoreIsInTrouble) {
    for (const auto what :
         {fault::refuse, fault::deny, fault::not_ready, fault::lose_request, fault::lose_answer}) {
        for (const auto& names : {std::vector<std::string>{"a"}, {"a", "b", "c"}}) {
            const auto trouble_ends = world.now() + 30s;
            here.line.plan = [&](std::size_t, const auto&) {
                return world.now() < trouble_ends ? what : fault::none;
            };
            const auto said_before = here.line.seen.size();
            const auto told = ask(here, names, terms_of(10min));
            world.advance(29s);
            EXPECT_FALSE(told->outcome) << told->outcome->last.error.message();
            EXPECT_LE(here.line.seen.size(), said_before + 100) << "it asks without end";
            ASSERT_TRUE(world.run_until([&] { return told->outcome.has_value(); }, 1min));
            EXPECT_TRUE(told->all());
            give_back(here, told);
            world.advance(1min);
            for (const auto& name : names) {
                EXPECT_TRUE(here.holders(name).empty());
            }
        }
    }
}

TEST_F(SeveralKeys, TroubleThatLastsIsToldWhenTheWaitIsOver) {
    here.line.plan = [](std::size_t, const auto&) { return fault::refuse; };
    const auto begun = world.now();
    const auto told = ask(here, {"a", "b"}, terms_of(30s));
    world.advance(1min);
    ASSERT_TRUE(told->outcome);
    EXPECT_TRUE(told->outcome->last.error);
    EXPECT_GE(told->when - begun, 29s);
    EXPECT_LE(told->when - begun, 30s + 20ms);
}

TEST_F(SeveralKeys, BeginsAnewWhenOneIsLostMeanwhile) {
    const auto other = there.take(terms_of(), "b");
    const auto told = ask(here, {"a", "b"}, terms_of(10min));
    world.run_ready();
    const auto first = here.holders("a").at(0).fences.first;
    core::answer ended;
    there.batches.submit(
        core::revoke{"a", first}, 1s, world.now() + 1s, [&](const core::reply& heard) {
            ended = heard.given;
        });
    world.advance(3s);
    ASSERT_EQ(ended.what, core::verdict::revoked);
    there.release(other);
    ASSERT_TRUE(world.run_until([&] { return told->outcome.has_value(); }, 1min));
    ASSERT_TRUE(told->all());
    EXPECT_GT(told->outcome->leases[0]->fence(), first);
    for (const auto& lease : told->outcome->leases) {
        EXPECT_TRUE(lease->held(world.now()));
        EXPECT_EQ(here.holders(lease->key()).size(), 1U);
    }
}

TEST_F(SeveralKeys, CancelledItHoldsNothing) {
    const auto held = there.take(terms_of(), "c");
    const auto told = ask(here, {"a", "b", "c"}, terms_of(10min));
    world.run_ready();
    ASSERT_EQ(here.holders("b").size(), 1U);
    told->itself->cancel();
    world.run_ready();
    ASSERT_TRUE(told->outcome);
    EXPECT_EQ(told->outcome->last.error, errc::cancelled);
    EXPECT_TRUE(here.holders("a").empty());
    EXPECT_TRUE(here.holders("b").empty());
    there.release(held);
    world.advance(10s);
    EXPECT_TRUE(here.holders("c").empty());
}

TEST_F(SeveralKeys, AClientThatClosesEndsItAndHoldsNothing) {
    const auto held = there.take(terms_of(), "c");
    const auto told = ask(here, {"a", "b", "c"}, terms_of(10min));
    world.run_ready();
    ASSERT_EQ(here.holders("b").size(), 1U);
    here.keys.close();
    world.run_ready();
    ASSERT_TRUE(told->outcome);
    EXPECT_EQ(told->outcome->last.error, errc::closed);
    EXPECT_TRUE(there.holders("a").empty());
    EXPECT_TRUE(there.holders("b").empty());
}

TEST_F(SeveralKeys, AFaultAtAnyOperationLeavesNothingBehind) {
    for (const auto what : {fault::refuse, fault::lose_request, fault::lose_answer, fault::doubt}) {
        for (std::size_t number = 1; number <= 4; ++number) {
            const auto held = there.take(terms_of(), "c");
            const auto until = here.line.seen.size() + number;
            here.line.plan = [until, what](std::size_t at, const auto&) {
                return at == until ? what : fault::none;
            };
            const auto told = ask(here, {"a", "b", "c"});
            world.advance(20s);
            here.line.plan = nullptr;
            ASSERT_TRUE(told->outcome);
            EXPECT_FALSE(told->all());
            world.advance(1min);
            EXPECT_TRUE(here.holders("a").empty()) << "operation " << number;
            EXPECT_TRUE(here.holders("b").empty()) << "operation " << number;
            there.release(held);
        }
    }
}

}  // namespace dibs::recipes
