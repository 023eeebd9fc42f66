// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two laws that are cheap enough to be checked at every step of every run: grants of a key are
// disjoint by the store's clock, and fences rise. The checker judges everything else, and these
// again, from the history.

#include "core/fence.hpp"
#include "core/holder_id.hpp"
#include "core/time.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dibs::simulation {

class invariants {
  public:
    void granted(const std::string& key,
                 const core::holder_id& holder,
                 core::fence_block fences,
                 core::store_instant now,
                 core::store_instant expires);
    void granted_a_share() noexcept { ++grants_; }
    void prolonged(const std::string& key,
                   const core::holder_id& before,
                   const core::holder_id& after,
                   core::fence_block fences,
                   core::store_instant now,
                   core::store_instant expires);
    void ended(const std::string& key, const core::holder_id& holder);

    /// Told of each result, and each mark, that the store takes. Empty: nobody asks.
    std::function<void(const std::string& key, const std::string& value)> on_result;

    /// Another law, which no fault excuses, was broken.
    void breached(std::string text) { break_law(false, std::move(text)); }

    /// Two were at work at once that should take turns.
    void overlapped(std::string text) {
        break_law(overlaps_excused_ || beliefs_excused_, std::move(text));
    }

    /// From now on the store may have forgotten grants, or its clock was stepped.
    void excuse_overlaps() noexcept { overlaps_excused_ = true; }
    void excuse_fences() noexcept { fences_excused_ = true; }
    /// Two may have been given one fence.
    [[nodiscard]] bool fences_excused() const noexcept { return fences_excused_; }
    /// From now on somebody may believe in a lease that an operator has ended, or that a clock beyond all bounds prolongs.
    void excuse_beliefs() noexcept { beliefs_excused_ = true; }

    [[nodiscard]] const std::vector<std::string>& broken() const noexcept { return broken_; }
    [[nodiscard]] std::uint64_t excused() const noexcept { return excused_; }
    [[nodiscard]] std::uint64_t grants() const noexcept { return grants_; }

  private:
    struct known {
        bool held = false;
        core::holder_id holder;
        core::store_instant expires{};
        core::fence_number last = 0;
    };
    void break_law(bool excused, std::string text);

    std::map<std::string, known> keys_;
    std::vector<std::string> broken_;
    std::uint64_t excused_ = 0;
    std::uint64_t grants_ = 0;
    bool overlaps_excused_ = false;
    bool fences_excused_ = false;
    bool beliefs_excused_ = false;
};

}  // namespace dibs::simulation
