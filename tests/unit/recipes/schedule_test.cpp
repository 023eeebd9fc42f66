// SPDX-License-Identifier: Apache-2.0
// Which slot a moment belongs to, at the moments at which it is easy to get wrong.
#include "recipes/once/schedule.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cmath>
#include <set>
#include <string>

namespace dibs::recipes {
namespace {

using namespace std::chrono_literals;

/// `2026-11-29T23:59:59.998`, with or without the fraction.
core::wall_instant utc(const std::string& text) {
    tm calendar{};
    const char* const rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &calendar);
    EXPECT_NE(rest, nullptr) << text;
    const auto fraction = rest != nullptr && *rest == '.' ? std::stod(rest) : 0.0;
    return core::wall_instant{std::chrono::seconds{::timegm(&calendar)} +
                              std::chrono::microseconds{std::lround(fraction * 1e6)}};
}

schedule every(std::string_view what, std::string_view zone = "UTC") {
    std::string fault;
    const auto made = schedule::make(what, zone, fault);
    EXPECT_TRUE(made) << what << " " << zone << ": " << fault;
    return made.value();
}

std::string name_of(std::string_view what, std::string_view zone, const std::string& at) {
    const auto plan = every(what, zone);
    return plan.at(utc(at), plan.usual_early()).name;
}

TEST(Schedule, TheHostsOwnZoneIsNoZoneForSeveralHosts) {
    std::string fault;
    EXPECT_FALSE(schedule::make("day", "localtime", fault));
    EXPECT_FALSE(fault.empty());
}

TEST(Schedule, ADayBearsItsLocalLabelAndZone) {
    EXPECT_EQ(name_of("day", "Europe/Berlin", "2026-11-28T23:30:00"), "2026-11-29[Europe/Berlin]");
    EXPECT_EQ(name_of("day", "UTC", "2026-11-28T23:30:00"), "2026-11-28[UTC]");
    EXPECT_EQ(name_of("1d", "America/New_York", "2026-11-29T03:00:00"),
              "2026-11-28[America/New_York]");
}

TEST(Schedule, ATimerThatFiresALittleEarlyMeansTheSlotToCome) {
    EXPECT_EQ(name_of("day", "UTC", "2026-11-28T23:59:59.998"), "2026-11-29[UTC]");
    EXPECT_EQ(name_of("day", "UTC", "2026-11-28T23:59:58.000"), "2026-11-29[UTC]");
    EXPECT_EQ(name_of("day", "UTC", "2026-11-28T23:59:57.999"), "2026-11-28[UTC]");
    EXPECT_EQ(every("day").at(utc("2026-11-28T23:59:50"), 10s).name, "2026-11-29[UTC]");
    EXPECT_EQ(every("day").at(utc("2026-11-28T23:59:59.999"), 0s).name, "2026-11-28[UTC]");
}

TEST(Schedule, AHostThatIsLateByMinutesMeansTheSlotThatHasBegun) {
    EXPECT_EQ(name_of("day", "UTC", "2026-11-29T00:07:00"), "2026-11-29[UTC]");
    EXPECT_EQ(name_of("15m", "UTC", "2026-11-29T10:44:57"), "2026-11-29T10:30Z");
}

TEST(Schedule, ADayIsADayOnBothNightsOfTheClockChange) {
    const auto plan = every("day", "Europe/Berlin");
    // Put back at 03:00 summer time: 25 hours, and 02:30 comes twice.
    for (const auto* at : {"2026-10-24T22:00:00",
                           "2026-10-25T00:30:00",
                           "2026-10-25T01:30:00",
                           "2026-10-25T22:59:57"}) {
        EXPECT_EQ(plan.at(utc(at), 2s).name, "2026-10-25[Europe/Berlin]") << at;
    }
    const auto longest = plan.at(utc("2026-10-25T01:30:00"), 0s);
    EXPECT_EQ(longest.end - longest.begin, 25h);
    EXPECT_LE(longest.end - longest.begin, plan.longest());
    // Put forward at 02:00: 23 hours, and 02:30 never comes.
    const auto shortest = plan.at(utc("2026-03-29T01:30:00"), 0s);
    EXPECT_EQ(shortest.name, "2026-03-29[Europe/Berlin]");
    EXPECT_EQ(shortest.begin, utc("2026-03-28T23:00:00"));
    EXPECT_EQ(shortest.end - shortest.begin, 23h);
}

TEST(Schedule, ADayWithoutAMidnightBeginsWhenItsClocksJump) {
    // Beirut puts its clocks forward from 00:00 to 01:00.
    const auto found = every("day", "Asia/Beirut").at(utc("2026-03-28T22:00:00"), 0s);
    EXPECT_EQ(found.name, "2026-03-29[Asia/Beirut]");
    EXPECT_EQ(found.begin, utc("2026-03-28T22:00:00"));
    EXPECT_EQ(found.end - found.begin, 23h);
}

TEST(Schedule, AnHourThatComesTwiceIsTwoSlots) {
    EXPECT_EQ(name_of("hour", "Europe/Berlin", "2026-10-25T00:30:00"), "2026-10-25T00:00Z");
    EXPECT_EQ(name_of("hour", "Europe/Berlin", "2026-10-25T01:30:00"), "2026-10-25T01:00Z");
    EXPECT_EQ(name_of("60m", "UTC", "2026-10-25T01:30:00"), "2026-10-25T01:00Z");
}

TEST(Schedule, SeveralHoursAreOneSlotAlsoWhenOneOfThemComesTwice) {
    EXPECT_EQ(name_of("6h", "Europe/Berlin", "2026-10-25T00:30:00"),
              "2026-10-25T00:00[Europe/Berlin]");
    EXPECT_EQ(name_of("6h", "Europe/Berlin", "2026-10-25T01:30:00"),
              "2026-10-25T00:00[Europe/Berlin]");
    const auto night = every("6h", "Europe/Berlin").at(utc("2026-10-25T01:30:00"), 0s);
    EXPECT_EQ(night.end - night.begin, 7h);
    EXPECT_EQ(name_of("2h", "Europe/Berlin", "2026-03-29T01:30:00"),
              "2026-03-29T02:00[Europe/Berlin]");
}

TEST(Schedule, ZonesThatAreNotWholeHoursOffHaveTheirOwnHours) {
    EXPECT_EQ(name_of("hour", "Asia/Kolkata", "2026-11-29T10:30:00"), "2026-11-29T10:30Z");
    EXPECT_EQ(name_of("hour", "Asia/Kolkata", "2026-11-29T11:29:00"), "2026-11-29T10:30Z");
    EXPECT_EQ(name_of("hour", "Asia/Kathmandu", "2026-11-29T10:20:00"), "2026-11-29T10:15Z");
    EXPECT_EQ(name_of("day", "Asia/Kathmandu", "2026-11-28T18:15:00"),
              "2026-11-29[Asia/Kathmandu]");
    EXPECT_EQ(name_of("day", "Asia/Kathmandu", "2026-11-28T18:14:57"),
              "2026-11-28[Asia/Kathmandu]");
}

TEST(Schedule, AWeekBeginsOnMondayAndBelongsToTheYearOfItsThursday) {
    EXPECT_EQ(name_of("week", "UTC", "2026-11-29T12:00:00"), "2026-W48[UTC]");  // a Sunday
    EXPECT_EQ(name_of("week", "UTC", "2026-11-30T00:00:00"), "2026-W49[UTC]");
    EXPECT_EQ(name_of("week", "UTC", "2026-12-31T12:00:00"), "2026-W53[UTC]");
    EXPECT_EQ(name_of("week", "UTC", "2027-01-03T12:00:00"), "2026-W53[UTC]");
    EXPECT_EQ(name_of("week", "UTC", "2027-01-04T12:00:00"), "2027-W01[UTC]");
    const auto found = every("week").at(utc("2027-01-01T12:00:00"), 0s);
    EXPECT_EQ(found.begin, utc("2026-12-28T00:00:00"));
    EXPECT_EQ(found.end, utc("2027-01-04T00:00:00"));
}

TEST(Schedule, TheYearEndsWhereTheZoneSaysSo) {
    EXPECT_EQ(name_of("day", "Pacific/Kiritimati", "2026-12-31T10:00:00"),
              "2027-01-01[Pacific/Kiritimati]");
    EXPECT_EQ(name_of("day", "UTC", "2026-12-31T23:59:59.500"), "2027-01-01[UTC]");
    EXPECT_EQ(name_of("month", "UTC", "2026-12-31T23:00:00"), "2026-12[UTC]");
    EXPECT_EQ(name_of("month", "Europe/Berlin", "2026-12-31T23:00:00"), "2027-01[Europe/Berlin]");
}

TEST(Schedule, ShortSlotsFollowEachOtherWithoutGapAndOverlap) {
    for (const auto* length : {"10s", "1m", "15m", "hour"}) {
        const auto plan = every(length, "Australia/Lord_Howe");
        auto at = utc("2026-11-29T00:00:00");
        std::set<std::string> names;
        for (int number = 0; number < 100; ++number) {
            const auto found = plan.at(at, 0s);
            EXPECT_EQ(found.begin, at) << length;
            EXPECT_TRUE(names.insert(found.name).second) << found.name;
            at = found.end;
        }
    }
}

/// Walks from slot to slot: none may be left out, and each must be found from its first and its last second.
void expect_no_gap_and_no_overlap(std::string_view what,
                                  std::string_view zone,
                                  const std::string& from,
                                  const std::string& until) {
    const auto plan = every(what, zone);
    auto at = plan.at(utc(from), 0s).begin;
    std::set<std::string> names;
    while (at < utc(until)) {
        const auto found = plan.at(at, 0s);
        const auto last = plan.at(found.end - 1s, 0s);
        ASSERT_EQ(found.begin, at) << what << " " << zone << " " << found.name;
        ASSERT_GT(found.end, found.begin) << what << " " << zone << " " << found.name;
        ASSERT_LE(found.end - found.begin, plan.longest())
            << what << " " << zone << " " << found.name;
        ASSERT_EQ(last.name, found.name) << what << " " << zone;
        ASSERT_EQ(last.begin, found.begin) << what << " " << zone << " " << found.name;
        ASSERT_TRUE(names.insert(found.name).second) << what << " " << zone << " " << found.name;
        at = found.end;
    }
}

TEST(Schedule, AnHourBeginsAnewWhereClocksArePutBackByHalfAnHour) {
    const auto plan = every("hour", "Australia/Lord_Howe");
    // At 02:00 of summer time, 15:00 UTC, it is 01:30 again.
    const auto before = plan.at(utc("2026-04-04T14:59:59"), 0s);
    EXPECT_EQ(before.begin, utc("2026-04-04T14:00:00"));
    EXPECT_EQ(before.end, utc("2026-04-04T15:00:00"));
    const auto again = plan.at(utc("2026-04-04T15:10:00"), 0s);
    EXPECT_EQ(again.name, "2026-04-04T15:00Z");
    EXPECT_EQ(again.begin, utc("2026-04-04T15:00:00"));
    EXPECT_EQ(again.end, utc("2026-04-04T15:30:00"));
    EXPECT_EQ(plan.at(utc("2026-04-04T15:30:00"), 0s).begin, utc("2026-04-04T15:30:00"));
}

TEST(Schedule, AnHourBeginsWhereClocksArePutForwardByHalfAnHour) {
    const auto plan = every("hour", "Australia/Lord_Howe");
    // At 02:00, 15:30 UTC, it is 02:30.
    EXPECT_EQ(plan.at(utc("2026-10-03T15:29:59"), 0s).end, utc("2026-10-03T15:30:00"));
    const auto rest = plan.at(utc("2026-10-03T15:40:00"), 0s);
    EXPECT_EQ(rest.name, "2026-10-03T15:30Z");
    EXPECT_EQ(rest.begin, utc("2026-10-03T15:30:00"));
    EXPECT_EQ(rest.end, utc("2026-10-03T16:00:00"));
}

TEST(Schedule, NoMomentIsInTwoSlotsOrInNoneWhereverClocksAreChanged) {
    struct change {
        const char* zone;
        const char* from;
        const char* until;
    };
    for (const auto& [zone, from, until] : {
             change{"Australia/Lord_Howe", "2026-04-02T00:00:00", "2026-04-07T00:00:00"},
             change{"Australia/Lord_Howe", "2026-10-01T00:00:00", "2026-10-06T00:00:00"},
             change{"Asia/Kathmandu", "1985-12-29T00:00:00", "1986-01-03T00:00:00"},
             change{"Pacific/Chatham", "2026-04-02T00:00:00", "2026-04-07T00:00:00"},
             change{"Pacific/Chatham", "2026-09-24T00:00:00", "2026-09-29T00:00:00"},
             change{"America/St_Johns", "2010-11-05T00:00:00", "2010-11-09T00:00:00"},
             change{"America/St_Johns", "2026-10-30T00:00:00", "2026-11-03T00:00:00"},
             change{"Africa/Casablanca", "2026-02-12T00:00:00", "2026-03-25T00:00:00"},
             change{"Antarctica/Troll", "2026-03-27T00:00:00", "2026-03-31T00:00:00"},
             change{"Antarctica/Troll", "2026-10-23T00:00:00", "2026-10-27T00:00:00"},
             change{"Pacific/Apia", "2011-12-27T00:00:00", "2012-01-03T00:00:00"},
             change{"Asia/Pyongyang", "2018-05-02T00:00:00", "2018-05-07T00:00:00"},
             change{"America/Caracas", "2016-04-29T00:00:00", "2016-05-03T00:00:00"},
         }) {
        for (const auto* what :
             {"10m", "15m", "30m", "hour", "2h", "3h", "6h", "12h", "day", "week", "month"}) {
            expect_no_gap_and_no_overlap(what, zone, from, until);
        }
    }
}

TEST(Schedule, ADayThatAZoneSkippedHasNoSlot) {
    // Samoa went from the 29th to the 31st of December 2011.
    const auto plan = every("day", "Pacific/Apia");
    const auto before = plan.at(utc("2011-12-30T09:59:59"), 0s);
    EXPECT_EQ(before.name, "2011-12-29[Pacific/Apia]");
    EXPECT_EQ(before.end, utc("2011-12-30T10:00:00"));
    const auto after = plan.at(utc("2011-12-30T10:00:00"), 0s);
    EXPECT_EQ(after.name, "2011-12-31[Pacific/Apia]");
    EXPECT_EQ(after.begin, utc("2011-12-30T10:00:00"));
}

TEST(Schedule, ClocksPutBackOverTheBeginningOfASlotDoNotBringBackTheOneBefore) {
    // In Troll it is 01:00 again two hours after the first time; the slot from 02:00 has begun by then.
    const auto plan = every("2h", "Antarctica/Troll");
    const auto found = plan.at(utc("2026-10-25T01:30:00"), 0s);
    EXPECT_EQ(found.name, "2026-10-25T02:00[Antarctica/Troll]");
    EXPECT_EQ(found.begin, utc("2026-10-25T00:00:00"));
    EXPECT_EQ(found.end, utc("2026-10-25T04:00:00"));
}

TEST(Schedule, RefusesWhatHasNoSlots) {
    std::string fault;
    for (const auto* bad :
         {"", "fortnight", "7m", "90m", "5h", "2d", "0s", "1s", "-15m", "15", "m", "15 m"}) {
        fault.clear();
        EXPECT_FALSE(schedule::make(bad, "UTC", fault)) << bad;
        EXPECT_NE(fault, "") << bad;
    }
    for (const auto* bad : {"", "Europe/Nowhere", "CET-1CEST", "../../etc/passwd", "Berlin"}) {
        fault.clear();
        EXPECT_FALSE(schedule::make("day", bad, fault)) << bad;
        EXPECT_NE(fault.find("IANA"), std::string::npos) << bad;
    }
}

}  // namespace
}  // namespace dibs::recipes
