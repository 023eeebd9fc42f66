// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stands behind a public observation.

#include "client/client_core.hpp"
#include "recipes/observation.hpp"

#include <dibs/election.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace dibs::detail {

class observing : public std::enable_shared_from_this<observing> {
  public:
    observing(std::shared_ptr<client_core> core, observer told);

    static observation start(std::shared_ptr<client_core> core,
                             std::string key,
                             std::chrono::milliseconds every,
                             observer told);

    /// Waits for a call under way, unless this is called inside of it.
    void stop();

    [[nodiscard]] std::optional<leader_change> current() const;

  private:
    void seen(const recipes::leader_seen& what);

    const std::shared_ptr<client_core> core_;
    const observer told_;
    std::shared_ptr<recipes::observation> recipe_;  ///< on the executor

    /// Held while the observer is called, so recursive: it may destroy its observation.
    mutable std::recursive_mutex calling_;
    bool stopped_ = false;
    std::optional<leader_change> last_;
};

}  // namespace dibs::detail
