// SPDX-License-Identifier: Apache-2.0
// Elections as a user sees them: several clients on one store in memory, real time.
#include "support/eventually.hpp"

#include <dibs/dibs.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace dibs {
namespace {

using namespace std::chrono_literals;
using testing::eventually;

constexpr campaign_options one_try{.ttl = 30s, .wait = 0ms};

class Election : public ::testing::Test {
  protected:
    static std::string fresh_store() {
        static std::atomic<int> last{0};
        return "memory:election-" + std::to_string(++last);
    }
    const std::string url = fresh_store();
    client here{url};
    client there{url};
};

/// What an observer was told.
class diary {
  public:
    [[nodiscard]] observer pen() {
        return [this](const leader_change& what) {
            const std::lock_guard lock(mutex_);
            told_.push_back(what);
        };
    }
    [[nodiscard]] std::vector<leader_change> told() const {
        const std::lock_guard lock(mutex_);
        return told_;
    }
    /// Whether the last entry says so.
    [[nodiscard]] bool ends_with(std::uint64_t term, bool leads) const {
        const auto all = told();
        return !all.empty() && all.back().term == term && all.back().leader.has_value() == leads;
    }

  private:
    mutable std::mutex mutex_;
    std::vector<leader_change> told_;
};

TEST_F(Election, OneLeadsAndTheNextOneFollowsWhenItResigns) {
    auto first = here.campaign("k");
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->held());
    EXPECT_FALSE(there.campaign("k", one_try));
    std::optional<leadership> second;
    std::thread standby([&] { second = there.campaign("k"); });
    ASSERT_TRUE(eventually([&] { return here.inspect("k")->waiters > 0; }));
    EXPECT_EQ(first->resign(), release_outcome::released);
    standby.join();
    ASSERT_TRUE(second);
    EXPECT_GT(second->number(), first->number());
    EXPECT_FALSE(first->held());
}

TEST_F(Election, ATermThatIsOverCannotEndSomebodyElses) {
    auto first = here.campaign("k");
    ASSERT_TRUE(first);
    ASSERT_TRUE(there.revoke("k", first->number()));
    auto second = there.campaign("k", one_try);
    ASSERT_TRUE(second);
    EXPECT_EQ(first->resign(), release_outcome::not_held);
    EXPECT_TRUE(second->held());
    EXPECT_EQ(here.inspect("k")->holders.front().fence, second->number());
}

TEST_F(Election, ALeaderThatIsDroppedHasResigned) {
    std::uint64_t before = 0;
    {
        const auto first = here.campaign("k");
        before = first->number();
    }
    const auto second = there.campaign("k");
    ASSERT_TRUE(second);
    EXPECT_GT(second->number(), before);
}

TEST_F(Election, CampaignsOfOneProcessHaveTermsThatOthersSee) {
    auto leader = here.campaign("k");
    ASSERT_TRUE(leader);
    // Often enough that in most turns the next one stands by before the last one resigns.
    for (int turn = 0; turn < 50; ++turn) {
        std::optional<leadership> next;
        std::atomic<bool> begun{false};
        std::thread standby([&] {
            begun = true;
            next = here.campaign("k");
        });
        EXPECT_TRUE(eventually([&] { return begun.load(); }));
        EXPECT_EQ(leader->resign(), release_outcome::released);
        standby.join();
        ASSERT_TRUE(next);
        EXPECT_GT(next->number(), leader->number());
        EXPECT_EQ(there.inspect("k")->holders.front().fence, next->number())
            << "a lease that is handed on would show the number of the term before";
        leader = std::move(next);
    }
    EXPECT_EQ(here.stats().handed_on, 0U);
}

TEST_F(Election, StandingByEndsWhenAskedToAndWhenItsTimeIsOver) {
    const auto leader = here.campaign("k");
    EXPECT_FALSE(there.campaign("k", {.ttl = 30s, .wait = 50ms}));
    std::stop_source stop;
    std::error_code error;
    std::thread standby([&] { EXPECT_FALSE(there.campaign("k", {}, stop.get_token(), error)); });
    ASSERT_TRUE(eventually([&] { return here.inspect("k")->waiters > 0; }));
    stop.request_stop();
    standby.join();
    EXPECT_EQ(error, condition::cancelled);
    EXPECT_THROW((void)here.campaign("k", {.ttl = 0ms}), dibs::error);
    EXPECT_THROW((void)here.campaign("", {}), dibs::error);
}

