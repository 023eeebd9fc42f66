// SPDX-License-Identifier: Apache-2.0
#pragma once
// What callers have put down for whoever leads the connections.

#include "store/remote/urgency.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <vector>

namespace dibs::store::remote {

/// Requests by their urgency, and wishes to listen to something or to stop.
template <typename Request, typename Change>
struct inbox {
    std::array<std::vector<std::unique_ptr<Request>>, urgencies> requests;
    std::vector<Change> changes;

    void add(urgency how, std::unique_ptr<Request> what) {
        requests[static_cast<std::size_t>(how)].push_back(std::move(what));
    }
    /// Behind what is in the queues, which are one for each urgency.
    template <typename Queues>
    void pour_requests(Queues& queues) {
        for (std::size_t at = 0; at < requests.size(); ++at) {
            std::move(requests[at].begin(), requests[at].end(), std::back_inserter(queues[at]));
            requests[at].clear();
        }
    }
    [[nodiscard]] bool empty() const noexcept {
        return changes.empty() &&
               std::all_of(
                   requests.begin(), requests.end(), [](const auto& some) { return some.empty(); });
    }
};

}  // namespace dibs::store::remote
