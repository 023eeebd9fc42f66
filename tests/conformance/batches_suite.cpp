// SPDX-License-Identifier: Apache-2.0
// Batches: independent entries, their order, their deadlines.

#include "suite.hpp"

#include <utility>

namespace dibs::conformance {

TEST_P(Conformance, AnswersComeInTheOrderOfTheEntries) {
    const auto renewing = take(a(), "renewed");
    const auto releasing = take(a(), "released");
    take(a(), "revoked");
    take(b(), "held");
    const auto fence = fences_of(a(), "revoked").first;
    std::vector<core::entry> batch;
    batch.push_back(entry(acquire_of("free", somebody())));
    batch.push_back(entry(renew_of("renewed", renewing)));
    batch.push_back(entry(acquire_of("held", somebody())));
    batch.push_back(entry(release_of("released", releasing)));
    batch.push_back(entry(block_of("blocked", 1h, "maintenance")));
    batch.push_back(entry(revoke_of("revoked", fence)));
    batch.push_back(entry(renew_of("free", somebody())));
    const auto given = ask_all(a(), std::move(batch));
    const std::vector<verdict> expected{verdict::granted,
                                        verdict::renewed,
                                        verdict::held,
                                        verdict::released,
                                        verdict::block_set,
                                        verdict::revoked,
                                        verdict::not_held};
    for (std::size_t at = 0; at < expected.size(); ++at) {
        EXPECT_EQ(given[at].what, expected[at]) << "entry " << at;
        EXPECT_EQ(given[at].took, effect::yes) << "entry " << at;
    }
}

TEST_P(Conformance, ABadEntryHarmsNoOther) {
    std::vector<core::entry> batch;
    auto faulty = acquire_of("faulty", somebody());
    faulty.part.weight = 7;
    batch.push_back(entry(acquire_of("first", somebody())));
    batch.push_back(entry(faulty));
    batch.push_back(entry(acquire_of("nonsense", somebody(), 0s)));
    batch.push_back(entry(acquire_of("last", somebody())));
    const auto given = ask_all(a(), std::move(batch));
    EXPECT_EQ(given[0].what, verdict::granted);
    EXPECT_EQ(given[1].error, errc::invalid_argument) << "more than there is";
    EXPECT_EQ(given[1].took, effect::no);
    EXPECT_EQ(given[2].what, verdict::failed) << "a ttl of nothing is no grant";
    EXPECT_EQ(given[2].took, effect::no);
    EXPECT_EQ(given[3].what, verdict::granted);
    EXPECT_EQ(look(b(), "first").holders.size(), 1U);
    EXPECT_EQ(look(b(), "last").holders.size(), 1U);
}

TEST_P(Conformance, AnEntryWhoseDeadlineHasPassedIsNeverExecuted) {
    const auto holder = take(a(), "kept");
    std::vector<core::entry> batch;
    for (auto& what : std::vector<core::verb>{acquire_of("late", somebody()),
                                              release_of("kept", holder),
                                              block_of("late", 1h, "late")}) {
        batch.push_back(entry(std::move(what)));
        batch.back().deadline = world().local_now() - 1s;
    }
    batch.push_back(entry(acquire_of("in time", somebody())));
    const auto given = ask_all(a(), std::move(batch));
    for (std::size_t at = 0; at < 3; ++at) {
        EXPECT_EQ(given[at].what, verdict::failed);
        EXPECT_EQ(given[at].took, effect::no);
        EXPECT_EQ(given[at].error, errc::timed_out);
    }
    EXPECT_EQ(given[3].what, verdict::granted);
    EXPECT_EQ(look(b(), "late").fence, 0U);
    EXPECT_EQ(look(b(), "late").blocked_for, 0s);
    EXPECT_EQ(look(b(), "kept").holders.size(), 1U);
}

TEST_P(Conformance, TheSameKeyTwiceIsExecutedTwice) {
    std::vector<core::entry> batch;
    batch.push_back(entry(acquire_of("k", somebody())));
    batch.push_back(entry(acquire_of("k", somebody())));
    const auto given = ask_all(a(), std::move(batch));
    EXPECT_EQ(given[0].what, verdict::granted);
    ASSERT_EQ(given[1].what, verdict::held);
    ASSERT_EQ(given[1].holders.size(), 1U);
    EXPECT_EQ(given[1].holders.front().fences, given[0].fences);
}

TEST_P(Conformance, ARetryBesideItsFirstTryFindsTheGrant) {
    const auto asked = acquire_of("k", somebody());
    std::vector<core::entry> batch;
    batch.push_back(entry(asked));
    batch.push_back(entry(asked));
    const auto given = ask_all(a(), std::move(batch));
    EXPECT_EQ(given[0].what, verdict::granted);
    EXPECT_EQ(given[1].what, verdict::granted);
    EXPECT_EQ(given[1].fences, given[0].fences);
}

TEST_P(Conformance, ReleasesAndRenewalsComeBeforeAcquires) {
    const auto leaving = take(a(), "released");
    const auto renewing = take(a(), "renewed");
    pass(1s);
    std::vector<core::entry> batch;
    batch.push_back(entry(acquire_of("released", somebody())));
    batch.push_back(entry(acquire_of("renewed", somebody())));
    batch.push_back(entry(renew_of("renewed", renewing)));
    batch.push_back(entry(release_of("released", leaving)));
    const auto given = ask_all(a(), std::move(batch));
    EXPECT_EQ(given[3].what, verdict::released);
    EXPECT_EQ(given[0].what, verdict::granted) << "the key was given back in the same batch";
    EXPECT_EQ(given[2].what, verdict::renewed);
    ASSERT_EQ(given[1].what, verdict::held);
    if (caps().expires) {
        EXPECT_EQ(given[1].retry_after, usual_ttl) << "seen after the renewal";
    }
}

TEST_P(Conformance, ABatchMayHave256Entries) {
    std::vector<core::entry> batch;
    for (std::size_t at = 0; at < store::max_batch_entries; ++at) {
        batch.push_back(entry(acquire_of("k" + std::to_string(at), somebody())));
    }
    const auto given = ask_all(a(), std::move(batch));
    for (const auto& one : given) {
        EXPECT_EQ(one.what, verdict::granted);
    }
    EXPECT_EQ(list(b(), "k").records.size(), store::max_batch_entries);
}

TEST_P(Conformance, SeveralBatchesMayBeUnderWay) {
    constexpr std::size_t batches = 20;
    std::vector<int> answered(batches, 0);
    std::size_t granted = 0;
    for (std::size_t at = 0; at < batches; ++at) {
        std::vector<core::entry> batch;
        batch.push_back(entry(acquire_of("k", somebody())));
        batch.push_back(entry(acquire_of("k" + std::to_string(at), somebody())));
        auto& through = at % 2 == 0 ? a() : b();
        through.execute(usual_lane, std::move(batch), [&, at](store::answers told) {
            ++answered[at];
            granted += told[0].what == verdict::granted ? 1 : 0;
            EXPECT_EQ(told[1].what, verdict::granted);
        });
    }
    EXPECT_EQ(answered, std::vector<int>(batches, 0)) << "never answered inside the call";
    ASSERT_TRUE(run_until([&] { return answered == std::vector<int>(batches, 1); }));
    settle({&a(), &b()});
    EXPECT_EQ(answered, std::vector<int>(batches, 1)) << "answered once";
    EXPECT_EQ(granted, 1U) << "of the key that all of them wanted";
}

// How many of so many batches are answered before a renewal that was asked for after them.
int Conformance::answered_before_a_renewal(int others) {
    const auto key = "renewed before " + std::to_string(others);
    const auto holder = take(a(), key);
    std::vector<std::vector<core::entry>> batches(static_cast<std::size_t>(others));
    for (auto& other : batches) {
        for (int at = 0; at < 100; ++at) {
            other.push_back(entry(acquire_of(somebody().text(), somebody())));
        }
    }
    std::vector<core::entry> batch;
    batch.push_back(entry(renew_of(key, holder)));
    int others_answered = 0;
    int before = -1;
    for (auto& other : batches) {
        a().execute(usual_lane, std::move(other), [&](store::answers) { ++others_answered; });
    }
    a().execute(store::lane::renewals, std::move(batch), [&](store::answers told) {
        EXPECT_EQ(told.front().what, verdict::renewed);
        before = others_answered;
    });
    EXPECT_TRUE(run_until([&] { return others_answered == others && before >= 0; }));
    return before;
}

// A store without a lane for renewals answers the one last, each time. On a busy host much of the rest may be done by the
// time that the last batch is asked for, so it is tried with more of them.
TEST_P(Conformance, RenewalsOvertakeOtherBatches) {
    constexpr int more_than_are_under_way_at_once = 8;
    int overtaken = 0;
    for (int others = 40; others <= 160 && !HasFailure(); others += 40) {
        overtaken = others - answered_before_a_renewal(others);
        if (overtaken >= more_than_are_under_way_at_once) {
            break;
        }
    }
    EXPECT_GE(overtaken, more_than_are_under_way_at_once);
}

}  // namespace dibs::conformance
