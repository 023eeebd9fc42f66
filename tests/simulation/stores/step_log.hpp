// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes into the history what a step did to a record, for models that apply the rules of the record
// themselves.

#include "core/record.hpp"
#include "core/verbs.hpp"
#include "simulation/history/invariants.hpp"
#include "simulation/history/recorder.hpp"

#include <cstdint>
#include <string>

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

    void clock(core::store_instant now);

  private:
    recorder& history_;
    invariants& laws_;
};

}  // namespace dibs::simulation
