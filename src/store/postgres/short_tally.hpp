// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which entries of a batch a short statement has carried out, by the numbers that the server tells.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dibs::store::postgres {

class short_tally {
  public:
    /// `which`: the places of the entries that were sent, of which the server counts from 1.
    explicit short_tally(const std::vector<std::uint32_t>& which)
        : which_(which), done_(which.size()) {}

    /// The place of an entry that is told of for the first time; nothing: the answer makes no sense.
    [[nodiscard]] std::optional<std::uint32_t> carried_out(std::int64_t number) {
        const auto entry = static_cast<std::size_t>(number) - 1;
        if (entry >= which_.size() || done_[entry]) {
            return std::nullopt;
        }
        done_[entry] = true;
        return which_[entry];
    }

    /// The place of one that was carried out; nothing: the answer makes no sense.
    [[nodiscard]] std::optional<std::uint32_t> among_them(std::int64_t number) const {
        const auto entry = static_cast<std::size_t>(number) - 1;
        if (entry >= which_.size() || !done_[entry]) {
            return std::nullopt;
        }
        return which_[entry];
    }

    /// Those that nothing was told of.
    void rest(std::vector<std::uint32_t>& passed_over) const {
        for (std::size_t entry = 0; entry < which_.size(); ++entry) {
            if (!done_[entry]) {
                passed_over.push_back(which_[entry]);
            }
        }
    }

  private:
    const std::vector<std::uint32_t>& which_;
    std::vector<bool> done_;
};

}  // namespace dibs::store::postgres
