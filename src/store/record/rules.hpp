// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rules of the record (store/store.hpp), for stores that decide in this process: memory and
// SQLite, and the simulator's reference model. Stores that decide in a server say the same in its
// language.
//
// Pure: no clock, no store, no allocation of identity. A store reads a record, applies a verb at
// one moment of its clock, writes the record back when it changed, all of it in one atomic step.

#include "core/record.hpp"
#include "core/verbs.hpp"

#include <cstdint>

namespace dibs::store {

/// Who is behind the process numbers of grants.
class parties {
  public:
    virtual ~parties() = default;
    [[nodiscard]] virtual core::party who(std::uint64_t process) const = 0;
};

struct rules_context {
    core::store_now now;
    std::uint64_t self = 0;  ///< the process number that grants of this step belong to
    const parties& who;
};

struct step {
    core::answer reply;
    bool changed = false;  ///< the record must be written back
    bool freed = false;    ///< somebody who waits may have it now
};

/// Applies one verb. `grant::dead` must be set as the store knows it. Does not look at
/// `answer::waiters`: the store fills it in.
[[nodiscard]] step apply(const core::verb& what,
                         core::record& record,
                         const rules_context& context);

/// Shows a record to people; expired results, ended grants and holds are left out. The store fills
/// in `waiters`.
[[nodiscard]] core::record_info describe(const std::string& key,
                                         const core::record& record,
                                         const rules_context& context);

/// Whether a record may be forgotten: its fences keep rising by the clock without it.
[[nodiscard]] bool purgeable(const core::record& record, core::store_now now) noexcept;

}  // namespace dibs::store
