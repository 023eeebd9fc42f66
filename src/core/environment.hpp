// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything of the outside world that the core may touch. The real client and the simulator each
// bring their own: a thread-safe queue, CLOCK_BOOTTIME and the kernel's randomness there; one
// thread, virtual time and a seed here. Nothing below src/core, src/recipes or a store's rules
// reads a clock, sleeps, starts a thread or draws a random number in any other way.

#include "core/time.hpp"
#include "core/unique_function.hpp"

#include <cstddef>
#include <span>

namespace dibs::core {

using task = unique_function<void()>;

/// Runs tasks one after another, in the order in which they were posted, never two at a time.
/// Everything in the core lives on one executor and needs no lock of its own.
class executor {
  public:
    virtual ~executor() = default;

    /// Queues a task. Never runs it before returning to a caller that is itself a task; a caller
    /// that is not may find that its thread ran this and other tasks, so it must not hold a lock
    /// that a task takes. Thread safety: may be called from any thread.
    virtual void post(task work) = 0;

    /// As post, but never runs anything in the caller's thread: for one that has other work to do
    /// first. Whoever posts next, or the caller's own run_left(), runs it. Every call of `leave`
    /// must be followed by one of `run_left`. Thread safety: any thread.
    virtual void leave(task work) { post(std::move(work)); }

    /// Runs what was left and nobody has run since. Thread safety: any thread.
    virtual void run_left() {}
};

class time_source;

/// A timer that its owner embeds. Fires at most once per arming, on the executor, never early.
/// Not movable: a time source keeps its address while it is armed. Destroying an armed timer
/// disarms it.
class timer {
  public:
    /// Smaller than a task: every lease has several.
    using action = unique_function<void(), 4>;

    explicit timer(action on_fire) noexcept : on_fire_(std::move(on_fire)) {}
    ~timer();
    timer(const timer&) = delete;
    timer& operator=(const timer&) = delete;

    [[nodiscard]] bool armed() const noexcept { return source_ != nullptr; }
    [[nodiscard]] instant due() const noexcept { return due_; }

    /// For time sources alone.
    struct link {
        timer* previous = nullptr;
        timer* next = nullptr;
        unsigned slot = 0;
    };
    link& hook() noexcept { return hook_; }
    void mark_armed(time_source& source, instant due) noexcept {
        source_ = &source;
        due_ = due;
    }
    void mark_disarmed() noexcept { source_ = nullptr; }
    void fire() { on_fire_(); }

  private:
    action on_fire_;
    time_source* source_ = nullptr;
    instant due_{};
    link hook_;
};

/// The clock and the alarm of the core.
class time_source {
  public:
    virtual ~time_source() = default;

    /// Thread safety: may be called from any thread.
    [[nodiscard]] virtual instant now() const noexcept = 0;

    /// Arms `alarm` for `due`, replacing an earlier arming. To be called on the executor.
    virtual void arm(timer& alarm, instant due) = 0;

    /// Forgets `alarm`; does nothing when it is not armed. To be called on the executor.
    virtual void disarm(timer& alarm) noexcept = 0;
};

inline timer::~timer() {
    if (source_ != nullptr) {
        source_->disarm(*this);
    }
}

/// Randomness fit for holder ids (from the kernel in the real client).
class entropy {
  public:
    virtual ~entropy() = default;

    /// Fills `bytes`. Thread safety: may be called from any thread.
    virtual void fill(std::span<std::byte> bytes) = 0;
};

/// Runs what users hang on to a loss, away from the executor, so that a slow callback holds up
/// nobody's renewal.
class notifier {
  public:
    virtual ~notifier() = default;

    /// Thread safety: may be called from any thread.
    virtual void notify(task work) = 0;
};

struct environment {
    executor& exec;
    time_source& time;
    entropy& random;
    notifier& notices;
};

}  // namespace dibs::core
