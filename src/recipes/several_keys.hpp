// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several keys at once, all or nothing, within one time: policy over the mutex. They are taken one
// after the other in the order of their bytes, which is the same for everybody: whoever waits for a
// key holds only such as come before it, so no circle of callers can wait for each other. When one
// cannot be had, those taken before it are given back.
//
// Thread safety: none; it lives on the executor.

#include "core/environment.hpp"
#include "core/unique_function.hpp"
#include "recipes/mutex.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dibs::recipes {

struct several_outcome {
    std::vector<lease_ptr> leases;  ///< in the order of the keys' bytes; empty: none is held
    std::string key;                ///< without leases: the one that could not be had
    mutex_outcome last;             ///< what stood in its way
};

class several_keys : public std::enable_shared_from_this<several_keys> {
  public:
    using completion = core::unique_function<void(several_outcome&&)>;

    /// Requires: keys and terms were checked; there is at least one key, and none is there twice.
    /// `done` is called once, never inside this call. `terms` holds for each key; its wait and its
    /// time-out are those of the whole.
    static std::shared_ptr<several_keys> start(core::environment env,
                                               mutex& keys,
                                               std::vector<std::string> names,
                                               mutex_terms terms,
                                               completion done);

    several_keys(core::environment env,
                 mutex& keys,
                 std::vector<std::string> names,
                 mutex_terms terms,
                 completion done);

    /// Ends it with errc::cancelled; nothing is held then. Does nothing when it is over.
    void cancel();

  private:
    void ask_for_next();
    void answered(mutex_outcome&& ended);
    [[nodiscard]] bool all_held() const;
    void begin_anew();
    void fail(const std::string& key, mutex_outcome&& why);
    void give_all_back();

    const core::environment env_;
    mutex& mutex_;
    std::vector<std::string> names_;
    const mutex_terms terms_;
    completion done_;
    core::instant wait_until_{};
    core::instant end_{};  ///< of all of it
    std::vector<lease_ptr> leases_;
    mutex::call_ptr call_;  ///< under way
};

}  // namespace dibs::recipes
