// SPDX-License-Identifier: Apache-2.0
// Notices: whoever is refused and asked for it has left word with the grant in its way, and hears of
// its end without a watch.

#include "suite.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dibs::conformance {

#define DIBS_NEEDS_NOTICES()                                                             \
    if (!caps().notifies) {                                                              \
        GTEST_SKIP() << caps().name << " has no notices: whoever waits watches the key"; \
    }

namespace {

core::acquire asking_for_notice(const std::string& key, core::holder_id who) {
    auto asked = acquire_of(key, who);
    asked.notify = true;
    return asked;
}

/// Counts what one process is told of a key.
struct notice_probe {
    notice_probe(store::store& by, const std::string& key) : through(by) {
        id = by.await_notices(key, [this](store::wake_by) { ++notices; });
    }
    notice_probe(const notice_probe&) = delete;
    notice_probe& operator=(const notice_probe&) = delete;
    ~notice_probe() { through.unwatch(id); }

    store::store& through;
    store::watch_id id = 0;
    int notices = 0;
};

}  // namespace

TEST_P(Conformance, AStoreWithoutNoticesTakesNoWord) {
    if (caps().notifies) {
        GTEST_SKIP() << caps().name << " takes word";
    }
    (void)take(a(), "k");
    EXPECT_EQ(b().await_notices("k", [](store::wake_by) {}), 0U);
    const auto told = ask(b(), asking_for_notice("k", somebody()));
    EXPECT_EQ(told.what, verdict::held);
    EXPECT_FALSE(told.will_notify);
}

TEST_P(Conformance, WhoLeftWordHearsOfARelease) {
    DIBS_NEEDS_NOTICES();
    const auto holder = take(a(), "k");
    const notice_probe probe{b(), "k"};
    const auto refused = ask(b(), asking_for_notice("k", somebody()));
    ASSERT_EQ(refused.what, verdict::held);
    ASSERT_TRUE(refused.will_notify);
    EXPECT_EQ(refused.ticket, 0U);
    ASSERT_EQ(refused.holders.size(), 1U);
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return probe.notices > 0; }));
    EXPECT_EQ(ask(b(), asking_for_notice("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, WhoLeftWordHearsOfAResultAndOfARevocation) {
    DIBS_NEEDS_NOTICES();
    const auto finishing = take(a(), "finished");
    take(a(), "revoked");
    const auto fence = fences_of(a(), "revoked").first;
    const notice_probe finished{b(), "finished"};
    const notice_probe revoked{b(), "revoked"};
    ASSERT_TRUE(ask(b(), asking_for_notice("finished", somebody())).will_notify);
    ASSERT_TRUE(ask(b(), asking_for_notice("revoked", somebody())).will_notify);
    ask(a(), finish_of("finished", finishing, result_of("outcome", 1h, 1h)));
    EXPECT_TRUE(run_until([&] { return finished.notices > 0; }));
    EXPECT_EQ(revoked.notices, 0);
    ask(a(), revoke_of("revoked", fence));
    EXPECT_TRUE(run_until([&] { return revoked.notices > 0; }));
}

TEST_P(Conformance, NobodyElseHearsANotice) {
    DIBS_NEEDS_NOTICES();
    const auto holder = take(a(), "k");
    const auto third = open("host-c");
    const notice_probe word{b(), "k"};
    const notice_probe none{*third, "k"};
    const notice_probe other{b(), "other"};
    ASSERT_TRUE(ask(b(), asking_for_notice("k", somebody())).will_notify);
    ASSERT_FALSE(ask(*third, acquire_of("k", somebody())).will_notify);
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return word.notices > 0; }));
    settle({&a(), &b(), third.get()});
    EXPECT_EQ(word.notices, 1);
    EXPECT_EQ(none.notices, 0);
    EXPECT_EQ(other.notices, 0);
}

TEST_P(Conformance, WordThatIsLeftTwiceIsToldOnce) {
    DIBS_NEEDS_NOTICES();
    const auto holder = take(a(), "k");
    const notice_probe probe{b(), "k"};
    for (int at = 0; at < 3; ++at) {
        ASSERT_TRUE(ask(b(), asking_for_notice("k", somebody())).will_notify);
    }
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return probe.notices > 0; }));
    settle({&a(), &b()});
    EXPECT_EQ(probe.notices, 1);
}

TEST_P(Conformance, WordEndsWithTheGrant) {
    DIBS_NEEDS_NOTICES();
    auto holder = take(a(), "k");
    const notice_probe probe{b(), "k"};
    ASSERT_TRUE(ask(b(), asking_for_notice("k", somebody())).will_notify);
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return probe.notices > 0; }));
    holder = take(a(), "k");
    ask(a(), release_of("k", holder));
    settle({&a(), &b()});
    EXPECT_EQ(probe.notices, 1);
}

TEST_P(Conformance, WordOutlivesRenewalsAndAdoption) {
    DIBS_NEEDS_NOTICES();
    auto holder = take(a(), "k");
    const notice_probe probe{b(), "k"};
    ASSERT_TRUE(ask(b(), asking_for_notice("k", somebody())).will_notify);
    ASSERT_EQ(ask(a(), renew_of("k", holder)).what, verdict::renewed);
    auto more = renew_of("k", holder);
    more.fences = 5;
    ASSERT_EQ(ask(a(), more).what, verdict::renewed);
    auto adopted = renew_of("k", holder);
    holder = somebody();
    adopted.adopt = {holder, core::attachment::detached};
    ASSERT_EQ(ask(a(), adopted).what, verdict::renewed);
    ask(a(), block_of("k", 1h, "maintenance"));
    ask(a(), block_of("k", 0s, ""));
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return probe.notices > 0; }));
}

