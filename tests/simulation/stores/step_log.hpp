// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes into the history what a step did to a record, for models that apply the rules of the record
// themselves.

#include "core/record.hpp"
#include "core/verbs.hpp"
#include "simulation/history/invariants.hpp"
#include "simulation/history/queue_order.hpp"
#include "simulation/history/recorder.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace dibs::simulation {

class step_log {
  public:
    step_log(recorder& history, invariants& laws) : history_(history), laws_(laws), order_(laws) {}

    /// Where a verb came from.
    struct origin {
        std::uint64_t process = 0;
        sim_time sent{};
    };
    /// A verb was carried out and answered so.
    void carried_out(const core::verb& what, const core::answer& given, origin from);

    /// The store knows from now on that the process is gone: what it was granted attached has ended.
    void process_ended(std::uint64_t process, core::store_instant now);
    /// All grants have: the store's clock begins anew.
    void all_ended(core::store_instant now);

    /// The store goes on from another copy of its records.
    void replaced(const std::map<std::string, core::record>& before,
                  const std::map<std::string, core::record>& after,
                  core::store_now now);

    /// A process was woken on purpose: a key may be free.
    void woken(const std::string& key, std::uint64_t process, core::store_instant now);

    /// Holds may be over sooner or later than was said.
    void forget_holds(core::store_instant now);

    void queues_lost() { order_.forget(); }

    void clock(core::store_instant now);

  private:
    void compare(const std::string& key,
                 const core::record& before,
                 const core::record& after,
                 core::store_now now);
    /// A copy that has taken over has another expiry of a grant.
    void copied(const std::string& key, const core::grant& one, core::store_now now);
    [[nodiscard]] bool is_ghost(const core::verb& what, const core::answer& given) const;

    /// A grant that has not ended by itself.
    struct open_grant {
        std::string key;
        core::fence_number fence = 0;
        core::store_instant expires{};
        std::uint64_t process = 0;
        bool attached = true;
        bool shared = false;
    };
    void tell_of_result(const core::verb& what, const core::answer& given);
    void ended(const core::holder_id& holder, core::store_instant now, std::string_view why);
    void revoked(const core::revoke& asked, core::store_instant now);
    void blocked(const std::string& key, core::store_instant now, core::microseconds duration);
    void adopted_ghost(const core::renew& asked, const core::answer& given, origin from);
    void note(const core::holder_id& holder, open_grant is);

    recorder& history_;
    invariants& laws_;
    queue_order order_;
    std::map<core::holder_id, open_grant> open_;
    std::set<core::holder_id> over_;  ///< whose grants have ended
    std::set<std::string> holds_;     ///< keys that an operator has set on hold
    /// Of those, whose grants an older copy brought back, with the first fence.
    std::map<core::holder_id, core::fence_number> ghosts_;
};

}  // namespace dibs::simulation
