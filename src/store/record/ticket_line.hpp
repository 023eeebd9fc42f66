// SPDX-License-Identifier: Apache-2.0
#pragma once
// The queue of one key, for stores that keep it in this process: tickets in the order of arrival.
// A step costs O(log n), besides tickets whose time is over, each of which is passed over once, and
// telling a position.
//
// Thread safety: none; the store guards it.

#include "core/holder_id.hpp"
#include "core/record.hpp"
#include "core/time.hpp"
#include "core/verbs.hpp"
#include "store/record/rules.hpp"

#include <cstdint>
#include <functional>
#include <map>

namespace dibs::store {

class ticket_line {
  public:
    /// Whether the process of this number is surely gone.
    using gone_query = std::function<bool(std::uint64_t process)>;

    [[nodiscard]] bool empty() const noexcept { return tickets_.empty(); }

    /// The oldest live ticket, or null. Those before it are dropped.
    [[nodiscard]] const core::ticket* head(core::store_now now, const gone_query& gone);

    [[nodiscard]] queue_sight look(const core::holder_id& holder,
                                   core::store_now now,
                                   const gone_query& gone);

    /// Carries out what the rules have decided about the ticket of the verb's holder. `numbers` is
    /// the last number given. Fills in the ticket of the answer.
    void carry_out(step& taken,
                   const core::verb& what,
                   std::uint64_t& numbers,
                   const rules_context& context);

    /// Fills in the queue of a listing.
    void describe(core::record_info& shown,
                  const rules_context& context,
                  const gone_query& gone) const;

    /// Drops the tickets of a process; tells whether there were any.
    bool drop_those_of(std::uint64_t process);

  private:
    void drop(std::uint64_t number, const core::holder_id& holder);

    std::map<std::uint64_t, core::ticket> tickets_;
    std::map<core::holder_id, std::uint64_t> numbers_;
};

}  // namespace dibs::store
