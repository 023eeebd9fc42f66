// SPDX-License-Identifier: Apache-2.0
#pragma once
// A store as the simulator knows it: how a process comes to it, and what may befall it. One file per
// model; stores/table.cpp names them.
//
// A model writes what it really did into the history (grant, prolong, end, refuse), never what a
// client believes.

#include "simulation/history/invariants.hpp"
#include "simulation/history/recorder.hpp"
#include "simulation/network/line.hpp"
#include "simulation/process/process.hpp"
#include "simulation/world/random.hpp"
#include "simulation/world/world.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::simulation {

/// A store object in a process. What befalls its connections reaches it through these.
struct opened_store {
    std::unique_ptr<store::store> made;
    std::function<void()> cut;     ///< breaks its connections; empty: it has none
    std::function<void()> opened;  ///< the line may be open again
};

class store_model {
  public:
    virtual ~store_model() = default;

    /// `conditions` outlive the store that is made.
    [[nodiscard]] virtual opened_store open(process& by, const weather& conditions) = 0;

    /// A process was killed: whoever can tell for certain knows it from now on.
    virtual void died(const process& gone) { static_cast<void>(gone); }

    /// A release wakes who waits; otherwise they look again and again.
    [[nodiscard]] virtual bool wakes() const { return true; }

    /// The clock that decides expiry, and the calendar.
    [[nodiscard]] virtual core::store_now clock() const = 0;

    // --- what may befall it ----------------------------------------------------------------------

    /// Which promises fall with it, as in the history (`"C1","C2"`); empty text: none. Nothing: it
    /// cannot befall this store.
    using consequence = std::optional<std::string_view>;

    /// It stops, and is back after `down_for`. What was acknowledged is there again.
    virtual consequence restart(core::nanoseconds down_for) {
        static_cast<void>(down_for);
        return std::nullopt;
    }
    /// The same by power loss: what need not survive it is lost.
    virtual consequence lose_power(core::nanoseconds down_for) {
        static_cast<void>(down_for);
        return std::nullopt;
    }
    /// Another copy, which lags behind, takes over; the next time it is back to the first one.
    virtual consequence fail_over() { return std::nullopt; }
    /// Forgets a record.
    virtual consequence evict(random& chosen_by) {
        static_cast<void>(chosen_by);
        return std::nullopt;
    }
    /// Its clock is stepped.
    virtual consequence step_clock(core::nanoseconds by) {
        static_cast<void>(by);
        return std::nullopt;
    }
    virtual consequence set_clock_rate(std::int64_t ppm) {
        static_cast<void>(ppm);
        return std::nullopt;
    }
    /// The process is to die in the middle of its next steps, after so many writes to the disk.
    /// `then` is called when it is as good as dead, inside such a step. False: there is no such
    /// thing in this store.
    virtual bool kill_within_step(process& which,
                                  std::uint64_t writes,
                                  std::function<void()> then) {
        static_cast<void>(which);
        static_cast<void>(writes);
        static_cast<void>(then);
        return false;
    }
    /// Steps are refused (surely not carried out), this share of them: no space, read-only,
    /// overload.
    virtual consequence refuse(unsigned per_mille) {
        static_cast<void>(per_mille);
        return std::nullopt;
    }
};

/// What a model is built in.
struct store_context {
    world& in;
    recorder& history;
    invariants& laws;
    random chosen_by;
    host& machine;          ///< of the processes, for a store on the same host
    core::nanoseconds ttl;  ///< of the leases
};

struct store_kind {
    std::string_view name;
    std::string_view about;
    /// All processes are on one host, and the store with them.
    bool one_host = false;
    /// Several may share a key: weights and capacities.
    bool shares = true;
    /// How many seeds draw it, compared with the others: a slow model has fewer.
    unsigned weight = 1;
    std::unique_ptr<store_model> (*make)(store_context context);
};

[[nodiscard]] const std::vector<store_kind>& store_kinds();
/// Null: there is none of that name.
[[nodiscard]] const store_kind* store_kind_named(std::string_view name);

}  // namespace dibs::simulation
