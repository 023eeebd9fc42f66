// SPDX-License-Identifier: Apache-2.0
#pragma once
// Once per slot: a job that runs once for each of its planned times, on whichever process comes first.
//
//   client.once("nightly-report", dibs::cron("0 3 * * *", "Europe/Berlin"), [](const dibs::once_context& run) {
//       send_report(run.idempotency_key, run.stop);
//   });
//
// To be called by a timer of the caller's, in every process that may do the job; nothing here wakes anybody. A lock is not
// enough for that: who comes after the first one has finished finds it free. So the outcome of each slot is kept.
//
// At least once: a crash between the effect and the record of it repeats the effect, so hand `idempotency_key` or `fence` to
// whatever the job changes; or choose `at_most_once`, which loses the slot instead. The guide is
// docs/guides/scheduled-jobs.md.

#include <dibs/info.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dibs {

namespace detail {
struct planned_times;
}  // namespace detail

/// Which slots a job has. A cheap handle; copies share what they stand for.
///
/// Thread safety: all of it may be used from any thread at the same time.
class schedule {
  public:
    /// As it was asked for, such as `0 3 * * * Europe/Berlin`.
    [[nodiscard]] const std::string& text() const noexcept;

  private:
    friend struct detail::planned_times;
    explicit schedule(std::shared_ptr<const detail::planned_times> plan) noexcept;
    std::shared_ptr<const detail::planned_times> plan_;
};

/// One slot per `day`, `week`, `month`, `hour`, or a length that divides an hour (`15m`, `30s`) or whole hours that divide a
/// day (`6h`), in an IANA zone. Errors: invalid_argument.
[[nodiscard]] schedule every(std::string_view period, std::string_view zone = "UTC");
[[nodiscard]] schedule every(std::chrono::seconds period, std::string_view zone = "UTC");

/// One slot per time of a cron expression: five fields, or `@daily` and the like; the rules are those of Debian's cron, also
/// on the nights when clocks are changed. Errors: invalid_argument.
[[nodiscard]] schedule cron(std::string_view expression, std::string_view zone = "UTC");

/// One slot, for planners that name their runs. Errors: invalid_argument.
[[nodiscard]] schedule slot(std::string_view name);

/// What becomes of planned times at which nobody called.
enum class missed : std::uint8_t {
    none,  ///< nothing; nor is the slot of now run when it began longer ago than `late`
    last,  ///< the slot of now is run, however late, and none before it
    all,   ///< all since the newest one that was run, oldest first, up to `missed_max`
};

/// Whether a slot may begin while another one of the job is being run.
enum class overlap : std::uint8_t {
    usual,   ///< forbid with missed::all, allow otherwise
    allow,   ///< each slot for itself
    forbid,  ///< among all who forbid it: it does not begin, or waits for `wait`
};

struct once_options {
    /// As acquire_options::ttl: how long a crash holds the slot.
    std::chrono::milliseconds ttl = std::chrono::seconds{30};

    /// How long to wait for the slot to be over: for whoever is at it (and run it if he dies or fails), for a back-off, for the
    /// end of an operator's hold. Zero: one look.
    std::chrono::milliseconds wait = std::chrono::milliseconds::zero();

    /// After a failure any process may try again, so often in all. Zero: a failure is final. A crash uses up none.
    unsigned retries = 0;

    /// Time before the first retry; doubles each time, up to an hour.
    std::chrono::milliseconds backoff = std::chrono::minutes{1};

    /// Never run a slot again that was started, also after a crash.
    bool at_most_once = false;

    /// How long an outcome is remembered; at least an hour, and longer than a slot. `forever` is allowed. Zero: two slots, at
    /// least a week.
    std::chrono::milliseconds keep = std::chrono::milliseconds::zero();

    /// A call so much before the beginning of a slot means that slot: timers of different hosts differ. Less than half of the
    /// shortest slot. Negative: two seconds, less for slots under 20 s.
    std::chrono::milliseconds early = std::chrono::milliseconds{-1};

    dibs::missed missed = dibs::missed::last;

    /// missed::all: the newest so many. Older ones are left out, and counted.
    std::size_t missed_max = 100;

    /// missed::none: how long after its beginning a slot is not missed yet. Zero: ten minutes (half a short slot); must be
    /// given with every().
    std::chrono::milliseconds late = std::chrono::milliseconds::zero();

    dibs::overlap overlap = dibs::overlap::usual;

    /// Run the slot whatever has become of it: done, failed for good, started at most once, or so far back that it may have
    /// been forgotten; its failures count anew. For people who know that this is wanted, not for timers. What another run
    /// leaves from the beginning of the call on counts, and neither a run that goes on nor an operator's hold is passed by.
    bool again = false;
};

/// What a run is given. Lives as long as the call of the function.
struct once_context {
    std::string job;
    std::string slot;
    unsigned attempt = 1;  ///< of this slot, crashes counted
    std::string
        idempotency_key;  ///< JOB/SLOT, the same for each attempt; `/` and `%` of the job as in a URL
    std::uint64_t fence = 0;  ///< larger than that of every earlier attempt of this slot
    std::stop_token stop;     ///< requested when the lease is lost, or the caller's stop is
};

enum class once_outcome : std::uint8_t {
    ran,          ///< here, and its success is kept
    done,         ///< it has been run before
    running,      ///< another process is at it
    overlaps,     ///< another slot of the job is being run, and overlap is forbidden
    failed,       ///< for good: here, or before
    retry_later,  ///< failed here or before, and may be tried again after `retry_after`
    on_hold,      ///< an operator has put the slot or the job on hold
    missed,       ///< not run, since it would be too late (missed::none)
    forgotten,  ///< it lies so far back that it may have been run; is the clock of this host right?
    interrupted,  ///< the function threw after the caller's stop: others may run it at once
    lost,  ///< run here, but the lease was lost, which counts as failed; or the outcome could not be kept
};

struct slot_result {
    std::string slot;
    once_outcome outcome = once_outcome::missed;
    bool here = false;                        ///< the function was called
    unsigned attempt = 0;                     ///< the last one that is known
    std::exception_ptr failure;               ///< what the function threw
    std::optional<dibs::holder> holder;       ///< running, overlaps
    std::chrono::microseconds retry_after{};  ///< retry_later, on_hold
    std::string reason;                       ///< on_hold
};

struct once_result {
    std::vector<slot_result>
        slots;  ///< in the order in which they were looked at; more than one with missed::all
    std::size_t left_out = 0;  ///< missed slots beyond `missed_max`

    /// Of the last slot that was looked at; missed when there was none.
    [[nodiscard]] once_outcome outcome() const noexcept {
        return slots.empty() ? once_outcome::missed : slots.back().outcome;
    }
    /// Whether the function was called.
    [[nodiscard]] bool here() const noexcept {
        for (const auto& one : slots) {
            if (one.here) {
                return true;
            }
        }
        return false;
    }
};

/// What it throws is a failure of the slot.
using once_function = std::function<void(const once_context&)>;

}  // namespace dibs
