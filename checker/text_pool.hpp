// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts by number, so that events are of one size and compare quickly.

#include "checker/event.hpp"

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace dibs_checker {

/// Thread safety: none.
class text_pool {
  public:
    /// Id 0 is the empty text.
    text_pool() { (void)id_of(""); }
    text_pool(const text_pool&) = delete;
    text_pool& operator=(const text_pool&) = delete;
    text_pool(text_pool&&) = default;
    text_pool& operator=(text_pool&&) = default;

    text_id id_of(std::string_view text) {
        const auto found = ids_.find(text);
        if (found != ids_.end()) {
            return found->second;
        }
        const auto id = static_cast<text_id>(texts_.size());
        // A deque does not move its elements, so views of them stay valid.
        ids_.emplace(texts_.emplace_back(text), id);
        return id;
    }

    [[nodiscard]] const std::string& text(text_id id) const {
        return texts_.at(static_cast<std::size_t>(id));
    }

  private:
    std::deque<std::string> texts_;
    std::unordered_map<std::string_view, text_id> ids_;
};

}  // namespace dibs_checker
