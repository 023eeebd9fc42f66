// SPDX-License-Identifier: Apache-2.0
#pragma once
// One leader among many processes, and everybody else knows who it is.
//
//   if (auto term = client.campaign("controller", {.ttl = 10s}, stop)) {   // stands by until it leads
//       lead(term->number(), term->lost());                                 // lost(): std::stop_token
//   }                                                                       // resigns: the next one leads at once
//
// A term is a lease, and its number the fence: it grows with every change of leader. A leader that was frozen for longer than
// its ttl is no leader any more and does not know it, so hand the number to whatever it commands, and let that refuse a
// smaller one than it has seen. Work under a term must end when lost() is requested: at the latest then somebody else may lead.

#include <dibs/info.hpp>
#include <dibs/lease.hpp>
#include <dibs/options.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace dibs {

struct campaign_options {
    /// As acquire_options::ttl: a crash of the leader is noticed so much later at the latest.
    std::chrono::milliseconds ttl = std::chrono::seconds{10};

    /// How long to stand by. Zero: one try.
    std::chrono::milliseconds wait = forever;

    /// Who follows: whoever asks first, or (order::queue) who has stood by for longest.
    dibs::order order = dibs::order::race;

    /// How long one try may take until it is an error, also when the store never answers.
    std::chrono::milliseconds timeout = std::chrono::seconds{5};

    /// How much earlier than the end of the term `lost()` is requested, for work that needs time to stop. Less than half of
    /// the ttl. Zero: at its end.
    std::chrono::milliseconds notice = std::chrono::milliseconds::zero();

    /// The longest that one term may last; then it is given back, so that another one leads. Zero: no limit.
    std::chrono::milliseconds term_max = std::chrono::milliseconds::zero();
};

/// A term of leadership. Movable; destroying it resigns.
///
/// Thread safety: as lease.
class leadership {
  public:
    explicit leadership(lease held) noexcept : lease_(std::move(held)) {}

    /// The number of the term; the same whether it still lasts or not.
    [[nodiscard]] std::uint64_t number() const noexcept { return lease_.last_fence(); }

    /// Whether it lasts, by this process's own clock. Never true at or after its end.
    [[nodiscard]] bool held() const noexcept { return lease_.held(); }
    [[nodiscard]] explicit operator bool() const noexcept { return held(); }

    /// How long it lasts for sure if no renewal succeeds.
    [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept { return lease_.remaining(); }

    /// Requested once when the term ends without having been resigned (or `notice` before).
    [[nodiscard]] std::stop_token lost() const noexcept { return lease_.lost(); }
    [[nodiscard]] std::error_code lost_reason() const noexcept { return lease_.lost_reason(); }

    /// Ends the term; the next one leads at once. To be called when the work has ended, not before. not_held: it was over
    /// already, and nobody else's term was touched. Errors: as lease::release.
    [[nodiscard]] release_outcome resign() { return lease_.release(); }
    [[nodiscard]] release_outcome resign(std::error_code& error) noexcept {
        return lease_.release(error);
    }

    /// What it rests on, for fences and renewals.
    [[nodiscard]] dibs::lease& lease_held() noexcept { return lease_; }

  private:
    dibs::lease lease_;
};

/// What an observer is told.
struct leader_change {
    std::optional<dibs::holder> leader;  ///< empty: nobody leads
    std::uint64_t term =
        0;  ///< of the leader; of nobody, the last one known. 0: none was ever seen
};

struct observe_options {
    /// How often to look.
    std::chrono::milliseconds every = std::chrono::seconds{1};
};

namespace detail {
class observing;
}  // namespace detail

/// Observes who leads, for as long as it lives. The first call tells how things are, each further one a change. The terms
/// that are told rise. Not told are: terms that began and ended between two looks, and anything while the store cannot be
/// asked. So a leader that is told may be one of before: only the number of its term tells, compared where it matters.
///
/// Destroying it ends that: afterwards no call begins, and none is under way but the one that it is destroyed in.
///
/// Thread safety: distinct objects; current() from any thread.
class observation {
  public:
    observation(observation&& other) noexcept;
    observation& operator=(observation&& other) noexcept;
    ~observation();

    /// What was told last; empty before the first look.
    [[nodiscard]] std::optional<leader_change> current() const;

  private:
    friend class detail::observing;
    explicit observation(std::shared_ptr<detail::observing> what) noexcept;
    std::shared_ptr<detail::observing> what_;
};

/// Called on a thread of the client's, one call at a time. Must be quick and must not throw.
using observer = std::function<void(const leader_change&)>;

}  // namespace dibs
