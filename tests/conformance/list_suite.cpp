// SPDX-License-Identifier: Apache-2.0
// Listing: what is there, in pages.

#include "suite.hpp"

#include <algorithm>

namespace dibs::conformance {

namespace {

std::vector<std::string> keys_of(const core::page& shown) {
    std::vector<std::string> keys;
    for (const auto& record : shown.records) {
        keys.push_back(record.key);
    }
    return keys;
}

}  // namespace

TEST_P(Conformance, ListsNothingWhereNothingIs) {
    const auto shown = list(a());
    EXPECT_TRUE(shown.records.empty());
    EXPECT_FALSE(shown.more);
}

TEST_P(Conformance, ListsInTheOrderOfBytes) {
    for (const auto* key : {"b", "a", "ab", "B", "日", "a b", "ä", "a/b"}) {
        take(a(), key);
    }
    const auto keys = keys_of(list(b()));
    EXPECT_EQ(keys, (std::vector<std::string>{"B", "a", "a b", "a/b", "ab", "b", "ä", "日"}));
}

TEST_P(Conformance, ListsByPrefixWithoutWildcards) {
    for (const auto* key : {"a", "ab", "abc", "a_c", "a%c", "axc", "A", "b", "a*", "a\\c", "aä"}) {
        take(a(), key);
    }
    EXPECT_EQ(keys_of(list(b(), "ab")), (std::vector<std::string>{"ab", "abc"}));
    EXPECT_EQ(keys_of(list(b(), "a_")), (std::vector<std::string>{"a_c"}));
    EXPECT_EQ(keys_of(list(b(), "a%")), (std::vector<std::string>{"a%c"}));
    EXPECT_EQ(keys_of(list(b(), "a*")), (std::vector<std::string>{"a*"}));
    EXPECT_EQ(keys_of(list(b(), "a\\")), (std::vector<std::string>{"a\\c"}));
    EXPECT_EQ(keys_of(list(b(), "aä")), (std::vector<std::string>{"aä"}));
    EXPECT_TRUE(list(b(), "zz").records.empty());
}

TEST_P(Conformance, ListsInPagesThatMissNothing) {
    for (int number = 10; number < 35; ++number) {
        take(a(), "k" + std::to_string(number));
    }
    take(a(), "j");
    take(a(), "l");
    std::vector<std::string> all;
    std::string after;
    std::vector<std::size_t> sizes;
    for (bool more = true; more;) {
        const auto shown = list(b(), "k", after, 10);
        sizes.push_back(shown.records.size());
        const auto keys = keys_of(shown);
        all.insert(all.end(), keys.begin(), keys.end());
        more = shown.more;
        ASSERT_FALSE(keys.empty());
        after = keys.back();
    }
    EXPECT_EQ(sizes, (std::vector<std::size_t>{10, 10, 5}));
    EXPECT_EQ(all.size(), 25U);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    EXPECT_EQ(all.front(), "k10");
    EXPECT_EQ(all.back(), "k34");
    const auto exact = list(b(), "k", "k24", 10);
    EXPECT_EQ(exact.records.size(), 10U);
    EXPECT_FALSE(exact.more) << "a full last page is the last";
}

TEST_P(Conformance, ShowsTheRecordAsItIs) {
    auto asked = acquire_of("k", somebody());
    if (caps().hands_over) {
        asked.attached = core::attachment::detached;
    }
    asked.mark = result_of("attempt 1", 1h, 2h);
    const auto granted = ask(a(), asked);
    pass(3s);
    const auto shown = look(b(), "k");
    EXPECT_EQ(shown.fence, granted.fences.last);
    EXPECT_EQ(shown.part.capacity, 1U);
    ASSERT_EQ(shown.holders.size(), 1U);
    EXPECT_EQ(shown.holders.front().who.host, "host-a");
    EXPECT_EQ(shown.holders.front().attached, asked.attached);
    EXPECT_EQ(shown.holders.front().held_for, 3s);
    if (caps().expires) {
        EXPECT_EQ(shown.holders.front().remaining, usual_ttl - 3s);
    }
    ASSERT_TRUE(shown.result);
    EXPECT_EQ(shown.result->value, "attempt 1");
    EXPECT_TRUE(shown.result->is_mark);
    EXPECT_EQ(shown.blocked_for, 0s);
    EXPECT_EQ(shown.waiters, 0U);
}

TEST_P(Conformance, ShowsNoHolderWhoseTimeIsOver) {
    take(a(), "expired");
    const auto released = take(a(), "released");
    take(a(), "revoked");
    ask(a(), release_of("released", released));
    ask(a(), revoke_of("revoked", fences_of(a(), "revoked").first));
    outlive();
    for (const auto* key : {"expired", "released", "revoked"}) {
        EXPECT_TRUE(look(b(), key).holders.empty()) << key;
    }
}

TEST_P(Conformance, CountsTheProcessesThatWait) {
    if (!caps().wakes) {
        GTEST_SKIP() << caps().name << " keeps no waiters";
    }
    take(a(), "k");
    const auto third = open("host-c");
    const auto first = watch(b(), "k");
    EXPECT_EQ(look(a(), "k").waiters, 1U);
    const auto second = watch(*third, "k");
    EXPECT_EQ(look(a(), "k").waiters, 2U);
    b().unwatch(first->id);
    settle({&b()});
    EXPECT_EQ(look(a(), "k").waiters, 1U);
    third->close();
    EXPECT_EQ(look(a(), "k").waiters, 0U) << "a closed process waits for nothing";
}

TEST_P(Conformance, TellsNobodyTheHolderId) {
    const auto holder = take(a(), "k");
    std::string raw;
    for (const auto byte : holder.bytes) {
        raw += static_cast<char>(byte);
    }
    const auto held = ask(b(), acquire_of("k", somebody()));
    ASSERT_EQ(held.holders.size(), 1U);
    const auto& who = held.holders.front().who;
    for (const auto& text : {picture(b(), "k"), held.detail, held.reason, who.command, who.user}) {
        EXPECT_EQ(text.find(holder.text()), std::string::npos);
        EXPECT_EQ(text.find(raw), std::string::npos);
    }
}

}  // namespace dibs::conformance
