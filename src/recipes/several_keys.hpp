// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several keys at once, all or nothing, within one time: policy over the mutex.
//
// First all are asked for at once, without waiting: the tries share a batch, so a store that executes a
// batch as one step (a transaction, a script) grants all in that step, and it is one round trip. If one
// is held, the keys before it are kept, those behind it given back, and from there on each is waited
// for in turn, in the order of their bytes, which is the same for everybody: whoever waits for a key
// holds only such as come before it, so no circle of callers can wait for each other. When one cannot
// be had, those taken before it are given back.
//
// Thread safety: none; it lives on the executor.

#include "core/environment.hpp"
#include "core/unique_function.hpp"
#include "recipes/lease_witness.hpp"
#include "recipes/mutex.hpp"

#include <cstddef>
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
    /// time-out are those of the whole. `witness` may be empty.
    static std::shared_ptr<several_keys> start(core::environment env,
                                               mutex& keys,
                                               std::vector<std::string> names,
                                               mutex_terms terms,
                                               completion done,
                                               std::shared_ptr<lease_witness> witness = {});

    several_keys(core::environment env,
                 mutex& keys,
                 std::vector<std::string> names,
                 mutex_terms terms,
                 completion done,
                 std::shared_ptr<lease_witness> witness);

    /// Ends it with errc::cancelled; nothing is held then. Does nothing when it is over.
    void cancel();

  private:
    void ask_for_all();
    void tried(std::size_t place, mutex_outcome&& ended);
    void all_were_tried();
    void ask_for_next();
    void answered(mutex_outcome&& ended);
    [[nodiscard]] bool all_held() const;
    void succeed();
    void begin_anew();
    void fail(const std::string& key, mutex_outcome&& why);
    void give_back(std::vector<lease_ptr> taken);

    const core::environment env_;
    mutex& mutex_;
    std::vector<std::string> names_;
    const mutex_terms terms_;
    completion done_;
    const std::shared_ptr<lease_witness> witness_;
    core::instant wait_until_{};
    core::instant end_{};            ///< of all of it
    std::vector<lease_ptr> leases_;  ///< of the first keys, without a gap
    std::vector<mutex_outcome> tries_;
    std::vector<mutex::call_ptr> calls_;  ///< under way, each at its key's place
    std::size_t under_way_ = 0;
    bool cancelled_ = false;
};

}  // namespace dibs::recipes
