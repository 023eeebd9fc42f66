// SPDX-License-Identifier: Apache-2.0
#include "recipes/once/schedule.hpp"

#include "recipes/once/cron.hpp"

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
using local_minutes = date::local_time<std::chrono::minutes>;

constexpr seconds hour = std::chrono::hours{1};
constexpr seconds whole_day = std::chrono::hours{24};
constexpr seconds shortest = seconds{10};
/// Clocks that are put forward by more were wrong, or the zone has left out a day: no run is made up for. As Debian's cron.
constexpr seconds longest_left_out = 3 * hour;
/// No expression is without a time for so long.
constexpr auto longest_search = date::days{50 * 366};

enum class unit { interval, hours, day, week, month, cron };

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
    seconds period{};                      ///< interval and hours
    std::optional<cron_expression> times;  ///< cron
    std::string zone_name;
    const date::time_zone* zone = nullptr;  ///< null: UTC

    [[nodiscard]] bool settle_zone(std::string_view name, std::string& fault) {
        zone_name = name;
        if (is_utc(name)) {
            return true;
        }
        try {
            // "localtime" is a link of this host's own: it names another zone elsewhere.
            const bool named = !name.empty() && name != "localtime";
            zone = named ? date::locate_zone(std::string(name)) : nullptr;
        } catch (const std::runtime_error&) {
            zone = nullptr;
        }
        if (zone == nullptr) {
            fault = "is not a zone that this host knows; write an IANA name such as Europe/Berlin";
        }
        return zone != nullptr;
    }

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
            case unit::cron:
                break;
        }
        return date::format("%F", begin);
    }

    /// The last label of the expression that is not after `from` and not before `limit`.
    [[nodiscard]] std::optional<local_minutes> last_label(local_minutes from,
                                                          local_minutes limit) const {
        auto minute = from;
        while (minute >= limit) {
            const auto day = date::floor<date::days>(minute);
            if (times->on_day(day.time_since_epoch().count())) {
                for (; minute >= day && minute >= limit; minute -= std::chrono::minutes{1}) {
                    if (times->at_minute(static_cast<unsigned>((minute - day).count()))) {
                        return minute;
                    }
                }
            }
            minute = day - std::chrono::minutes{1};
        }
        return std::nullopt;
    }
    /// The first one that is not before `from`, and before `limit`.
    [[nodiscard]] std::optional<local_minutes> first_label(local_minutes from,
                                                           local_minutes limit) const {
        auto minute = from;
        while (minute < limit) {
            const auto day = date::floor<date::days>(minute);
            const local_minutes next_day = day + date::days{1};
            if (times->on_day(day.time_since_epoch().count())) {
                for (; minute < next_day && minute < limit; minute += std::chrono::minutes{1}) {
                    if (times->at_minute(static_cast<unsigned>((minute - day).count()))) {
                        return minute;
                    }
                }
            }
            minute = next_day;
        }
        return std::nullopt;
    }

    struct firing {
        local_minutes label;
        sys_seconds moment;
    };
    /// A stretch of time without a change of clocks; for UTC, all of it.
    struct stretch {
        sys_seconds begin;
        sys_seconds end;
        seconds offset;
    };
    [[nodiscard]] stretch stretch_of(sys_seconds at) const {
        if (zone == nullptr) {
            return {at - longest_search, at + longest_search, seconds{0}};
        }
        const auto info = zone->get_info(at);
        // An open end would overflow.
        return {std::max(info.begin, at - longest_search),
                std::min(info.end, at + longest_search),
                info.offset};
    }

    /// By the clock as it goes: the last one that is not after `at`.
    [[nodiscard]] firing last_by_the_clock(sys_seconds at) const {
        while (true) {
            const auto here = stretch_of(at);
            const auto local_of = [&](sys_seconds moment) {
                return local_seconds{(moment + here.offset).time_since_epoch()};
            };
            const auto found = last_label(date::floor<std::chrono::minutes>(local_of(at)),
                                          date::ceil<std::chrono::minutes>(local_of(here.begin)));
            if (found) {
                return {*found, sys_seconds{found->time_since_epoch() - here.offset}};
            }
            at = here.begin - seconds{1};
        }
    }
    [[nodiscard]] sys_seconds next_by_the_clock(sys_seconds after) const {
        auto from = after + seconds{1};
        while (true) {
            const auto here = stretch_of(from);
            const auto local_of = [&](sys_seconds moment) {
                return local_seconds{(moment + here.offset).time_since_epoch()};
            };
            const auto found = first_label(date::ceil<std::chrono::minutes>(local_of(from)),
                                           date::ceil<std::chrono::minutes>(local_of(here.end)));
            if (found) {
                return sys_seconds{found->time_since_epoch() - here.offset};
            }
            from = here.end;
        }
    }

    /// Of a label for a time of the day. Empty: no run is made up for.
    [[nodiscard]] std::optional<sys_seconds> moment_of_day(local_minutes label) const {
        if (zone == nullptr) {
            return moment(label);
        }
        const auto info = zone->get_info(local_seconds{label});
        if (info.result == date::local_info::nonexistent &&
            info.second.offset - info.first.offset > longest_left_out) {
            return std::nullopt;
        }
        return moment(label);
    }
    [[nodiscard]] firing last_of_day(sys_seconds at) const {
        auto from = local(at);
        if (zone != nullptr) {
            // Where clocks were put back, later labels than that of now have been already.
            const auto info = zone->get_info(at);
            if (info.begin > at - whole_day) {
                const auto before = offset_at(info.begin - seconds{1});
                from = std::max(
                    from, local_seconds{(info.begin - seconds{1} + before).time_since_epoch()});
            }
        }
        auto label = date::floor<std::chrono::minutes>(from);
        while (true) {
            label = last_label(label, label - longest_search).value();
            const auto found = moment_of_day(label);
            if (found && *found <= at) {
                return {label, *found};
            }
            label -= std::chrono::minutes{1};
        }
    }
    [[nodiscard]] sys_seconds next_of_day(const firing& last) const {
        auto label = last.label;
        while (true) {
            label += std::chrono::minutes{1};
            label = first_label(label, label + longest_search).value();
            const auto found = moment_of_day(label);
            if (found && *found > last.moment) {
                return *found;
            }
        }
    }

    [[nodiscard]] slot cron_at(sys_seconds at) const {
        const bool by_the_clock = times->follows_the_clock();
        const auto found = by_the_clock ? last_by_the_clock(at) : last_of_day(at);
        const auto end = by_the_clock ? next_by_the_clock(found.moment) : next_of_day(found);
        auto name = date::format("%FT%R", found.label);
        if (by_the_clock && moment(found.label) != found.moment) {
            const auto offset = date::floor<std::chrono::minutes>(offset_at(found.moment));
            name += (offset < std::chrono::minutes{0} ? "-" : "+") +
                    date::format("%R", date::local_seconds{date::abs(offset)});
        }
        return {name + "[" + zone_name + "]",
                core::wall_instant{found.moment.time_since_epoch()},
                core::wall_instant{end.time_since_epoch()}};
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
    if (!made->settle_zone(zone, fault)) {
        return std::nullopt;
    }
    return schedule(std::move(made));
}