TEST_F(Election, TheTermIsLostWhenItIsTaken) {
    auto leader = here.campaign("k", {.ttl = 1s});
    ASSERT_TRUE(leader);
    const auto lost = leader->lost();
    ASSERT_TRUE(there.revoke("k", leader->number()));
    EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
    EXPECT_FALSE(leader->held());
    EXPECT_EQ(leader->lost_reason(), condition::lease_lost);
}

TEST_F(Election, AnObserverIsToldOfEachChangeWithItsTerm) {
    diary told;
    const auto watching = there.observe("k", told.pen(), {.every = 10ms});
    ASSERT_TRUE(eventually([&] { return told.ends_with(0, false); }))
        << "how things are comes first";
    std::uint64_t last = 0;
    for (int turn = 0; turn < 3; ++turn) {
        auto leader = here.campaign("k");
        ASSERT_TRUE(leader);
        last = leader->number();
        ASSERT_TRUE(eventually([&] { return told.ends_with(last, true); }));
        (void)leader->resign();
        ASSERT_TRUE(eventually([&] { return told.ends_with(last, false); }));
    }
    const auto all = told.told();
    EXPECT_EQ(all.size(), 7U) << "a change is told once";
    for (std::size_t at = 1; at < all.size(); ++at) {
        EXPECT_GE(all[at].term, all[at - 1].term);
    }
    EXPECT_NE(all[1].leader->pid, 0);
    EXPECT_EQ(watching.current()->term, last);
}

TEST_F(Election, AnObserverThatComesLateIsToldWhoLeads) {
    const auto leader = here.campaign("k");
    diary told;
    const auto watching = there.observe("k", told.pen(), {.every = 10ms});
    EXPECT_TRUE(eventually([&] { return told.ends_with(leader->number(), true); }));
    EXPECT_EQ(told.told().size(), 1U);
}

TEST_F(Election, AfterItsDestructionNoCallBegins) {
    std::atomic<int> calls{0};
    std::atomic<bool> gone{false};
    for (int turn = 0; turn < 20; ++turn) {
        gone = false;
        std::atomic<int> after{0};
        {
            const auto watching = there.observe("k",
                                                [&](const leader_change&) {
                                                    ++calls;
                                                    after += gone ? 1 : 0;
                                                },
                                                {.every = 10ms});
            const auto leader = here.campaign("k");
            if (turn % 2 == 0) {
                ASSERT_TRUE(eventually([&, before = calls.load()] { return calls > before; }));
            }
        }
        gone = true;
        const auto next = here.campaign("k");
        EXPECT_EQ(after, 0);
    }
}

TEST_F(Election, AnObservationMayBeDestroyedInItsOwnCallAndMayOutliveItsClient) {
    std::atomic<int> calls{0};
    std::mutex mutex;
    std::unique_ptr<observation> watching;
    {
        const std::lock_guard lock(mutex);
        watching =
            std::make_unique<observation>(there.observe("k",
                                                        [&](const leader_change&) {
                                                            const std::lock_guard inside(mutex);
                                                            ++calls;
                                                            watching.reset();
                                                        },
                                                        {.every = 10ms}));
    }
    ASSERT_TRUE(eventually([&] { return calls == 1; }));
    const auto leader = here.campaign("k");
    auto brief = std::make_unique<client>(url);
    auto left = brief->observe("k", {}, {.every = 10ms});
    ASSERT_TRUE(eventually([&] { return left.current().has_value(); }));
    brief.reset();
    EXPECT_EQ(left.current()->term, leader->number());
    EXPECT_EQ(calls, 1);
    EXPECT_THROW((void)there.observe("k", {}, {.every = 0ms}), dibs::error);
    EXPECT_THROW((void)there.observe("", {}), dibs::error);
}

}  // namespace
}  // namespace dibs
