// SPDX-License-Identifier: Apache-2.0
// Goal: the history tells what a store did, also across copies that know less or more: a fence that
// a client is told stands in a grant.

#include "simulation/stores/step_log.hpp"

#include "core/record.hpp"
#include "core/verbs.hpp"
#include "simulation/history/invariants.hpp"
#include "simulation/history/recorder.hpp"
#include "simulation/world/world.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>

namespace dibs::simulation {

namespace {

using copy = std::map<std::string, core::record>;

core::store_instant at(int milliseconds) {
    return core::store_instant{core::milliseconds{milliseconds}};
}

core::answer given(core::verdict what, core::fence_number fence, int now) {
    core::answer told;
    told.what = what;
    told.took = core::effect::yes;
    told.fences = {fence, fence};
    told.now.lease = at(now);
    told.expires = at(now + 1000);
    return told;
}

class StepLog : public ::testing::Test {
  protected:
    void acquire(core::fence_number fence, int now) {
        core::acquire asked;
        asked.key = "k";
        asked.holder = holder_;
        asked.ttl = core::milliseconds{1000};
        log_.carried_out(asked, given(core::verdict::granted, fence, now), {1, sim_time{5}});
    }

    void renew(core::fence_number fence, int now) {
        core::renew asked;
        asked.key = "k";
        asked.holder = holder_;
        asked.ttl = core::milliseconds{1000};
        log_.carried_out(asked, given(core::verdict::renewed, fence, now), {1, sim_time{6}});
    }

    [[nodiscard]] copy with_grant(core::fence_number fence, int expires) const {
        core::record kept;
        core::grant one;
        one.holder = holder_;
        one.fences = {fence, fence};
        one.expires = at(expires);
        kept.grants.push_back(one);
        return {{"k", kept}};
    }

    void replaced(const copy& before, const copy& after, int now) {
        core::store_now when;
        when.lease = at(now);
        log_.replaced(before, after, when);
    }

    /// What has been written since the last look.
    std::string news() {
        auto told = history_.text(seen_);
        seen_ = history_.events();
        return told;
    }

    [[nodiscard]] static bool tells(const std::string& text, const std::string& what) {
        return text.find(what) != std::string::npos;
    }

  private:
    world world_;
    recorder history_{world_};
    invariants laws_;
    step_log log_{history_, laws_};
    core::holder_id holder_{{std::byte{1}}};
    std::size_t seen_ = 0;
};

TEST_F(StepLog, TellsWhenARenewalHadLeft) {
    acquire(10, 1);
    news();
    renew(10, 2);
    EXPECT_TRUE(tells(news(), R"("sent_sim_ns":6)"));
}

TEST_F(StepLog, AGrantThatAnOlderCopyBringsBackIsNotGivenAgain) {
    acquire(10, 1);
    replaced(with_grant(10, 1001), {}, 2);
    EXPECT_TRUE(tells(news(), R"("why":"lost")"));
    replaced({}, with_grant(10, 1001), 3);
    acquire(10, 4);
    renew(10, 5);
    EXPECT_EQ(news(), "");
}

TEST_F(StepLog, WhoseGrantWasBroughtBackCanBeGrantedTheKeyAnew) {
    acquire(10, 1);
    replaced(with_grant(10, 1001), {}, 2);
    replaced({}, with_grant(10, 1001), 3);
    news();
    acquire(20, 2000);
    EXPECT_TRUE(tells(news(), R"("op":"grant")"));
    renew(20, 2001);
    EXPECT_TRUE(tells(news(), R"("op":"prolong")"));
}

TEST_F(StepLog, TheExpiryThatACopyBringsIsNobodysRenewal) {
    acquire(10, 1);
    news();
    replaced(with_grant(10, 1001), with_grant(10, 900), 3);
    EXPECT_TRUE(tells(news(), R"("why":"copy")"));
}

TEST_F(StepLog, AGrantThatHadExpiredLivesAgainByTheExpiryOfACopy) {
    acquire(10, 1);
    news();
    replaced(with_grant(10, 1001), with_grant(10, 3000), 2000);
    const auto told = news();
    EXPECT_TRUE(tells(told, R"("why":"copy")")) << told;
    EXPECT_TRUE(tells(told, R"("store_expires_ns":3000000000)")) << told;
}

TEST_F(StepLog, AnEarlierGrantOfTheSameHolderIsNoProlongedOne) {
    acquire(10, 1);
    acquire(20, 2);
    news();
    replaced(with_grant(20, 1002), with_grant(10, 1001), 3);
    const auto told = news();
    EXPECT_TRUE(tells(told, R"("why":"lost")")) << told;
    EXPECT_FALSE(tells(told, R"("op":"prolong")")) << told;
}

}  // namespace

}  // namespace dibs::simulation
