// SPDX-License-Identifier: Apache-2.0
#include "client/recipes/slot_plan.hpp"

#include "client/operator/listing.hpp"
#include "recipes/once/slot_record.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace dibs::detail {

core::wall_instant wall_now() noexcept {
    return core::wall_instant{std::chrono::duration_cast<core::microseconds>(
        std::chrono::system_clock::now().time_since_epoch())};
}

std::chrono::milliseconds usual_keep(std::chrono::milliseconds slot_length,
                                     unsigned retries,
                                     std::chrono::milliseconds backoff,
                                     std::chrono::milliseconds ttl) noexcept {
    using std::chrono::milliseconds;
    constexpr milliseconds a_week = std::chrono::hours{7 * 24};
    constexpr milliseconds longest_backoff = std::chrono::hours{1};
    const auto retrying =
        retries * (std::max(std::min(backoff, as_good_as_forever), longest_backoff) +
                   std::min(ttl, as_good_as_forever));
    return std::min(std::max({2 * slot_length, a_week, slot_length + retrying}),
                    as_good_as_forever);
}

core::microseconds usual_late(const recipes::schedule& plan) noexcept {
    return std::min<core::microseconds>(std::chrono::minutes{10}, plan.most_early());
}

recipes::due_slots due_slots(client& through,
                             const std::string& job,
                             const slot_plan& plan,
                             std::error_code& error,
                             std::string& message) {
    error.clear();
    std::vector<recipes::known_slot> known;
    if (plan.due.policy != recipes::missed_slots::last) {
        const auto note = [&](const record& one) {
            bool newer = false;
            const auto kept =
                one.kept ? recipes::slot_record_of(one.kept->value, newer) : std::nullopt;
            if (!kept || kept->job != job) {
                return;
            }
            if (auto found =
                    recipes::known_slot_of(*kept, !one.holders.empty(), plan.at_most_once)) {
                known.push_back(std::move(*found));
            }
        };
        if (!for_each_record(through, recipes::key_of_slot(job, ""), note, error, message)) {
            return {};
        }
    }
    return recipes::find_due(plan.when, plan.now, wall_now(), known, plan.due);
}

}  // namespace dibs::detail
