// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a history that no order explains as short as it gets.
//
// Source: A. Zeller, R. Hildebrandt, "Simplifying and isolating failure-inducing input" (IEEE
// Trans. Software Eng. 28(2), 2002): take away halves, quarters, ... single parts, as long as it
// still fails.
//
// A part may be taken away only if a history without it is linearizable whenever the whole is;
// otherwise the rest would fail for a reason that the whole does not have. Which parts those are,
// the caller knows.

#include "checker/search/search.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dibs_checker {

template <class Model>
class shrinker {
  public:
    shrinker(std::vector<operation<Model>> ops, std::uint64_t steps_max)
        : ops_(std::move(ops)), kept_(ops_.size(), true), steps_left_(steps_max) {}

    [[nodiscard]] bool kept(std::size_t op) const { return kept_[op]; }
    [[nodiscard]] const std::vector<operation<Model>>& ops() const noexcept { return ops_; }

    /// Forgets what began after the return that no order gets past. What returned later may have
    /// had its effect or not.
    void cut_after(std::size_t stuck_at) {
        const auto end = ops_[stuck_at].returned;
        const auto before = ops_;
        for (std::size_t op = 0; op < ops_.size(); ++op) {
            if (ops_[op].call > end) {
                kept_[op] = false;
            } else if (ops_[op].returned > end) {
                ops_[op].returned = no_return;
            }
        }
        if (!fails()) {
            ops_ = before;
            kept_.assign(ops_.size(), true);
        }
    }

    /// Takes away what can be spared of these parts.
    void take_away(const std::vector<std::vector<std::size_t>>& parts) {
        std::vector<std::size_t> left(parts.size());
        for (std::size_t index = 0; index < left.size(); ++index) {
            left[index] = index;
        }
        for (std::size_t size = left.size(); size > 0;) {
            bool spared = false;
            for (std::size_t start = 0; start < left.size();) {
                const auto end = std::min(start + size, left.size());
                if (spare(parts, left, start, end)) {
                    left.erase(left.begin() + static_cast<std::ptrdiff_t>(start),
                               left.begin() + static_cast<std::ptrdiff_t>(end));
                    spared = true;
                } else {
                    start = end;
                }
            }
            // Single parts until none can be spared.
            size = size > 1 ? size / 2 : (spared ? 1 : 0);
        }
    }

  private:
    bool spare(const std::vector<std::vector<std::size_t>>& parts,
               const std::vector<std::size_t>& left,
               std::size_t start,
               std::size_t end) {
        const auto before = kept_;
        for (auto index = start; index < end; ++index) {
            for (const auto op : parts[left[index]]) {
                kept_[op] = false;
            }
        }
        if (kept_ != before && fails()) {
            return true;
        }
        kept_ = before;
        return false;
    }

    bool fails() {
        if (steps_left_ == 0) {
            return false;
        }
        std::vector<operation<Model>> rest;
        for (std::size_t op = 0; op < ops_.size(); ++op) {
            if (kept_[op]) {
                rest.push_back(ops_[op]);
            }
        }
        const auto report = linearize<Model>(rest, steps_left_);
        // Building the search costs something too.
        steps_left_ -= std::min(steps_left_, report.steps + rest.size());
        return report.result == search_result::impossible;
    }

    std::vector<operation<Model>> ops_;
    std::vector<bool> kept_;
    std::uint64_t steps_left_;
};

}  // namespace dibs_checker
