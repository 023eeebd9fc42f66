// SPDX-License-Identifier: Apache-2.0
#include "simulation/world/host.hpp"

#include <algorithm>

namespace dibs::simulation {

sim_time host::when(core::instant due) const noexcept {
    constexpr std::int64_t million = 1'000'000;
    constexpr core::nanoseconds far = std::chrono::hours{1};
    const auto wanted = std::min(due.time_since_epoch() - local_, passed() + far).count();
    if (wanted <= 0) {
        return world_.now();
    }
    const auto reads = [&](std::int64_t since) { return since + since * ppm_ / million; };
    auto since = wanted - wanted * ppm_ / (million + ppm_);
    while (reads(since) < wanted) {
        ++since;
    }
    while (since > 0 && reads(since - 1) >= wanted) {
        --since;
    }
    return std::max(anchored_ + core::nanoseconds{since}, world_.now());
}

template <typename Change>
void host::change(Change apply) {
    for (const auto& one : watchers_) {
        one.before();
    }
    const auto since = passed();
    local_ += since;
    wall_ += since;
    anchored_ = world_.now();
    apply();
    for (const auto& one : watchers_) {
        one.after();
    }
}

void host::set_rate(std::int64_t ppm) {
    change([&] { ppm_ = ppm; });
}

// Two sleeps may overlap. What is counted is a little less than passes here, so that a clock that stands still meanwhile
// never goes back.
void host::sleep(core::nanoseconds length) {
    const auto begin = std::max(world_.now(), asleep_until_);
    asleep_until_ = std::max(asleep_until_, world_.now() + length);
    const core::nanoseconds slept = asleep_until_ - begin;
    const auto here = slept + core::nanoseconds{slept.count() * ppm_ / 1'000'000};
    asleep_ += std::max(core::nanoseconds::zero(), here - core::microseconds{1});
}

void host::step_wall(core::nanoseconds by) {
    change([&] { wall_ += by; });
}

void host::reboot(core::nanoseconds up_for) {
    change([&] { local_ = up_for; });
}

}  // namespace dibs::simulation
