// SPDX-License-Identifier: Apache-2.0
#pragma once
// The law of the queue, checked at every step of every run: who stands in it is served in the order
// of arrival, nobody overtakes, nobody loses its place in time, and its head alone is woken. Knows
// of the queue only what the store has answered.

#include "core/verbs.hpp"
#include "simulation/history/invariants.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace dibs::simulation {

class queue_order {
  public:
    explicit queue_order(invariants& laws) : laws_(laws) {}

    /// A verb took effect and was answered so.
    void carried_out(const core::verb& what, const core::answer& given, std::uint64_t process);
    /// The store has woken a process on purpose.
    void woken(const std::string& key, std::uint64_t process, core::store_instant now);
    /// The store knows that the process is gone.
    void process_ended(std::uint64_t process);
    /// The store has lost its queues, or its clock begins anew.
    void forget();

  private:
    struct ticket {
        core::holder_id holder;
        core::store_instant entered{};
        core::store_instant until{};
        std::uint64_t process = 0;
    };
    struct line {
        std::map<std::uint64_t, ticket> tickets;
        std::map<core::holder_id, std::uint64_t> numbers;
        std::uint64_t holding = 0;  ///< the process that was granted the key last
        bool on_hold = false;       ///< as whoever asked for it last was told
        /// A ticket whose time is over may be there a little longer: stores have clocks of
        /// milliseconds, too.
        core::store_instant unsure_until{};
    };

    void granted(const core::acquire& asked,
                 const core::answer& given,
                 line& of,
                 std::uint64_t process);
    void queued(const core::acquire& asked,
                const core::answer& given,
                line& of,
                std::uint64_t process);
    [[nodiscard]] bool sees(const line& of) const noexcept {
        return latest_ >= blind_until_ && latest_ >= of.unsure_until;
    }
    static void leave(line& of, const core::holder_id& holder);
    static void drop_overdue(line& of, core::store_instant now);

    invariants& laws_;
    std::map<std::string, line> lines_;
    std::map<std::string, core::fence_number> fences_;  ///< the largest granted
    core::store_instant latest_{};
    core::store_instant furthest_{};
    /// After it has forgotten, it must hear of every ticket again before it can judge.
    core::store_instant blind_until_{};
};

}  // namespace dibs::simulation
