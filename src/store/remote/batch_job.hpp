// SPDX-License-Identifier: Apache-2.0
#pragma once
// Entries that are answered together, by however many requests.

#include "core/batch.hpp"
#include "core/time.hpp"
#include "store/store.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dibs::store::remote {

/// Thread safety: none; whoever leads the connections.
struct batch_job {
    batch_job(std::vector<core::entry> all, batch_completion when_answered);

    void settle(std::uint32_t entry, core::answer given);
    /// The same for so many whose answers are in `replies`.
    void settled(std::size_t count) noexcept { left -= count; }
    /// Nothing, while some are left.
    void tell_if_all(std::vector<core::task>& letters);

    /// Of those of them that have the earliest.
    [[nodiscard]] core::instant deadline_of(const std::vector<std::uint32_t>& which) const noexcept;

    const std::vector<core::entry> entries;
    answers replies;
    batch_completion done;
    std::size_t left;  ///< entries without an answer
};

}  // namespace dibs::store::remote
