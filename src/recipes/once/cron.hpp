// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cron expression: at which minutes of which days it asks for a run. Knows no zone and no clock.
//
// Five fields as crontab(5) of Debian has them: minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or jan-dec),
// day of the week (0-7 or sun-sat; 0 and 7 are Sunday). A field is `*`, numbers, ranges `1-5`, steps `*/15` and `8-18/2`,
// and lists of those; or the whole is one of @yearly @annually @monthly @weekly @daily @midnight @hourly.
//
// When both fields of the day are restricted, either of them is enough. A field that begins with `*` is not restricted, also
// with a step: `0 0 */2 * mon` asks for Mondays with an odd date.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::recipes {

class cron_expression {
  public:
    /// Empty: `fault` says which field is wrong, and why.
    static std::optional<cron_expression> parse(std::string_view text, std::string& fault);

    /// Days are numbered from 1970-01-01, as on every calendar.
    [[nodiscard]] bool on_day(std::int64_t day) const noexcept;
    [[nodiscard]] bool at_minute(unsigned minute_of_day) const noexcept {
        return ((hours_ >> (minute_of_day / 60)) & 1U) != 0 &&
               ((minutes_ >> (minute_of_day % 60)) & 1U) != 0;
    }

    /// Whether its hour or its minute begins with `*`: such a one goes by the clock as it goes, when that is put forward or
    /// back. Others are meant for a time of the day.
    [[nodiscard]] bool follows_the_clock() const noexcept { return follows_the_clock_; }

    /// The longest and the shortest time between two runs where no clock is changed.
    [[nodiscard]] std::chrono::minutes longest() const noexcept { return longest_; }
    [[nodiscard]] std::chrono::minutes shortest() const noexcept { return shortest_; }

  private:
    cron_expression() = default;
    [[nodiscard]] bool measure() noexcept;

    std::uint64_t minutes_ = 0;  ///< bit n: n is asked for; so all of them
    std::uint64_t hours_ = 0;
    std::uint64_t days_ = 0;
    std::uint64_t months_ = 0;
    std::uint64_t weekdays_ = 0;  ///< 0: Sunday
    bool any_day_ = false;        ///< the field of the day of the month begins with *
    bool any_weekday_ = false;
    bool follows_the_clock_ = false;
    std::chrono::minutes longest_{};
    std::chrono::minutes shortest_{};
};

}  // namespace dibs::recipes
