// SPDX-License-Identifier: Apache-2.0
#include "recipes/schedule.hpp"

#include <date/date.h>
#include <date/tz.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace dibs::recipes {

namespace {

using std::chrono::seconds;
using local_seconds = date::local_time<seconds>;
using sys_seconds = date::sys_time<seconds>;

constexpr seconds hour = std::chrono::hours{1};
constexpr seconds whole_day = std::chrono::hours{24};
constexpr seconds shortest = seconds{10};

enum class unit { interval, hours, day, week, month };

/// `15m`; zero when it is no length.
seconds length_of(std::string_view text) {
    int number = 0;
    const auto* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    if (parsed.ec != std::errc{} || end - parsed.ptr != 1 || number <= 0 || number > 100'000) {
        return seconds::zero();
    }
    switch (*parsed.ptr) {
        case 's':
            return seconds{number};
        case 'm':
            return std::chrono::minutes{number};
        case 'h':
            return std::chrono::hours{number};
        case 'd':
            return number * whole_day;
        default:
            return seconds::zero();
    }
}

/// UTC needs no zone data.
bool is_utc(std::string_view zone) {
    return zone == "UTC" || zone == "Etc/UTC";
}

}  // namespace

struct schedule::plan {
    unit every = unit::day;
    seconds period{};  ///< interval and hours
    std::string zone_name;
    const date::time_zone* zone = nullptr;  ///< null: UTC

    [[nodiscard]] local_seconds local(sys_seconds at) const {
        return zone == nullptr ? local_seconds{at.time_since_epoch()} : zone->to_local(at);
    }
    /// Of a label that does not exist: the moment at which the clocks jump over it. Of one that
    /// comes twice: the first.
    [[nodiscard]] sys_seconds moment(local_seconds label) const {
        return zone == nullptr ? sys_seconds{label.time_since_epoch()}
                               : zone->to_sys(label, date::choose::earliest);
    }

    /// Where the hours of a zone begin moves when its clocks change by less than a slot (half an hour on Lord Howe). The
    /// slots before and after it end and begin there, so that no moment is in two of them or in none.
    [[nodiscard]] slot interval_at(sys_seconds at) const {
        auto begin = begin_of_interval(at, offset_at(at));
        auto end = begin + period;
        if (zone != nullptr) {
            const auto span = zone->get_info(at);
            if (begin < span.begin && moved(span.begin - seconds{1}, at)) {
                begin = span.begin;
            }
            if (end > span.end && moved(at, span.end)) {
                end = span.end;
            }
        }
        const bool whole_minutes = begin.time_since_epoch() % std::chrono::minutes{1} == seconds{0};
        return {date::format(whole_minutes && period % std::chrono::minutes{1} == seconds::zero()
                                 ? "%FT%RZ"
                                 : "%FT%TZ",
                             begin),
                core::wall_instant{begin.time_since_epoch()},
                core::wall_instant{end.time_since_epoch()}};
    }
    [[nodiscard]] seconds offset_at(sys_seconds at) const {
        return local(at).time_since_epoch() - at.time_since_epoch();
    }
    [[nodiscard]] sys_seconds begin_of_interval(sys_seconds at, seconds offset) const {
        const auto since = at.time_since_epoch() + offset;
        return sys_seconds{since - (since % period + period) % period - offset};
    }
    /// Whether intervals begin elsewhere at one moment than at the other.
    [[nodiscard]] bool moved(sys_seconds one, sys_seconds other) const {
        return (offset_at(one) - offset_at(other)) % period != seconds::zero();
    }

    struct page {
        local_seconds begin;
        local_seconds end;
    };
    [[nodiscard]] page page_of(local_seconds here) const {
        const auto today = date::floor<date::days>(here);
        if (every == unit::week) {
            const auto monday = today - (date::weekday{today} - date::Monday);
            return {monday, monday + date::weeks{1}};
        }
        if (every == unit::month) {
            const auto ymd = date::year_month_day{today};
            const auto month = ymd.year() / ymd.month();
            return {date::local_days{month / 1}, date::local_days{(month + date::months{1}) / 1}};
        }
        if (every == unit::hours) {
            const auto begin = today + (here - today) / period * period;
            return {begin, begin + period};
        }
        return {today, today + date::days{1}};
    }

    [[nodiscard]] std::string label_of(local_seconds begin) const {
        switch (every) {
            case unit::week:
                return date::format("%G-W%V", begin);
            case unit::month:
                return date::format("%Y-%m", begin);
            case unit::hours:
            case unit::interval:
                return date::format("%FT%R", begin);
            case unit::day:
                break;
        }
        return date::format("%F", begin);
    }

    [[nodiscard]] slot calendar_at(sys_seconds at) const {
        auto found = page_of(local(at));
        // Clocks that are put back over the beginning of a slot do not bring back the one before.
        while (moment(found.end) <= at) {
            found = page_of(found.end);
        }
        return {label_of(found.begin) + "[" + zone_name + "]",
                core::wall_instant{moment(found.begin).time_since_epoch()},
                core::wall_instant{moment(found.end).time_since_epoch()}};
    }
};

std::optional<schedule> schedule::make(std::string_view every,
                                       std::string_view zone,
                                       std::string& fault) {
    auto made = std::make_shared<plan>();
    const auto length = length_of(every);
    if (every == "day" || length == whole_day) {
        made->every = unit::day;
        made->period = whole_day;
    } else if (every == "week") {
        made->every = unit::week;
        made->period = 7 * whole_day;
    } else if (every == "month") {
        made->every = unit::month;
        made->period = 31 * whole_day;
    } else if (every == "hour" || (length >= shortest && hour % length == seconds::zero())) {
        made->every = unit::interval;
        made->period = every == "hour" ? hour : length;
    } else if (length > hour && length % hour == seconds::zero() &&
               whole_day % length == seconds::zero()) {
        made->every = unit::hours;
        made->period = length;
    } else {
        fault =
            "must be day, week, month, hour, a length from 10s that divides an hour (15m) or whole "
            "hours that "
            "divide a day (6h)";
        return std::nullopt;
    }
    made->zone_name = zone;
    if (!is_utc(zone)) {
        try {
            // "localtime" is a link of this host's own: it names another zone elsewhere.
            const bool named = !zone.empty() && zone != "localtime";
            made->zone = named ? date::locate_zone(std::string(zone)) : nullptr;
        } catch (const std::runtime_error&) {
            made->zone = nullptr;
        }
        if (made->zone == nullptr) {
            fault = "is not a zone that this host knows; write an IANA name such as Europe/Berlin";
            return std::nullopt;
        }
    }
    return schedule(std::move(made));
}

schedule::schedule(std::shared_ptr<const plan> made) : plan_(std::move(made)) {}
schedule::schedule(const schedule&) = default;
schedule& schedule::operator=(const schedule&) = default;
schedule::~schedule() = default;

slot schedule::at(core::wall_instant now, core::microseconds early) const {
    const auto meant = sys_seconds{date::floor<seconds>((now + early).time_since_epoch())};
    return plan_->every == unit::interval ? plan_->interval_at(meant) : plan_->calendar_at(meant);
}

seconds schedule::longest() const noexcept {
    // The night when the clocks are put back is in it: by two hours in Antarctica/Troll.
    return plan_->every == unit::interval ? plan_->period : plan_->period + 2 * hour;
}

core::microseconds schedule::usual_early() const noexcept {
    return std::min<core::microseconds>(seconds{2}, plan_->period / 10);
}

}  // namespace dibs::recipes
