// SPDX-License-Identifier: Apache-2.0
#pragma once
// Observing an election: who holds a key, looked at again and again, and told when that changes. The term of a leader is the
// fence of its lease.
//
// The terms that are told rise: an answer that is older than what is known, as a replica may give it, is passed over. Terms
// that began and ended between two looks are not told; nobody who only looks can know of them, and fences do not count terms.
//
// Thread safety: none; it lives on the executor.

#include "core/environment.hpp"
#include "store/store.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace dibs::recipes {

struct leader_seen {
    std::optional<core::holder_info> who;  ///< empty: nobody leads
    core::fence_number term = 0;           ///< of who; or the last one known. 0: there was none
};

class observation {
  public:
    /// Called on the executor, and not after stop().
    using told = std::function<void(const leader_seen&)>;

    /// Requires: it outlives its calls under way; so it is shared.
    static std::shared_ptr<observation> start(core::environment env,
                                              store::store& through,
                                              std::string key,
                                              core::nanoseconds every,
                                              told tell);
    void stop();

    observation(core::environment env,
                store::store& through,
                std::string key,
                core::nanoseconds every,
                told tell);
    observation(const observation&) = delete;
    observation& operator=(const observation&) = delete;

  private:
    void look();
    void found(const core::page& page);

    core::environment env_;
    store::store& store_;
    const std::string key_;
    const core::nanoseconds every_;
    told tell_;
    std::weak_ptr<observation> me_;
    core::timer alarm_;
    std::optional<leader_seen> last_;
    bool stopped_ = false;
};

}  // namespace dibs::recipes
