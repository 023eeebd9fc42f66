// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a job remembers of its planned slots, and what it forgets. Not for slots that were named by hand: those have no
// order.
//
// No clock decides it alone. A host whose clock is weeks ahead would find every outcome past its time, and once its clock
// is right again the slots of today would run a second time. So an outcome is kept until the slots themselves say that
// its time has passed, and what was forgotten is known:
//
//   1. A slot is forgotten when `keep` lies between its beginning and the beginning of the slot just run, and three later
//      slots bear witness to that: one host's dream is not enough.
//   2. Before that, its beginning is noted among the stretches of time of which slots were
//      forgotten. A slot in one of them is never granted when nothing is kept of it: it may have
//      been run. Stretches that lie no further apart than `keep` are one.
//
// So whatever the clocks of the hosts are, no slot runs again because it was forgotten; and a host
// that dreamt of next year stands in nobody's way today.
//
// Thread safety: none; it lives on the executor.

#include "core/environment.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace dibs::recipes {

/// From the beginning of the first slot of it that was forgotten to that of the last; milliseconds
/// since 1970.
struct forgotten_stretch {
    std::int64_t from_ms = 0;
    std::int64_t to_ms = 0;
};

/// Of a job and one of its schedules, in order.
using forgotten_stretches = std::vector<forgotten_stretch>;

/// Notes one more, and makes one of those that are at most `gap_ms` apart. Of too many, those that
/// are nearest to each other become one.
void note_forgotten(forgotten_stretches& known, forgotten_stretch more, std::int64_t gap_ms);

/// Whether a slot of that name may have been forgotten, by what is kept under key_of_horizon.
/// False when that cannot be read.
[[nodiscard]] bool may_be_forgotten(std::string_view horizon,
                                    const std::string& slot,
                                    std::int64_t begin_ms);

class slot_memory {
  public:
    /// The name of the slot that a moment (milliseconds since 1970) lies in.
    using calendar = std::function<std::string(std::int64_t)>;
    using verdict_told = core::unique_function<void(std::error_code, std::string detail, bool)>;

    slot_memory(core::environment env, store::store& through);
    ~slot_memory();
    slot_memory(const slot_memory&) = delete;
    slot_memory& operator=(const slot_memory&) = delete;

    /// Whether a slot of which nothing is kept may have been run all the same.
    void beyond(const std::string& job, std::string slot, std::int64_t begin_ms, verdict_told done);

    /// Forgets some of what the slot that begins at `begin_ms` shows to be old enough. Best effort; `done` is called once,
    /// never inside this call.
    void forget(std::string job,
                std::int64_t begin_ms,
                core::milliseconds keep,
                calendar name_at,
                core::task done);

  private:
    struct pass;
    using pass_ptr = std::shared_ptr<pass>;
    void gather(const pass_ptr& which, std::string after);
    void weigh(const pass_ptr& which);
    void ask_witnesses(const pass_ptr& which, std::string after);
    void note_stretch(const pass_ptr& which);
    void free_all(const pass_ptr& which);
    void end(const pass_ptr& which);
    void send(std::vector<core::verb> steps, store::batch_completion done);
    [[nodiscard]] core::acquire asked_for(std::string key);

    core::environment env_;
    store::store& store_;
};

}  // namespace dibs::recipes
