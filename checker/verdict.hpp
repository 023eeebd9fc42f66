// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a check found.

#include "checker/check_id.hpp"
#include "checker/event.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dibs_checker {

/// Something that a check has to say, and the events that show it.
struct finding {
    std::string what;              ///< one sentence, for people
    std::vector<position> events;  ///< the excerpt: as few as prove it, in order
};

/// Findings of one kind: all are counted, the first ones are kept.
class finding_list {
  public:
    static constexpr std::size_t kept_max = 20;

    void add(finding what) {
        ++count_;
        if (kept_.size() < kept_max) {
            kept_.push_back(std::move(what));
        }
    }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] const std::vector<finding>& kept() const noexcept { return kept_; }

  private:
    std::uint64_t count_ = 0;
    std::vector<finding> kept_;
};

enum class outcome : std::uint8_t {
    clean,
    violated,
    undecided,  ///< the search ran out of steps: no pass
    not_judged  ///< the history holds nothing for this check, or not what it needs
};

struct verdict {
    check_id check = check_id::c1;
    std::uint64_t judged = 0;  ///< how many things were looked at, each of which might have failed
    finding_list violations;
    finding_list excused;    ///< overlaps that an unbounded fault accounts for
    finding_list undecided;  ///< keys whose search was not finished
    std::string not_judged;  ///< why, or empty

    [[nodiscard]] dibs_checker::outcome outcome() const noexcept {
        if (violations.count() > 0) {
            return dibs_checker::outcome::violated;
        }
        if (undecided.count() > 0) {
            return dibs_checker::outcome::undecided;
        }
        return judged == 0 ? dibs_checker::outcome::not_judged : dibs_checker::outcome::clean;
    }
};

}  // namespace dibs_checker
