// SPDX-License-Identifier: Apache-2.0
// Cron expressions and the slots that come of them: against a retelling of how Debian's cron goes through the minutes, with
// the zones of the C library.
#include "recipes/once/cron.hpp"

#include "recipes/once/schedule.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace dibs::recipes {
namespace {

using namespace std::chrono_literals;

core::wall_instant utc(const std::string& text) {
    tm calendar{};
    EXPECT_NE(::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &calendar), nullptr) << text;
    return core::wall_instant{std::chrono::seconds{::timegm(&calendar)}};
}

schedule cron(std::string_view expression, std::string_view zone = "UTC") {
    std::string fault;
    const auto made = schedule::make_cron(expression, zone, fault);
    EXPECT_TRUE(made) << expression << " " << zone << ": " << fault;
    return made.value();
}

std::string name_at(std::string_view expression, std::string_view zone, const std::string& at) {
    return cron(expression, zone).at(utc(at), 0s).name;
}

TEST(Cron, ASlotBearsTheTimeThatItIsFor) {
    EXPECT_EQ(name_at("0 3 * * *", "Europe/Berlin", "2026-11-30T02:00:00"),
              "2026-11-30T03:00[Europe/Berlin]");
    EXPECT_EQ(name_at("0 3 * * *", "Europe/Berlin", "2026-11-30T01:59:59"),
              "2026-11-29T03:00[Europe/Berlin]");
    EXPECT_EQ(name_at("*/15 8-18 * * mon-fri", "UTC", "2026-11-30T07:00:00"),
              "2026-11-27T18:45[UTC]");
    EXPECT_EQ(name_at("@hourly", "Asia/Kolkata", "2026-11-30T10:29:59"),
              "2026-11-30T15:00[Asia/Kolkata]");
    EXPECT_EQ(name_at("@yearly", "UTC", "2026-11-30T10:00:00"), "2026-01-01T00:00[UTC]");
    EXPECT_EQ(name_at("0 0 29 2 *", "UTC", "2026-11-30T10:00:00"), "2024-02-29T00:00[UTC]");
    EXPECT_EQ(name_at("0 0 1 * sun", "UTC", "2026-11-30T10:00:00"), "2026-11-29T00:00[UTC]");
}

TEST(Cron, ATimerThatFiresALittleEarlyMeansTheTimeToCome) {
    const auto plan = cron("0 3 * * *");
    EXPECT_EQ(plan.at(utc("2026-11-30T02:59:58"), plan.usual_early()).name,
              "2026-11-30T03:00[UTC]");
    EXPECT_EQ(plan.at(utc("2026-11-30T02:59:57"), plan.usual_early()).name,
              "2026-11-29T03:00[UTC]");
}

