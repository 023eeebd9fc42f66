// SPDX-License-Identifier: Apache-2.0
#include "recipes/once/cron.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <vector>

namespace dibs::recipes {

namespace {

using std::chrono::minutes;

struct field {
    std::string_view name;
    unsigned first;
    unsigned last;
    std::string_view names;  ///< three letters each, from `first_name` on
    unsigned first_name;
};

constexpr std::array fields{
    field{"minute", 0, 59, "", 0},
    field{"hour", 0, 23, "", 0},
    field{"day of the month", 1, 31, "", 0},
    field{"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", 1},
    field{"day of the week", 0, 7, "sunmontuewedthufrisat", 0},
};

struct nickname {
    std::string_view name;
    std::string_view means;
};

constexpr std::array nicknames{
    nickname{"@yearly", "0 0 1 1 *"},
    nickname{"@annually", "0 0 1 1 *"},
    nickname{"@monthly", "0 0 1 * *"},
    nickname{"@weekly", "0 0 * * 0"},
    nickname{"@daily", "0 0 * * *"},
    nickname{"@midnight", "0 0 * * *"},
    nickname{"@hourly", "0 * * * *"},
};

constexpr std::int64_t minutes_per_day = 24 * 60;
/// From 2000-01-01 on for as long: all leap years, and 2100, which is none.
constexpr std::int64_t first_day_measured = 10'957;
constexpr std::int64_t days_measured = 110 * 366;

struct calendar_day {
    unsigned month;  ///< from 1
    unsigned day;    ///< from 1
    unsigned weekday;
};

calendar_day calendar_of(std::int64_t day) noexcept {
    const std::chrono::sys_days at{std::chrono::days{day}};
    const std::chrono::year_month_day date{at};
    return {unsigned{date.month()}, unsigned{date.day()}, std::chrono::weekday{at}.c_encoding()};
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto end = text.find_first_of(separators);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

std::vector<std::string_view> words_of(std::string_view text) {
    auto parts = split(text, " \t");
    std::erase(parts, std::string_view{});
    return parts;
}

/// Reads one field.
class field_reader {
  public:
    field_reader(const field& of, std::string_view text) : field_(of), text_(text) {}

    std::optional<std::uint64_t> read(std::string& fault) {
        std::uint64_t all = 0;
        for (const auto part : split(text_, ",")) {
            if (!add(part, all)) {
                fault = "has a bad " + std::string(field_.name) + " `" + std::string(text_) +
                        "`: " + why_;
                return std::nullopt;
            }
        }
        return all;
    }

  private:
    bool refuse(std::string why) {
        why_ = std::move(why);
        return false;
    }

    bool add(std::string_view part, std::uint64_t& all) {
        const auto slash = part.find('/');
        const auto range = part.substr(0, slash);
        unsigned step = 1;
        if (slash != std::string_view::npos) {
            const auto text = part.substr(slash + 1);
            if (!number(text, step) || step == 0 || step > field_.last) {
                return refuse("a step is a number from 1 to " + std::to_string(field_.last));
            }
        }
        unsigned from = field_.first;
        unsigned to = field_.last;
        if (range != "*") {
            const auto dash = range.find('-');
            if (!value(range.substr(0, dash), from)) {
                return false;
            }
            to = from;
            if (dash == std::string_view::npos && slash != std::string_view::npos) {
                return refuse("a step follows * or a range, as in " + std::to_string(from) + "-" +
                              std::to_string(field_.last) + "/" + std::to_string(step));
            }
            if (dash != std::string_view::npos && !value(range.substr(dash + 1), to)) {
                return false;
            }
            if (to == 0 && is_weekday() && dash != std::string_view::npos && from > 0) {
                to = 7;  // a range that ends on a Sunday
            }
            if (to < from) {
                return refuse("the range " + std::string(range) + " ends before it begins");
            }
        }
        for (auto at = from; at <= to; at += step) {
            all |= std::uint64_t{1} << (is_weekday() ? at % 7 : at);
        }
        return true;
    }

    bool value(std::string_view text, unsigned& found) {
        if (number(text, found)) {
            if (found >= field_.first && found <= field_.last) {
                return true;
            }
        } else if (name(text, found)) {
            return true;
        }
        auto wanted = std::string(field_.name) + " is a number from " +
                      std::to_string(field_.first) + " to " + std::to_string(field_.last);
        if (!field_.names.empty()) {
            wanted += " or a name such as " + std::string(field_.names.substr(0, 3));
        }
        return refuse((text.empty() ? std::string("something is missing")
                                    : "`" + std::string(text) + "` is none") +
                      "; the " + wanted);
    }

    static bool number(std::string_view text, unsigned& found) {
        const auto* const end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, found);
        return read.ec == std::errc{} && read.ptr == end && text.size() <= 4;
    }

    bool name(std::string_view text, unsigned& found) const {
        if (text.size() != 3) {
            return false;
        }
        std::string lower(text);
        std::transform(lower.begin(), lower.end(), lower.begin(), [](char letter) {
            return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
        });
        for (std::size_t at = 0; at < field_.names.size(); at += 3) {
            if (field_.names.substr(at, 3) == lower) {
                found = field_.first_name + static_cast<unsigned>(at / 3);
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] bool is_weekday() const { return &field_ == &fields.back(); }

    const field& field_;
    std::string_view text_;
    std::string why_;
};

}  // namespace

std::optional<cron_expression> cron_expression::parse(std::string_view text, std::string& fault) {
    auto words = words_of(text);
    if (words.size() == 1 && words.front().starts_with('@')) {
        const auto* const known =
            std::find_if(nicknames.begin(), nicknames.end(), [&](const nickname& one) {
                return one.name == words.front();
            });
        if (known == nicknames.end()) {
            fault = "is none of @yearly, @monthly, @weekly, @daily and @hourly";
            return std::nullopt;
        }
        words = words_of(known->means);
    }
    if (words.size() != fields.size()) {
        fault =
            "must have five fields (minute, hour, day of the month, month, day of the week), "
            "not " +
            std::to_string(words.size());
        return std::nullopt;
    }
    cron_expression made;
    const std::array places{
        &made.minutes_, &made.hours_, &made.days_, &made.months_, &made.weekdays_};
    for (std::size_t at = 0; at < fields.size(); ++at) {
        const auto read = field_reader(fields[at], words[at]).read(fault);
        if (!read) {
            return std::nullopt;
        }
        *places[at] = *read;
    }
    made.any_day_ = words[2].front() == '*';
    made.any_weekday_ = words[4].front() == '*';
    made.follows_the_clock_ = words[0].front() == '*' || words[1].front() == '*';
    if (!made.measure()) {
        fault = "names no day that there is";
        return std::nullopt;
    }
    return made;
}

bool cron_expression::on_day(std::int64_t day) const noexcept {
    const auto [month, date, weekday] = calendar_of(day);
    if (((months_ >> month) & 1U) == 0) {
        return false;
    }
    const bool by_date = ((days_ >> date) & 1U) != 0;
    const bool by_weekday = ((weekdays_ >> weekday) & 1U) != 0;
    return any_day_ || any_weekday_ ? by_date && by_weekday : by_date || by_weekday;
}

/// False when there is no day at all.
bool cron_expression::measure() noexcept {
    std::int64_t first = -1;
    std::int64_t last = -1;
    std::int64_t before = 0;
    std::int64_t shortest = minutes_per_day;
    std::int64_t longest = 0;
    for (std::int64_t at = 0; at < minutes_per_day; ++at) {
        if (!at_minute(static_cast<unsigned>(at))) {
            continue;
        }
        if (first < 0) {
            first = at;
        } else {
            shortest = std::min(shortest, at - before);
            longest = std::max(longest, at - before);
        }
        before = last = at;
    }
    std::int64_t days_between = 0;
    std::int64_t previous = -1;
    bool daily = false;
    for (auto day = first_day_measured; day < first_day_measured + days_measured; ++day) {
        if (!on_day(day)) {
            continue;
        }
        if (previous >= 0) {
            days_between = std::max(days_between, day - previous);
            daily = daily || day == previous + 1;
        }
        previous = day;
    }
    if (previous < 0) {
        return false;
    }
    const auto over_night = first + minutes_per_day - last;
    if (daily) {
        shortest = std::min(shortest, over_night);
    }
    longest_ = minutes{std::max(longest, over_night + (days_between - 1) * minutes_per_day)};
    shortest_ = minutes{shortest};
    return true;
}

}  // namespace dibs::recipes
