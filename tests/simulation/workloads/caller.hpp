// SPDX-License-Identifier: Apache-2.0
#pragma once
// A caller in a client process: acquires, works, releases, over and over, and writes all of it into
// the history as the public interface tells it.

#include "simulation/process/client_process.hpp"
#include "simulation/run/scene.hpp"

#include <dibs/async.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace dibs::simulation {

/// What a caller holds and what it may ask about it.
class held_lease {
  public:
    held_lease(client_process& in, dibs::lease lease);

    [[nodiscard]] const std::string& key() const noexcept { return lease_.key(); }
    [[nodiscard]] core::fence_number fence() const noexcept { return lease_.last_fence(); }
    /// Asks the handle, as a user does before each thing that it does under the lease.
    [[nodiscard]] bool held();
    [[nodiscard]] dibs::lease& handle() noexcept { return lease_; }

  private:
    void note_lost(const core::lease_state& which);

    client_process& process_;
    dibs::lease lease_;
    std::shared_ptr<client_process::loss_listener> on_end_;  ///< once it was told to stop
    std::optional<std::stop_callback<std::function<void()>>> on_lost_;
};

/// Begins the line of a call.
recorder::line call_line(client_process& in,
                         op_word op,
                         std::string_view phase,
                         std::uint64_t call,
                         std::string_view key);

/// How a call ended that was not granted or did not release: `fail` when it surely did nothing.
[[nodiscard]] std::string_view phase_of(std::error_code error);

/// Begins the line of a release.
[[nodiscard]] std::uint64_t note_release(client_process& in, const core::lease_state& lease);
void note_released(client_process& in,
                   std::uint64_t call,
                   const std::string& key,
                   const recipes::release_reply& told);

/// Writes down the good end of an `acquire` or `adopt`.
void note_granted(client_process& in,
                  op_word op,
                  std::uint64_t call,
                  core::nanoseconds ttl,
                  const core::lease_state& granted,
                  mode how = exclusive);

using lease_told = std::function<void(std::unique_ptr<held_lease>)>;

/// Acquires; `told` gets nothing when there is no lease. Runs on the process. The call can be
/// cancelled.
void acquire(client_process& in,
             const std::string& key,
             const acquire_options& options,
             const operation& call,
             lease_told told);

/// Gives it back; `told` hears whether it was released.
void give_back(client_process& in,
               std::unique_ptr<held_lease> held,
               std::function<void(bool released)> told);

/// How a hand-over ended: with the text, or with the lease as it was.
using text_told = std::function<void(std::string text, std::unique_ptr<held_lease> kept)>;

/// Makes it into text.
void hand_over(client_process& in, std::unique_ptr<held_lease> held, text_told told);

/// Takes over what another process made into text; `told` gets nothing when there is no lease.
void adopt(client_process& in,
           const std::string& key,
           const std::string& text,
           const acquire_options& options,
           lease_told told);

}  // namespace dibs::simulation
