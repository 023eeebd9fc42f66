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
#include <optional>

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

/// What a verb must know of the queue of its key: live tickets alone.
struct queue_sight {
    std::optional<core::ticket> head;  ///< the oldest one
    std::optional<core::ticket> mine;  ///< that of the verb's holder
};

/// Whose ticket a verb may touch; empty: nobody's.
[[nodiscard]] core::holder_id ticket_holder(const core::verb& what) noexcept;

/// What becomes of the holder's ticket.
enum class queue_step : std::uint8_t {
    none,
    enter,    ///< a new one, at the tail
    prolong,  ///< its time starts anew
    leave,
};

struct step {
    core::answer reply;
    bool changed = false;  ///< the record must be written back
    bool freed = false;    ///< somebody who waits may have it now
    queue_step ticket = queue_step::none;
};

/// Applies one verb. `grant::dead` must be set as the store knows it. Does not look at
/// `answer::waiters`, `ticket` and `position`: the store fills them in.
[[nodiscard]] step apply(const core::verb& what,
                         core::record& record,
                         const rules_context& context,
                         const queue_sight& queue = {});

/// How one in the queue is shown to people.
[[nodiscard]] core::queued_info describe(const core::ticket& one, const rules_context& context);

/// Shows a record to people; expired results, ended grants and holds are left out. The store fills
/// in `waiters`, `queued` and `queue`.
[[nodiscard]] core::record_info describe(const std::string& key,
                                         const core::record& record,
                                         const rules_context& context);

/// Whether a record may be forgotten: its fences keep rising by the clock without it.
[[nodiscard]] bool purgeable(const core::record& record, core::store_now now) noexcept;

}  // namespace dibs::store
