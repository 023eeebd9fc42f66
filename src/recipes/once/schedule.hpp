// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which slot a moment belongs to. A slot has a name that every host finds alike, whatever its own
// zone: it comes from the schedule and an IANA zone, not from the moment at which somebody asks.
//
// Calendar slots bear their local label and zone: `2026-11-29[Europe/Berlin]`, `2026-W48[UTC]`,
// `2026-11-29T06:00[Asia/Kolkata]`. So hosts with different zone data agree on the name, and a day
// of 23 or 25 hours is one day. Slots of an hour and less bear their beginning in UTC, since a
// local hour may come twice: `2026-11-29T10:30Z`. They begin where the hours of the zone begin,
// also in zones that are half an hour off.
//
// A slot of a cron expression lasts from one of its times to the next and bears the label of the first:
// `2026-11-29T03:00[Europe/Berlin]`. When clocks are changed it does as Debian's cron: an expression for a time of the day
// (neither hour nor minute begins with `*`) runs right after an hour that was left out (up to three hours; several times
// that were left out together are one slot, named after the last), and not again in an hour that comes twice. One with a
// `*` follows the clock: what is left out is left out, what comes twice are two slots, the second one with its offset from
// UTC: `2026-10-25T02:30+01:00[Europe/Berlin]`.

#include "core/time.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::recipes {

struct slot {
    std::string name;
    core::wall_instant begin;
    core::wall_instant end;  ///< not part of it
};

class schedule {
  public:
    /// `every`: day, week, month, hour; or a length that divides an hour (`15m`, `30s`) or whole
    /// hours that divide a day (`6h`). `zone`: an IANA name. Empty: `fault` says what is wrong with
    /// which.
    static std::optional<schedule> make(std::string_view every,
                                        std::string_view zone,
                                        std::string& fault);

    /// `expression`: see recipes/once/cron.hpp.
    static std::optional<schedule> make_cron(std::string_view expression,
                                             std::string_view zone,
                                             std::string& fault);

    schedule(const schedule&);
    schedule& operator=(const schedule&);
    ~schedule();

    /// The slot of a timer that fires now. One that fires up to `early` before a slot begins means
    /// that slot: timers of hosts whose clocks are a little ahead, or that round down, must not
    /// become yesterday's.
    [[nodiscard]] slot at(core::wall_instant now, core::microseconds early) const;

    /// The one that ends where this one begins.
    [[nodiscard]] slot before(const slot& one) const;

    /// The longest that a slot may last.
    [[nodiscard]] std::chrono::seconds longest() const noexcept;
    /// How early a timer may be unless somebody says otherwise: two seconds, a tenth of a short
    /// slot.
    [[nodiscard]] core::microseconds usual_early() const noexcept;
    /// More would take one slot for another.
    [[nodiscard]] core::microseconds most_early() const noexcept;

  private:
    struct plan;
    explicit schedule(std::shared_ptr<const plan> made);
    std::shared_ptr<const plan> plan_;
};

}  // namespace dibs::recipes
