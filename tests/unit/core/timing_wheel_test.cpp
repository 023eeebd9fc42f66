// SPDX-License-Identifier: Apache-2.0
// The wheel fires what a sorted list would fire: never early, at the first whole millisecond after
// the due time, and its next wake-up is never later than the first timer.

#include "core/timing_wheel.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace dibs::core {

namespace {

using namespace std::chrono_literals;

/// Timers remember their source to be disarmed when they are destroyed.
class wheel_source final : public time_source {
  public:
    explicit wheel_source(instant start) : wheel{start} {}
    [[nodiscard]] instant now() const noexcept override { return {}; }
    void arm(timer& alarm, instant due) override {
        disarm(alarm);
        alarm.mark_armed(*this, due);
        wheel.insert(alarm);
    }
    void disarm(timer& alarm) noexcept override {
        if (alarm.armed()) {
            wheel.remove(alarm);
            alarm.mark_disarmed();
        }
    }
    std::vector<timer*> pop_all(instant now) {
        std::vector<timer*> popped;
        while (auto* const one = wheel.pop_due(now)) {
            one->mark_disarmed();
            popped.push_back(one);
        }
        return popped;
    }

    timing_wheel wheel;
};

const instant start{5h + 123456ns};

/// Lets the wheel's own wake-ups pass until `alarm` comes out. Returns when it did.
instant fires_at(wheel_source& source, const timer& alarm) {
    for (;;) {
        const auto wake = source.wheel.next_wake();
        if (!wake) {
            ADD_FAILURE() << "no wake-up is planned";
            return {};
        }
        for (const auto* const popped : source.pop_all(*wake)) {
            if (popped == &alarm) {
                return *wake;
            }
        }
    }
}

}  // namespace

TEST(TimingWheel, FiresAtTheFirstMillisecondAtOrAfterTheDueTime) {
    for (const auto after : {0ns,
                             1ns,
                             999'999ns,
                             1'000'000ns,
                             1'000'001ns,
                             63'000'000ns,
                             64'000'000ns,
                             64'000'001ns,
                             4'096'000'000ns,
                             4'096'000'001ns}) {
        wheel_source source{start};
        timer alarm{[] {}};
        source.arm(alarm, start + after);
        const auto at = fires_at(source, alarm);
        EXPECT_GE(at, start + after);
        EXPECT_LT(at, start + after + 1ms) << after.count();
    }
}

TEST(TimingWheel, IsNeverEarlyByANanosecond) {
    wheel_source source{start};
    timer alarm{[] {}};
    source.arm(alarm, start + 70ms);
    EXPECT_TRUE(source.pop_all(start + 70ms - 1ns).empty());
    EXPECT_EQ(source.pop_all(start + 70ms).size(), 1U);
}

TEST(TimingWheel, KeepsTimersOfAFarFuture) {
    wheel_source source{start};
    timer in_a_century{[] {}};
    timer never{[] {}};
    source.arm(in_a_century, start + 24h * 365 * 100);
    source.arm(never, instant::max());
    const auto at = fires_at(source, in_a_century);
    EXPECT_GE(at, start + 24h * 365 * 100);
    EXPECT_LT(at, start + 24h * 365 * 100 + 1ms);
    EXPECT_TRUE(never.armed());
}

TEST(TimingWheel, TakesTimersThatAreOverdue) {
    wheel_source source{start};
    timer before_the_start{[] {}};
    source.arm(before_the_start, start - 1h);
    EXPECT_EQ(source.pop_all(start).size(), 1U);
    EXPECT_TRUE(source.pop_all(start + 10s).empty());
    timer in_the_past{[] {}};
    source.arm(in_the_past, start + 3s);
    ASSERT_TRUE(source.wheel.next_wake());
    EXPECT_LE(*source.wheel.next_wake(), start + 10s);
    EXPECT_EQ(source.pop_all(start + 10s).size(), 1U);
}

TEST(TimingWheel, WakesForNothingOnceTheLastTimerIsGone) {
    wheel_source source{start};
    EXPECT_FALSE(source.wheel.next_wake());
    {
        timer alarm{[] {}};
        source.arm(alarm, start + 5s);
        EXPECT_TRUE(source.wheel.next_wake());
    }
    EXPECT_FALSE(source.wheel.next_wake()) << "a destroyed timer disarms itself";
}

RC_GTEST_PROP(TimingWheel, FiresWhatASortedListWould, ()) {
    wheel_source source{start};
    std::vector<std::unique_ptr<timer>> timers;
    for (int made = 0; made < 24; ++made) {
        timers.push_back(std::make_unique<timer>([] {}));
    }
    std::map<timer*, instant> model;
    auto now = start;
    const auto steps = *rc::gen::inRange(1, 200);
    for (int step = 0; step < steps; ++step) {
        auto* const chosen = timers[*rc::gen::inRange<std::size_t>(0, timers.size())].get();
        switch (*rc::gen::inRange(0, 4)) {
            case 0:
            case 1: {
                // All scales: from parts of a tick to months, so that timers come down through many
                // levels.
                const auto scale = *rc::gen::inRange(0, 54);
                const auto after =
                    *rc::gen::inRange<std::int64_t>(-1'000'000, (std::int64_t{1} << scale) + 1);
                source.arm(*chosen, now + nanoseconds{after});
                model[chosen] = now + nanoseconds{after};
                break;
            }
            case 2:
                source.disarm(*chosen);
                model.erase(chosen);
                break;
            default: {
                const auto scale = *rc::gen::inRange(0, 54);
                now +=
                    nanoseconds{*rc::gen::inRange<std::int64_t>(0, (std::int64_t{1} << scale) + 1)};
                const auto popped = source.pop_all(now);
                std::set<timer*> fired(popped.begin(), popped.end());
                RC_ASSERT(fired.size() == popped.size());
                for (auto* const one : popped) {
                    RC_ASSERT(model.contains(one));
                    RC_ASSERT(model[one] <= now);
                }
                for (const auto& [alarm, due] : model) {
                    const bool over_by_a_tick = due + 1ms <= now;
                    RC_ASSERT(!over_by_a_tick || fired.contains(alarm));
                }
                for (auto* const one : popped) {
                    model.erase(one);
                }
            }
        }
        instant first = instant::max();
        for (const auto& [alarm, due] : model) {
            first = std::min(first, due);
        }
        RC_ASSERT(source.wheel.next_wake().has_value() == !model.empty());
        if (!model.empty()) {
            RC_ASSERT(*source.wheel.next_wake() < std::max(first, now) + 1ms);
        }
    }
}

RC_GTEST_PROP(TimingWheel, FiresInTheOrderOfTheTicks, (std::vector<std::uint32_t> delays)) {
    wheel_source source{start};
    std::vector<std::unique_ptr<timer>> timers;
    for (const auto delay : delays) {
        timers.push_back(std::make_unique<timer>([] {}));
        source.arm(*timers.back(), start + microseconds{delay});
    }
    const auto popped = source.pop_all(start + 24h);
    RC_ASSERT(popped.size() == delays.size());
    const auto tick_of = [](const timer* one) {
        return std::chrono::ceil<milliseconds>(one->due() - start);
    };
    for (std::size_t at = 1; at < popped.size(); ++at) {
        RC_ASSERT(tick_of(popped[at - 1]) <= tick_of(popped[at]));
    }
}

}  // namespace dibs::core
