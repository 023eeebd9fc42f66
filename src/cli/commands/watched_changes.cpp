// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/watched_changes.hpp"

#include <algorithm>
#include <utility>

namespace dibs::cli {

namespace {

using instant = std::chrono::system_clock::time_point;

bool has(const std::vector<dibs::holder>& holders, std::uint64_t fence) {
    return std::any_of(holders.begin(), holders.end(), [&](const dibs::holder& who) {
        return who.fence == fence;
    });
}

class comparison {
  public:
    comparison(instant now, instant looked, std::vector<change>& told)
        : now_(now), looked_(looked), told_(told) {}

    void compare(const dibs::record& before, const dibs::record& after, bool first) {
        for (const auto& who : before.holders) {
            if (!has(after.holders, who.fence)) {
                // Nothing renewed it for longer than it had left. In microseconds: what never ends by time has more
                // of them left than there are nanoseconds to count.
                const bool in_time =
                    std::chrono::floor<std::chrono::microseconds>(now_ - looked_) < who.remaining;
                tell(in_time ? "released" : "expired", after.key, who.fence, who);
            }
        }
        const bool still_held =
            std::any_of(after.holders.begin(), after.holders.end(), [&](const auto& who) {
                return who.fence_last == after.fence;
            });
        if (!first && after.fence > before.fence && !still_held) {
            // It came and went between two looks.
            tell("granted", after.key, after.fence, std::nullopt);
            tell("released", after.key, after.fence, std::nullopt);
        }
        for (const auto& who : after.holders) {
            if (!has(before.holders, who.fence)) {
                tell("granted", after.key, who.fence, who);
            }
        }
        compare_holds(before, after);
    }

  private:
    void compare_holds(const dibs::record& before, const dibs::record& after) {
        const bool was = before.blocked_for.count() > 0;
        const bool is = after.blocked_for.count() > 0;
        const bool replaced = was && is && before.blocked_reason != after.blocked_reason;
        if (was && (!is || replaced)) {
            tell("hold-lifted", after.key, 0, std::nullopt);
        }
        if (is && (!was || replaced)) {
            tell("hold-set", after.key, 0, std::nullopt, after.blocked_reason);
        }
    }

    void tell(std::string_view what,
              const std::string& key,
              std::uint64_t fence,
              std::optional<dibs::holder> who,
              std::string reason = {}) {
        told_.push_back({now_, what, key, fence, std::move(who), std::move(reason)});
    }

    instant now_;
    instant looked_;
    std::vector<change>& told_;
};

}  // namespace

std::vector<change> watched_changes::look(std::vector<dibs::record> records, instant now) {
    std::vector<change> told;
    comparison look(now, looked_, told);
    std::map<std::string, dibs::record, std::less<>> after;
    for (auto& record : records) {
        auto key = record.key;
        after.emplace_hint(after.end(), std::move(key), std::move(record));
    }
    for (const auto& [key, record] : before_) {
        if (!after.contains(key)) {
            // The store forgets what is free.
            dibs::record forgotten;
            forgotten.key = key;
            forgotten.fence = record.fence;
            look.compare(record, forgotten, first_);
        }
    }
    for (const auto& [key, record] : after) {
        const auto known = before_.find(key);
        look.compare(known == before_.end() ? dibs::record{} : known->second, record, first_);
    }
    before_ = std::move(after);
    looked_ = now;
    first_ = false;
    return told;
}

}  // namespace dibs::cli