TEST(Cron, EitherFieldOfTheDayIsEnoughUnlessOneBeginsWithAStar) {
    std::string fault;
    const auto days = [&](std::string_view expression) {
        const auto read = cron_expression::parse(expression, fault);
        EXPECT_TRUE(read) << fault;
        std::set<int> found;  // of November 2026, which begins on a Sunday
        for (int day = 1; day <= 30; ++day) {
            if (read && read->on_day(20'757 + day)) {
                found.insert(day);
            }
        }
        return found;
    };
    EXPECT_EQ(days("0 0 13 * fri"), (std::set{6, 13, 20, 27}));
    EXPECT_EQ(days("0 0 14 * fri"), (std::set{6, 13, 14, 20, 27}));
    EXPECT_EQ(days("0 0 */2 * mon"), (std::set{9, 23}));
    EXPECT_EQ(days("0 0 * * 7"), (std::set{1, 8, 15, 22, 29}));
    EXPECT_EQ(days("0 0 * * 5-7"), (std::set{1, 6, 7, 8, 13, 14, 15, 20, 21, 22, 27, 28, 29}));
    EXPECT_EQ(days("0 0 * * Sat-SUN"), (std::set{1, 7, 8, 14, 15, 21, 22, 28, 29}));
    EXPECT_EQ(days("0 0 10-20/5,30 nov *"), (std::set{10, 15, 20, 30}));
    EXPECT_EQ(days("0 0 1 jan,dec *"), std::set<int>{});
}

TEST(Cron, WhatIsWrongIsToldByTheNameOfItsField) {
    struct example {
        const char* text;
        const char* told;
    };
    for (const auto& [text, told] : {
             example{"", "five fields"},
             example{"* * * *", "not 4"},
             example{"* * * * * *", "not 6"},
             example{"60 * * * *", "bad minute `60`"},
             example{"-1 * * * *", "bad minute"},
             example{"*/0 * * * *", "a step is a number from 1 to 59"},
             example{"5/15 * * * *", "a step follows * or a range, as in 5-59/15"},
             example{"1,,2 * * * *", "something is missing"},
             example{"1, * * * *", "something is missing"},
             example{"1.5 * * * *", "bad minute"},
             example{"0 24 * * *", "bad hour `24`"},
             example{"0 5-3 * * *", "the range 5-3 ends before it begins"},
             example{"0 1-2-3 * * *", "bad hour"},
             example{"0 0 0 * *", "bad day of the month `0`"},
             example{"0 0 32 * *", "bad day of the month"},
             example{"0 0 * 13 *", "bad month `13`"},
             example{"0 0 * mon *", "or a name such as jan"},
             example{"0 0 * * 8", "bad day of the week"},
             example{"0 0 * * feb", "or a name such as sun"},
             example{"0 0 30 2 *", "no day that there is"},
             example{"0 0 31 4,6,9,11 *", "no day that there is"},
             example{"@reboot", "none of"},
             example{"4294967297 * * * *", "bad minute"},
         }) {
        std::string fault;
        EXPECT_FALSE(schedule::make_cron(text, "UTC", fault)) << text;
        EXPECT_NE(fault.find(told), std::string::npos) << text << ": " << fault;
    }
    std::string fault;
    EXPECT_FALSE(schedule::make_cron("@daily", "Europe/Nowhere", fault));
    EXPECT_NE(fault.find("IANA"), std::string::npos);
}

TEST(Cron, AJobOfALeftOutHourRunsRightAfterIt) {
    // Berlin: 02:00 becomes 03:00 at 01:00 UTC.
    const auto plan = cron("30 2 * * *", "Europe/Berlin");
    EXPECT_EQ(plan.at(utc("2026-03-29T00:59:59"), 0s).name, "2026-03-28T02:30[Europe/Berlin]");
    const auto late = plan.at(utc("2026-03-29T01:00:00"), 0s);
    EXPECT_EQ(late.name, "2026-03-29T02:30[Europe/Berlin]");
    EXPECT_EQ(late.begin, utc("2026-03-29T01:00:00"));
    EXPECT_EQ(late.end, utc("2026-03-30T00:30:00"));
    // Several of it are one.
    const auto three = cron("0,30 2,3 * * *", "Europe/Berlin");
    EXPECT_EQ(three.at(utc("2026-03-29T01:29:59"), 0s).name, "2026-03-29T03:00[Europe/Berlin]");
    EXPECT_EQ(three.before(three.at(utc("2026-03-29T01:00:00"), 0s)).name,
              "2026-03-28T03:30[Europe/Berlin]");
    // By the clock as it goes there is no such time.
    EXPECT_EQ(name_at("30 * * * *", "Europe/Berlin", "2026-03-29T01:29:59"),
              "2026-03-29T01:30[Europe/Berlin]");
}

TEST(Cron, AJobOfAnHourThatComesTwiceRunsOnce) {
    // Berlin: 03:00 becomes 02:00 at 01:00 UTC.
    const auto plan = cron("30 2 * * *", "Europe/Berlin");
    const auto night = plan.at(utc("2026-10-25T00:30:00"), 0s);
    EXPECT_EQ(night.name, "2026-10-25T02:30[Europe/Berlin]");
    EXPECT_EQ(night.end, utc("2026-10-26T01:30:00"));
    EXPECT_EQ(plan.at(utc("2026-10-25T01:10:00"), 0s).name, night.name);
    EXPECT_EQ(plan.at(utc("2026-10-25T01:30:00"), 0s).name, night.name);
    // By the clock as it goes it comes twice, under two names.
    EXPECT_EQ(name_at("30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00"),
              "2026-10-25T02:30[Europe/Berlin]");
    EXPECT_EQ(name_at("30 * * * *", "Europe/Berlin", "2026-10-25T01:30:00"),
              "2026-10-25T02:30+01:00[Europe/Berlin]");
    EXPECT_EQ(name_at("30 * * * *", "America/New_York", "2026-11-01T06:30:00"),
              "2026-11-01T01:30-05:00[America/New_York]");
}

TEST(Cron, ADayThatAZoneLeftOutIsNotMadeUpFor) {
    // Samoa went from the 29th to the 31st of December 2011.
    const auto plan = cron("0 3 * * *", "Pacific/Apia");
    const auto after = plan.at(utc("2011-12-30T13:00:00"), 0s);
    EXPECT_EQ(after.name, "2011-12-31T03:00[Pacific/Apia]");
    EXPECT_EQ(plan.before(after).name, "2011-12-29T03:00[Pacific/Apia]");
}

/// A field as text and as what it means, made together.
struct made_field {
    std::string text;
    std::array<bool, 60> asked{};
};

/// What Debian's cron looks at.
struct made_expression {
    std::array<made_field, 5> fields;

    [[nodiscard]] std::string text() const {
        std::string all;
        for (const auto& one : fields) {
            all += (all.empty() ? "" : " ") + one.text;
        }
        return all;
    }
    [[nodiscard]] bool star(std::size_t at) const { return fields[at].text.front() == '*'; }
    [[nodiscard]] bool wild() const { return star(0) || star(1); }
    [[nodiscard]] bool matches(const tm& at) const {
        const auto asks = [&](std::size_t field, int value) {
            return fields[field].asked[static_cast<std::size_t>(value)];
        };
        if (!asks(0, at.tm_min) || !asks(1, at.tm_hour) || !asks(3, at.tm_mon + 1)) {
            return false;
        }
        const bool date = asks(2, at.tm_mday);
        const bool weekday = asks(4, at.tm_wday);
        return star(2) || star(4) ? date && weekday : date || weekday;
    }
};

class maker {
  public:
    explicit maker(unsigned seed) : random_(seed) {}

    made_expression expression() {
        return {{field(0, 59, 2), field(0, 23, 4), field(1, 31, 5), field(1, 12, 6), weekday()}};
    }

  private:
    int between(int from, int to) { return std::uniform_int_distribution{from, to}(random_); }

    made_field field(int first, int last, int plain_stars) {
        made_field made;
        const auto ask = [&](int from, int to, int step) {
            for (int at = from; at <= to; at += step) {
                made.asked[static_cast<std::size_t>(at)] = true;
            }
        };
        if (between(0, 9) < plain_stars) {
            ask(first, last, 1);
            made.text = "*";
            return made;
        }
        if (between(0, 3) == 0) {
            const auto step = between(1, (last - first) / 2);
            ask(first, last, step);
            made.text = "*/" + std::to_string(step);
            return made;
        }
        const auto parts = between(1, 3);
        for (int part = 0; part < parts; ++part) {
            // The small ones: clocks are changed early in the night.
            const auto from = between(first, std::min(last, between(0, 1) == 0 ? first + 4 : last));
            made.text += (part == 0 ? "" : ",") + std::to_string(from);
            if (between(0, 1) == 0) {
                ask(from, from, 1);
                continue;
            }
            const auto to = between(from, last);
            made.text += "-" + std::to_string(to);
            const auto step = between(0, 1) == 0 ? 1 : between(1, 5);
            if (step > 1) {
                made.text += "/" + std::to_string(step);
            }
            ask(from, to, step);
        }
        return made;
    }

    made_field weekday() {
        auto made = field(0, 7, 6);
        made.asked[0] = made.asked[0] || made.asked[7];
        return made;
    }

    std::mt19937 random_;
};

/// A minute and what the clocks of the zone show in it.
struct zone_minute {
    std::int64_t at;
    std::int64_t label;  ///< the minutes since 1970 of whoever takes it for UTC
    tm shown;
};

class zone_clock {
  public:
    explicit zone_clock(const char* zone) {
        ::setenv("TZ", zone, 1);
        ::tzset();
    }
    ~zone_clock() {
        ::unsetenv("TZ");
        ::tzset();
    }
    zone_clock(const zone_clock&) = delete;
    zone_clock& operator=(const zone_clock&) = delete;

    static std::vector<zone_minute> minutes(std::int64_t from, std::int64_t count) {
        std::vector<zone_minute> all;
        all.reserve(static_cast<std::size_t>(count));
        for (auto at = from; at < from + count; ++at) {
            auto& one = all.emplace_back();
            one.at = at;
            const time_t seconds = at * 60;
            ::localtime_r(&seconds, &one.shown);
            one.label = at + one.shown.tm_gmtoff / 60;
        }
        return all;
    }
};

tm shown_at(std::int64_t label) {
    tm made{};
    const time_t seconds = label * 60;
    ::gmtime_r(&seconds, &made);
    return made;
}

/// The minutes at which Debian's cron starts the job, told from how its loop goes: `reached` is the label up to which jobs for
/// a time of the day were started.
std::vector<std::int64_t> started_by_cron(const made_expression& job,
                                          const std::vector<zone_minute>& minutes) {
    std::vector<std::int64_t> starts;
    auto reached = minutes.front().label - 1;
    for (const auto& now : minutes) {
        const auto ahead = now.label - reached;
        bool start = false;
        if (ahead == 1) {
            start = job.matches(now.shown);
            reached = now.label;
        } else if (ahead > 1 && ahead <= 181) {
            start = job.wild() && job.matches(now.shown);
            while (reached < now.label) {
                ++reached;
                start = start || (!job.wild() && job.matches(shown_at(reached)));
            }
        } else if (ahead <= 0 && ahead > -180) {
            start = job.wild() && job.matches(now.shown);
        } else {
            start = job.matches(now.shown);
            reached = now.label;
        }
        if (start) {
            starts.push_back(now.at);
        }
    }
    return starts;
}

core::wall_instant at_minute(std::int64_t minute) {
    return core::wall_instant{std::chrono::minutes{minute}};
}

class CronInZone : public ::testing::TestWithParam<const char*> {};

TEST_P(CronInZone, SlotsBeginWhereCronStartsTheJob) {
    const zone_clock here(GetParam());
    // From January 2026: a year and a month, with both changes of clocks where there are such.
    const auto minutes = zone_clock::minutes(20'454 * 1440, 396 * 1440);
    maker random(20'261'130);
    int with_starts = 0;
    for (int number = 0; number < 9; ++number) {
        const auto job = random.expression();
        std::string fault;
        const auto plan = schedule::make_cron(job.text(), GetParam(), fault);
        if (!plan) {
            ASSERT_NE(fault.find("no day"), std::string::npos) << job.text() << " " << fault;
            EXPECT_TRUE(started_by_cron(job, minutes).empty()) << job.text();
            continue;
        }
        const auto starts = started_by_cron(job, minutes);
        with_starts += starts.empty() ? 0 : 1;
        std::set<std::string> names;
        const auto offset_at = [&](std::int64_t at) {
            return minutes[static_cast<std::size_t>(at - minutes.front().at)].shown.tm_gmtoff;
        };
        for (std::size_t at = 0; at + 1 < starts.size(); ++at) {
            // Of many, every slot near a change of clocks and some of the others.
            const auto near = [&](std::int64_t hours) {
                const auto other =
                    std::clamp(starts[at] + hours * 60, minutes.front().at, minutes.back().at);
                return offset_at(other) != offset_at(starts[at]);
            };
            if (starts.size() > 3000 && !near(-4) && !near(4) && at % 97 != 0) {
                continue;
            }
            const auto found = plan->at(at_minute(starts[at]), 0s);
            ASSERT_EQ(found.begin, at_minute(starts[at])) << job.text() << " " << found.name;
            ASSERT_EQ(found.end, at_minute(starts[at + 1])) << job.text() << " " << found.name;
            ASSERT_TRUE(names.insert(found.name).second) << job.text() << " " << found.name;
            ASSERT_LE(found.end - found.begin, plan->longest()) << job.text();
            ASSERT_EQ(plan->at(found.end - 1s, 0s).name, found.name) << job.text();
            ASSERT_EQ(plan->before(plan->at(found.end, 0s)).name, found.name) << job.text();
        }
    }
    EXPECT_GT(with_starts, 5) << "the test looks at too little";
}

INSTANTIATE_TEST_SUITE_P(AllOverTheWorld,
                         CronInZone,
                         ::testing::Values("UTC",
                                           "Europe/Berlin",
                                           "America/New_York",
                                           "Australia/Lord_Howe",
                                           "Africa/Casablanca",
                                           "Asia/Beirut",
                                           "Antarctica/Troll",
                                           "Asia/Kathmandu"),
                         [](const auto& about) {
                             std::string name = about.param;
                             std::replace(name.begin(), name.end(), '/', '_');
                             return name;
                         });

}  // namespace
}  // namespace dibs::recipes
