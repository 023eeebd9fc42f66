// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts by number, so that events are of one size and compare quickly.

#include "checker/event.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
        const auto sum = sum_of(text);
        auto at = static_cast<std::size_t>(sum) & mask_;
        for (; places_[at].id != nobody; at = (at + 1) & mask_) {
            if (places_[at].sum == sum && texts_[places_[at].id] == text) {
                return places_[at].id;
            }
        }
        const auto id = static_cast<std::uint32_t>(texts_.size());
        texts_.emplace_back(text);
        places_[at] = {sum, id};
        if (2 * texts_.size() > places_.size()) {
            grow();
        }
        return id;
    }

    [[nodiscard]] const std::string& text(text_id id) const {
        return texts_.at(static_cast<std::size_t>(id));
    }

  private:
    static constexpr std::uint32_t nobody = UINT32_MAX;
    struct place {
        std::uint32_t sum = 0;
        std::uint32_t id = nobody;
    };

    /// Most texts are names of a few letters: eight of them at a time.
    static std::uint32_t sum_of(std::string_view text) noexcept {
        std::uint64_t sum = text.size();
        while (!text.empty()) {
            std::uint64_t part = 0;
            const auto size = std::min(text.size(), sizeof part);
            std::memcpy(&part, text.data(), size);
            sum = (sum ^ part) * 0x9E3779B97F4A7C15U;
            sum ^= sum >> 32U;
            text.remove_prefix(size);
        }
        return static_cast<std::uint32_t>(sum);
    }

    void grow() {
        mask_ = 2 * places_.size() - 1;
        std::vector<place> larger(mask_ + 1);
        for (const auto& one : places_) {
            auto at = static_cast<std::size_t>(one.sum) & mask_;
            while (one.id != nobody && larger[at].id != nobody) {
                at = (at + 1) & mask_;
            }
            if (one.id != nobody) {
                larger[at] = one;
            }
        }
        places_ = std::move(larger);
    }

    std::deque<std::string> texts_;
    std::size_t mask_ = 255;
    std::vector<place> places_ = std::vector<place>(mask_ + 1);
};

}  // namespace dibs_checker