std::optional<schedule> schedule::make_cron(std::string_view expression,
                                            std::string_view zone,
                                            std::string& fault) {
    auto made = std::make_shared<plan>();
    made->every = unit::cron;
    made->times = cron_expression::parse(expression, fault);
    if (!made->times || !made->settle_zone(zone, fault)) {
        return std::nullopt;
    }
    made->period = made->times->longest();
    return schedule(std::move(made));
}

schedule::schedule(std::shared_ptr<const plan> made) : plan_(std::move(made)) {}
schedule::schedule(const schedule&) = default;
schedule& schedule::operator=(const schedule&) = default;
schedule::~schedule() = default;

slot schedule::at(core::wall_instant now, core::microseconds early) const {
    const auto meant = sys_seconds{date::floor<seconds>((now + early).time_since_epoch())};
    switch (plan_->every) {
        case unit::interval:
            return plan_->interval_at(meant);
        case unit::cron:
            return plan_->cron_at(meant);
        case unit::hours:
        case unit::day:
        case unit::week:
        case unit::month:
            break;
    }
    return plan_->calendar_at(meant);
}

slot schedule::before(const slot& one) const {
    return at(one.begin - core::microseconds{1}, core::microseconds{0});
}

seconds schedule::longest() const noexcept {
    // The night when the clocks are put back is in it: by two hours in Antarctica/Troll.
    return plan_->every == unit::interval ? plan_->period : plan_->period + 2 * hour;
}

core::microseconds schedule::usual_early() const noexcept {
    return std::min<core::microseconds>(seconds{2}, most_early() / 5);
}

core::microseconds schedule::most_early() const noexcept {
    return (plan_->times ? plan_->times->shortest() : plan_->period) / 2;
}

}  // namespace dibs::recipes
