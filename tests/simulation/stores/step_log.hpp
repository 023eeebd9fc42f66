// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes into the history what a step did to a record, for models that apply the rules of the record
// themselves.

#include "core/record.hpp"
#include "core/verbs.hpp"
#include "simulation/history/invariants.hpp"
#include "simulation/history/recorder.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace dibs::simulation {

class step_log {
  public:
    step_log(recorder& history, invariants& laws) : history_(history), laws_(laws) {}

    /// A verb was carried out and answered so. `ended` is the fence of the grant that a release or a
    /// revocation ended, 0 when it ended none.
    void carried_out(const core::verb& what, const core::answer& given, core::fence_number ended);

    /// A grant ended without its holder: `why` is `died` or `lost`.
    void ended(const std::string& key,
               const core::grant& gone,
               core::store_instant now,
               std::string_view why);

    /// The store goes on from another copy of its records.
    void replaced(const std::map<std::string, core::record>& before,
                  const std::map<std::string, core::record>& after,
                  core::store_now now);

    void clock(core::store_instant now);

  private:
    void compare(const std::string& key,
                 const core::record& before,
                 const core::record& after,
                 core::store_now now);
    [[nodiscard]] bool is_ghost(const core::verb& what) const;

    recorder& history_;
    invariants& laws_;
    std::set<core::holder_id> over_;    ///< whose grants have ended
    std::set<core::holder_id> ghosts_;  ///< of those, whose grants an older copy brought back
};

}  // namespace dibs::simulation
