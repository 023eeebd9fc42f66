// SPDX-License-Identifier: Apache-2.0
#include "simulation/workloads/target.hpp"

#include <utility>

namespace dibs::simulation {

// The request arrives also when its sender is gone; the answer finds nobody then.
template <typename Act>
void target::visit(client_process& by, Act act, told then) {
    constexpr auto least = core::nanoseconds{20'000};
    const auto delay = [this, least] {
        const bool slow = !scene_.healed() && random_.chance(30);
        const core::nanoseconds most = core::microseconds{200};
        return slow ? random_.skewed(least, 3 * scene_.drawn.ttl) : random_.between(least, most);
    };
    auto& world = scene_.world;
    world.in(
        delay(),
        [this,
         &world,
         &runner = by.self(),
         life = by.self().life(),
         act = std::move(act),
         back = delay(),
         then = std::move(then)]() mutable {
            auto given = act();
            world.in(
                back, [&runner, life, given = std::move(given), then = std::move(then)]() mutable {
                    if (*life) {
                        runner.post(
                            [given = std::move(given), then = std::move(then)] { then(given); });
                    }
                });
        });
}

void target::claim(client_process& by, core::fence_number fence, told then) {
    visit(
        by,
        [this, fence] {
            answer given;
            given.stale = guarded_ && fence < seen_;
            seen_ = std::max(seen_, fence);
            return given;
        },
        std::move(then));
}

void target::read(client_process& by, told then) {
    visit(
        by, [this] { return answer{.stale = false, .value = value_}; }, std::move(then));
}

void target::write(client_process& by,
                   core::fence_number fence,
                   std::vector<std::int64_t> value,
                   told then) {
    visit(
        by,
        [this, fence, value = std::move(value)]() mutable {
            answer given;
            given.stale = guarded_ && fence < seen_;
            if (!given.stale) {
                seen_ = std::max(seen_, fence);
                value_ = std::move(value);
            }
            return given;
        },
        std::move(then));
}

}  // namespace dibs::simulation
