// SPDX-License-Identifier: Apache-2.0
// Bad options are refused by name and number; good ones mean what options.hpp says.

#include "client/checked_options.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace dibs::detail {

namespace {

using namespace std::chrono_literals;

store::capabilities usual_store() {
    store::capabilities caps;
    caps.ttl_min = 50ms;
    caps.ttl_max = 24h;
    return caps;
}

std::string fault_of(const std::function<void(acquire_options&)>& change) {
    acquire_options options;
    change(options);
    return fault_of_options(options, usual_store());
}

}  // namespace

TEST(Options, TheDefaultsAreFine) {
    EXPECT_EQ(fault_of([](auto&) {}), "");
}

TEST(Options, TheEdgesAreFine) {
    EXPECT_EQ(fault_of([](auto& o) { o.ttl = 50ms; }), "");
    EXPECT_EQ(fault_of([](auto& o) { o.ttl = 24h; }), "");
    EXPECT_EQ(fault_of([](auto& o) { o.wait = forever; }), "");
    EXPECT_EQ(fault_of([](auto& o) { o.max_hold = forever; }), "");
    EXPECT_EQ(fault_of([](auto& o) { o.timeout = forever; }), "");
    EXPECT_EQ(fault_of([](auto& o) { o.renew_every = 15s; }), "");
    EXPECT_EQ(fault_of([](auto& o) { o.notice = 15s; }), "");
    EXPECT_EQ(fault_of([](auto& o) { o.fence_floor = (std::uint64_t{1} << 62U) - 1; }), "");
}

TEST(Options, AStoreThatSharesTakesEveryMode) {
    auto caps = usual_store();
    caps.shared = true;
    acquire_options options;
    for (const auto wanted : {exclusive, shared, permits(3).of(3), permits(2).of(5)}) {
        options.mode = wanted;
        EXPECT_EQ(fault_of_options(options, caps), "");
        EXPECT_EQ(terms_of(options).part.weight, wanted.weight());
        EXPECT_EQ(terms_of(options).part.capacity, wanted.capacity());
    }
    EXPECT_EQ(permits(1).of(1), exclusive);
}

TEST(Options, EachBadOneIsNamed) {
    const struct {
        std::string name;
        std::function<void(acquire_options&)> change;
    } cases[] = {
        {"ttl", [](auto& o) { o.ttl = 0ms; }},
        {"ttl", [](auto& o) { o.ttl = -1s; }},
        {"ttl", [](auto& o) { o.ttl = 49ms; }},
        {"ttl", [](auto& o) { o.ttl = 24h + 1ms; }},
        {"ttl", [](auto& o) { o.ttl = forever; }},
        {"wait", [](auto& o) { o.wait = -1ms; }},
        {"mode", [](auto& o) { o.mode = permits(0).of(3); }},
        {"mode", [](auto& o) { o.mode = permits(4).of(3); }},
        {"mode", [](auto& o) { o.mode = permits(1).of(0); }},
        {"mode", [](auto& o) { o.mode = shared; }},
        {"timeout", [](auto& o) { o.timeout = 0ms; }},
        {"timeout", [](auto& o) { o.timeout = -1ms; }},
        {"renew_every", [](auto& o) { o.renew_every = -1ms; }},
        {"renew_every", [](auto& o) { o.renew_every = 15001ms; }},
        {"max_hold", [](auto& o) { o.max_hold = -1ms; }},
        {"notice", [](auto& o) { o.notice = -1ms; }},
        {"notice", [](auto& o) { o.notice = 15001ms; }},
        {"fence_floor", [](auto& o) { o.fence_floor = std::uint64_t{1} << 62U; }},
    };
    // The usual store keeps no queue.
    EXPECT_TRUE(fault_of([](auto& o) { o.order = order::queue; }).starts_with("order is queue"));
    for (const auto& one : cases) {
        const auto fault = fault_of(one.change);
        EXPECT_TRUE(fault.starts_with(one.name + " is ")) << one.name << ": " << fault;
    }
}

TEST(Options, BothNumbersOfAConflictAreNamed) {
    const auto fault = fault_of([](auto& o) {
        o.ttl = 10s;
        o.renew_every = 6s;
    });
    EXPECT_NE(fault.find("6000 ms"), std::string::npos) << fault;
    EXPECT_NE(fault.find("10000 ms"), std::string::npos) << fault;
    const auto range = fault_of([](auto& o) { o.ttl = 1ms; });
    EXPECT_NE(range.find("50 ms"), std::string::npos) << range;
}

TEST(Options, BecomeTerms) {
    acquire_options options;
    options.ttl = 9s;
    options.wait = 2s;
    options.max_hold = 60s;
    options.notice = 1s;
    options.fence_floor = 5;
    auto terms = terms_of(options);
    EXPECT_EQ(terms.lease.ttl, 9s);
    EXPECT_EQ(terms.lease.renew_every, 3s) << "a third by default";
    EXPECT_EQ(terms.lease.max_hold, 60s);
    EXPECT_EQ(terms.lease.notice, 1s);
    EXPECT_TRUE(terms.lease.attached);
    EXPECT_EQ(terms.wait, 2s);
    EXPECT_EQ(terms.timeout, 5s);
    EXPECT_EQ(terms.fence_floor, 5U);
    EXPECT_FALSE(terms.queue);

    options.renew_every = 4s;
    options.detached = true;
    options.wait = forever;
    options.order = order::queue;
    terms = terms_of(options);
    EXPECT_EQ(terms.lease.renew_every, 4s);
    EXPECT_FALSE(terms.lease.attached);
    EXPECT_EQ(terms.wait, core::nanoseconds::max());
    EXPECT_TRUE(terms.queue);

    options.renew = false;
    EXPECT_EQ(terms_of(options).lease.renew_every, 0s);
}

TEST(Options, LongTimesDoNotOverflow) {
    acquire_options options;
    options.wait = options.max_hold = options.timeout = forever;
    const auto terms = terms_of(options);
    EXPECT_GT(terms.lease.max_hold, 24h * 365 * 50);
    EXPECT_GT(terms.timeout, 24h * 365 * 50);
    const core::instant now{24h * 365 * 50};
    EXPECT_GT(now + terms.lease.max_hold, now);
    EXPECT_GT(now + terms.timeout, now);
}

}  // namespace dibs::detail
