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

    [[nodiscard]] slot interval_at(sys_seconds at) const {
        const auto offset = local(at).time_since_epoch() - at.time_since_epoch();
        const auto since = at.time_since_epoch() + offset;
        const auto begin = sys_seconds{since - (since % period + period) % period - offset};
        return {
            date::format(period % std::chrono::minutes{1} == seconds::zero() ? "%FT%RZ" : "%FT%TZ",
                         begin),
            core::wall_instant{begin.time_since_epoch()},
            core::wall_instant{(begin + period).time_since_epoch()}};
    }

    [[nodiscard]] slot calendar_at(sys_seconds at) const {
        const auto here = local(at);
        const auto today = date::floor<date::days>(here);
        local_seconds begin = today;
        local_seconds end = today + date::days{1};
        std::string label = date::format("%F", today);
        if (every == unit::week) {
            const auto weekday = date::weekday{today};
            const auto monday = today - (weekday - date::Monday);
            begin = monday;
            end = monday + date::weeks{1};
            label = date::format("%G-W%V", monday);
        } else if (every == unit::month) {
            const auto ymd = date::year_month_day{today};
            const auto month = ymd.year() / ymd.month();
            begin = date::local_days{month / 1};
            end = date::local_days{(month + date::months{1}) / 1};
            label = date::format("%Y-%m", date::local_days{month / 1});
        } else if (every == unit::hours) {
            begin = today + (here - today) / period * period;
            end = begin + period;
            label = date::format("%FT%R", begin);
        }
        return {label + "[" + zone_name + "]",
                core::wall_instant{moment(begin).time_since_epoch()},
                core::wall_instant{moment(end).time_since_epoch()}};
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
    // The night when the clocks are put back is in it.
    return plan_->every == unit::interval ? plan_->period : plan_->period + hour;
}

core::microseconds schedule::usual_early() const noexcept {
    return std::min<core::microseconds>(seconds{2}, plan_->period / 10);
}

}  // namespace dibs::recipes