TEST_P(Conformance, NoNoticeIsLostBetweenARefusalAndTheRelease) {
    DIBS_NEEDS_NOTICES();
    int refusals = 0;
    for (int round = 0; round < 200; ++round) {
        const auto holder = take(a(), "k");
        const notice_probe probe{b(), "k"};
        bool released = false;
        std::optional<core::answer> told;
        std::vector<core::entry> asking;
        const auto who = somebody();
        asking.push_back(entry(asking_for_notice("k", who)));
        std::vector<core::entry> leaving;
        leaving.push_back(entry(release_of("k", holder)));
        b().execute(usual_lane, std::move(asking), [&](store::answers given) {
            told = std::move(given.front());
        });
        a().execute(usual_lane, std::move(leaving), [&](store::answers) { released = true; });
        ASSERT_TRUE(run_until([&] { return released && told.has_value(); })) << "round " << round;
        if (told->what == verdict::granted) {
            ask(b(), release_of("k", who));
            continue;
        }
        ++refusals;
        ASSERT_TRUE(told->will_notify);
        ASSERT_TRUE(run_until([&] { return probe.notices > 0; })) << "round " << round;
    }
    EXPECT_GT(refusals, 0);
}

TEST_P(Conformance, AReleaseInABatchTellsThoseWhoLeftWord) {
    DIBS_NEEDS_NOTICES();
    auto untraced = acquire_of("bare", somebody());
    untraced.traced = false;
    ASSERT_EQ(ask(a(), untraced).what, verdict::granted);
    const auto holder = take(a(), "k");
    const notice_probe of_k{b(), "k"};
    const notice_probe of_bare{b(), "bare"};
    ASSERT_TRUE(ask(b(), asking_for_notice("k", somebody())).will_notify);
    ASSERT_TRUE(ask(b(), asking_for_notice("bare", somebody())).will_notify);
    std::vector<core::entry> batch;
    batch.push_back(entry(acquire_of("other", somebody())));
    batch.push_back(entry(release_of("k", holder)));
    batch.push_back(entry(release_of("bare", untraced.holder)));
    for (const auto& told : ask_all(a(), std::move(batch))) {
        EXPECT_EQ(told.took, effect::yes);
    }
    EXPECT_TRUE(run_until([&] { return of_k.notices > 0 && of_bare.notices > 0; }));
}

TEST_P(Conformance, WhoLeftWordIsSeenToWait) {
    DIBS_NEEDS_NOTICES();
    auto untraced = acquire_of("k", somebody());
    untraced.traced = false;
    ASSERT_EQ(ask(a(), untraced).what, verdict::granted);
    EXPECT_FALSE(ask(a(), renew_of("k", untraced.holder)).waiters);
    ASSERT_TRUE(ask(b(), asking_for_notice("k", somebody())).will_notify);
    EXPECT_TRUE(ask(a(), renew_of("k", untraced.holder)).waiters);
    const auto seen = look(b(), "k");
    EXPECT_EQ(seen.waiters, 1U);
    ASSERT_EQ(seen.holders.size(), 1U);
    EXPECT_EQ(seen.holders.front().who.host, look(a(), "k").holders.front().who.host);
    EXPECT_TRUE(ask(a(), release_of("k", untraced.holder)).waiters);
    EXPECT_EQ(look(b(), "k").waiters, 0U);
}

TEST_P(Conformance, AProcessThatIsGoneLeavesNobodyWhoWaits) {
    DIBS_NEEDS_NOTICES();
    const auto holder = take(a(), "k");
    auto third = open("host-c");
    ASSERT_TRUE(ask(*third, asking_for_notice("k", somebody())).will_notify);
    EXPECT_EQ(look(a(), "k").waiters, 1U);
    third->close();
    EXPECT_TRUE(run_until([&] { return look(a(), "k").waiters == 0; }));
    EXPECT_FALSE(ask(a(), release_of("k", holder)).waiters);
}

TEST_P(Conformance, WordIsLeftBesideAQueueToo) {
    DIBS_NEEDS_NOTICES();
    if (!caps().queues) {
        GTEST_SKIP() << caps().name << " keeps no queue";
    }
    const auto holder = take(a(), "k");
    const auto third = open("host-c");
    auto queued = acquire_of("k", somebody());
    queued.queue = 10s;
    const auto head = watch(*third, "k");
    ASSERT_EQ(ask(*third, queued).position, 1U);
    const notice_probe probe{b(), "k"};
    ASSERT_TRUE(ask(b(), asking_for_notice("k", somebody())).will_notify);
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return probe.notices > 0 && head->wakes > 0; }));
    const auto second = ask(b(), asking_for_notice("k", somebody()));
    EXPECT_EQ(second.what, verdict::held) << "the queue comes first";
    EXPECT_FALSE(second.will_notify) << "there is no grant whose end could be told";
    third->unwatch(head->id);
}

TEST_P(Conformance, NoWordIsLeftWithThoseWhoShareAKey) {
    DIBS_NEEDS_NOTICES();
    if (!caps().shared) {
        GTEST_SKIP() << caps().name << " has no shared grants";
    }
    const auto reader = somebody();
    ask(a(), shared_acquire_of("k", reader, 1, core::share::unlimited));
    const auto refused = ask(b(), asking_for_notice("k", somebody()));
    EXPECT_EQ(refused.what, verdict::held);
    EXPECT_FALSE(refused.will_notify);
    EXPECT_EQ(ask(a(), release_of("k", reader)).what, verdict::released);
}

}  // namespace dibs::conformance
