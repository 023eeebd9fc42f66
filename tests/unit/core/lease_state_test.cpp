// SPDX-License-Identifier: Apache-2.0
// When a lease is held: not at its deadline or after it, and never again once anybody has seen that
// it is not.

#include "core/lease_state.hpp"

#include "core/deadline.hpp"
#include "support/verbs.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace dibs::core {

namespace {

using namespace std::chrono_literals;
using dibs::testing::holder_of;

const instant granted_at{5h};

lease_terms terms_of_ten_seconds() {
    lease_terms terms;
    terms.ttl = 10s;
    return terms;
}

lease_state lease_until(instant deadline) {
    return {"k", holder_of(1), 7, terms_of_ten_seconds(), granted_at, deadline};
}

}  // namespace

TEST(Deadline, IsOnePercentAndTwoMillisecondsBeforeTheTtlIsOver) {
    EXPECT_EQ(local_deadline(granted_at, 10s), granted_at + 10s - 100ms - 2ms);
    EXPECT_EQ(local_deadline(granted_at, 1h), granted_at + 1h - 36s - 2ms);
    static_assert(local_deadline(instant{}, 1ms) < instant{},
                  "a lease too short to be held is over at once");
}

TEST(LeaseState, IsHeldUpToTheDeadlineAndNotAtIt) {
    const auto deadline = local_deadline(granted_at, 10s);
    EXPECT_TRUE(lease_until(deadline).held(deadline - 1ns));
    EXPECT_FALSE(lease_until(deadline).held(deadline));
    EXPECT_FALSE(lease_until(deadline).held(deadline + 1ns));
}

TEST(LeaseState, StaysLostOnceSomebodyHasSeenIt) {
    auto lease = lease_until(granted_at + 10s);
    EXPECT_FALSE(lease.lost_reason());
    EXPECT_FALSE(lease.held(granted_at + 10s));
    EXPECT_EQ(lease.lost_reason(), make_error_code(errc::lease_expired));
    EXPECT_FALSE(lease.prolong(granted_at + 9s, granted_at + 20s))
        << "a renewal answered with an older clock";
    EXPECT_FALSE(lease.held(granted_at + 1s));
    EXPECT_FALSE(lease.lose(errc::lease_taken)) << "one reason, the first";
    EXPECT_EQ(lease.lost_reason(), make_error_code(errc::lease_expired));
    EXPECT_FALSE(lease.end_by_release());
    EXPECT_FALSE(lease.released());
}

TEST(LeaseState, IsProlongedWhileItIsHeld) {
    auto lease = lease_until(granted_at + 10s);
    std::vector<instant> told;
    lease.on_deadline = [&](instant deadline) { told.push_back(deadline); };
    EXPECT_TRUE(lease.prolong(granted_at + 4s, granted_at + 14s));
    EXPECT_TRUE(lease.held(granted_at + 13s));
    EXPECT_EQ(lease.deadline(), granted_at + 14s);
    EXPECT_FALSE(lease.prolong(granted_at + 14s, granted_at + 24s)) << "answered too late";
    EXPECT_EQ(lease.deadline(), granted_at + 14s);
    EXPECT_EQ(told, std::vector<instant>{granted_at + 14s});
}

TEST(LeaseState, AReleasedLeaseIsNotLost) {
    auto lease = lease_until(granted_at + 10s);
    EXPECT_TRUE(lease.end_by_release());
    EXPECT_TRUE(lease.released());
    EXPECT_FALSE(lease.held(granted_at));
    EXPECT_FALSE(lease.lost_reason());
    EXPECT_FALSE(lease.end_by_release());
    EXPECT_FALSE(lease.lose(errc::lease_gone));
    EXPECT_FALSE(lease.prolong(granted_at, granted_at + 20s));
    EXPECT_FALSE(lease.lost().stop_requested());
}

TEST(LeaseState, AReleaseThatCameTooLateTellsWhy) {
    auto lease = lease_until(granted_at + 10s);
    EXPECT_TRUE(lease.end_by_release());
    lease.released_too_late(errc::lease_taken);
    EXPECT_EQ(lease.lost_reason(), make_error_code(errc::lease_taken));
    EXPECT_TRUE(lease.released());
    EXPECT_FALSE(lease.lost().stop_requested());
}

TEST(LeaseState, LostIsRequestedOnDemandAlone) {
    auto lease = lease_until(granted_at + 10s);
    EXPECT_TRUE(lease.lose(errc::lease_taken));
    EXPECT_FALSE(lease.lost().stop_requested())
        << "callbacks run on the notifier's thread, not here";
    lease.request_lost();
    EXPECT_TRUE(lease.lost().stop_requested());
}

TEST(LeaseState, LostIsHeardByWhoeverAsksBeforeAfterOrMeanwhile) {
    for (int round = 0; round < 300; ++round) {
        auto lease = lease_until(granted_at + 10s);
        std::stop_token early;
        if (round % 2 == 0) {
            early = lease.lost();
        }
        std::stop_token one;
        std::stop_token two;
        std::thread asks{[&] { one = lease.lost(); }};
        std::thread asks_too{[&] { two = lease.lost(); }};
        lease.request_lost();
        asks.join();
        asks_too.join();
        EXPECT_TRUE(one.stop_requested());
        EXPECT_TRUE(two.stop_requested());
        EXPECT_TRUE(lease.lost().stop_requested());
        EXPECT_EQ(early.stop_requested(), round % 2 == 0);
    }
}

// Readers whose clock has passed the deadline race with a renewal. Whatever the outcome, each
// reader's answers go from true to false once at most, and a reader that starts after another has
// seen "lost" sees it too.
TEST(LeaseState, ARenewalThatRacesWithReadersNeverRevives) {
    for (int round = 0; round < 300; ++round) {
        auto lease = lease_until(granted_at + 10s);
        std::atomic<bool> seen_lost{false};
        std::atomic<bool> revived{false};
        std::atomic<int> ready{0};
        const auto start_together = [&] {
            ready.fetch_add(1);
            while (ready.load() < 3) {
                std::this_thread::yield();
            }
        };
        const auto read = [&](instant now) {
            start_together();
            for (int look = 0; look < 4; ++look) {
                const bool was_lost = seen_lost.load();
                const bool held = lease.held(now);
                if (held && was_lost) {
                    revived = true;
                }
                if (!held) {
                    seen_lost = true;
                }
            }
        };
        std::thread late([&] { read(granted_at + 10s); });
        std::thread early([&] { read(granted_at + 10s - 1ns); });
        start_together();
        const bool prolonged = lease.prolong(granted_at + 10s - 1ns, granted_at + 20s);
        late.join();
        early.join();
        ASSERT_FALSE(revived) << "round " << round;
        if (!prolonged) {
            ASSERT_TRUE(lease.lost_reason()) << "told that it is over, and it is";
        }
        ASSERT_EQ(lease.held(granted_at + 10s - 1ns), !seen_lost.load());
    }
}

}  // namespace dibs::core
