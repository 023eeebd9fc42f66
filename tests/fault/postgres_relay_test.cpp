// SPDX-License-Identifier: Apache-2.0
// The PostgreSQL store over a bad network: cut at any byte, answers swallowed.

#include "postgres_peer.hpp"
#include "support/relay.hpp"

namespace dibs::testing {

namespace {

struct PostgresRelay : ::testing::Test {
    void open() { ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail; }

    std::string fence_of(const std::string& key) const {
        return server.ask("SELECT fence FROM dibs.lease WHERE key = '" + key + "'");
    }

    postgres_server server;
    relay between{std::to_string(server.port())};
    postgres_peer peer{"postgres://postgres@127.0.0.1:" + std::to_string(between.port()) +
                       "/postgres?sslmode=disable&gssencmode=disable"};
};

}  // namespace

// As after a failover: the host that was the primary is gone without a word.
TEST_F(PostgresRelay, AHostThatSaysNothingDoesNotStandBeforeTheNextOne) {
    const auto dumb = "127.0.0.1:" + std::to_string(between.port());
    const auto sound = "127.0.0.1:" + std::to_string(server.port());
    const std::string options = "/postgres?target_session_attrs=read-write";
    between.swallow_all();
    std::uint64_t client = 10;
    for (const auto& hosts :
         {dumb + "," + sound, sound + "," + dumb, dumb + "," + dumb + "," + sound}) {
        postgres_peer other{"postgres://postgres@" + hosts + options, ++client};
        ASSERT_EQ(other.open(), std::error_code{}) << hosts << ": " << other.detail;
        EXPECT_EQ(other.ask(acquire_of(hosts, holder_of(1))).what, verdict::granted);
    }
    postgres_peer none{"postgres://postgres@" + dumb + "," + dumb + options, ++client};
    EXPECT_EQ(none.open(), errc::store_unreachable);

    // And one that falls silent later.
    between.heal();
    postgres_peer later{"postgres://postgres@" + dumb + "," + sound + options, ++client};
    ASSERT_EQ(later.open(), std::error_code{}) << later.detail;
    between.swallow_all();
    between.cut();
    EXPECT_EQ(later.insist(acquire_of("k", holder_of(2))).what, verdict::granted);
}

TEST_F(PostgresRelay, ACutAnywhereInAnAnswerLeavesDoubtOrTheAnswer) {
    open();
    int in_doubt = 0;
    int answered = 0;
    for (int bytes = 0; bytes < 1200; bytes += 60) {
        const auto key = "k" + std::to_string(bytes);
        ASSERT_EQ(peer.insist(acquire_of("warm", holder_of(1))).what, verdict::granted);
        peer.settle();
        relay::fate fate;
        fate.cut_after = bytes;
        between.replies(fate);
        const auto given = peer.ask(acquire_of(key, holder_of(2)));
        between.heal();
        if (given.took == effect::yes) {
            ++answered;
            EXPECT_EQ(given.what, verdict::granted);
            EXPECT_EQ(fence_of(key), std::to_string(given.fences.last));
        } else {
            ++in_doubt;
            EXPECT_EQ(given.took, effect::unknown) << given.detail;
        }
        // Asked again, it is there once.
        const auto again = peer.insist(acquire_of(key, holder_of(2)));
        EXPECT_EQ(again.what, verdict::granted);
        EXPECT_EQ(fence_of(key), std::to_string(again.fences.last));
    }
    EXPECT_GT(in_doubt, 0);
    EXPECT_GT(answered, 0) << "the whole answer went through";
}

TEST_F(PostgresRelay, ACutAnywhereInARequestIsNeverTakenForAnAnswer) {
    open();
    for (int bytes = 1; bytes < 1200; bytes += 110) {
        const auto key = "k" + std::to_string(bytes);
        ASSERT_EQ(peer.insist(acquire_of("warm", holder_of(1))).what, verdict::granted);
        peer.settle();
        relay::fate fate;
        fate.cut_after = bytes;
        between.requests(fate);
        const auto given = peer.ask(acquire_of(key, holder_of(2)));
        between.heal();
        EXPECT_TRUE(given.took == effect::unknown || given.what == verdict::granted)
            << given.detail;
        EXPECT_EQ(peer.insist(acquire_of(key, holder_of(2))).what, verdict::granted);
    }
}

TEST_F(PostgresRelay, AnAnswerThatNeverComesIsInDoubtAndTheNextIsNot) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1), 60s)).what, verdict::granted);
    peer.settle();
    between.swallow_all();
    const auto given = peer.ask(renew_of("k", holder_of(1)));
    EXPECT_EQ(given.took, effect::unknown) << given.detail;
    EXPECT_EQ(given.error, condition::outcome_unknown);
    between.heal();
    EXPECT_EQ(peer.insist(renew_of("k", holder_of(1))).what, verdict::renewed);
}

}  // namespace dibs::testing
