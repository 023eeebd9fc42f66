// SPDX-License-Identifier: Apache-2.0
#pragma once
// Draws what a process may ask of a few keys, for tests that ask a real server and its model the
// same. Times and fences are those of a clock that the test moves.

#include "core/verbs.hpp"
#include "simulation/world/random.hpp"
#include "support/verbs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

class random_verbs {
  public:
    random_verbs(std::uint64_t seed, std::vector<std::string> keys, std::int64_t begin_us)
        : random_(seed), keys_(std::move(keys)), begin_us_(begin_us) {
        asked_at_.fill(begin_us);
    }

    static constexpr std::uint64_t holders = 4;

    [[nodiscard]] random& chance() { return random_; }
    [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }
    [[nodiscard]] const std::string& key() { return keys_[random_.below(keys_.size())]; }
    [[nodiscard]] static core::holder_id holder(std::uint64_t number) {
        return testing::holder_of(number);
    }
    [[nodiscard]] core::holder_id holder() { return holder(random_.below(holders)); }

    /// How long nothing is asked.
    [[nodiscard]] core::microseconds pause() {
        return std::chrono::duration_cast<core::microseconds>(
            random_.chance(20) ? random_.between(std::chrono::hours{1}, std::chrono::hours{3})
                               : random_.skewed(core::nanoseconds{0}, std::chrono::seconds{4}));
    }
    [[nodiscard]] core::microseconds some_ttl() {
        return std::chrono::duration_cast<core::microseconds>(
            random_.between(core::milliseconds{50}, std::chrono::seconds{5}));
    }

    [[nodiscard]] std::vector<core::entry> batch(std::int64_t now_us) {
        asked_at_[random_.below(asked_at_.size())] = now_us;
        std::vector<core::entry> entries;
        const auto count = 1 + random_.below(random_.chance(300) ? 6 : 1);
        for (std::uint64_t at = 0; at < count; ++at) {
            entries.push_back({verb(), core::instant::max()});
        }
        return entries;
    }

  private:
    core::microseconds some_time() {
        return random_.chance(50) ? core::result_to_keep::forever
                                  : std::chrono::duration_cast<core::microseconds>(random_.skewed(
                                        core::nanoseconds{0}, std::chrono::seconds{20}));
    }
    core::result_to_keep result() {
        const auto fresh = some_time();
        return {random_.chance(200) ? "" : "a result \r\n dibs1 " + std::to_string(random_.next()),
                fresh,
                std::max(fresh, some_time())};
    }
    /// Grants take theirs from the clock, so it may be one that was given.
    core::fence_number fence() {
        return static_cast<core::fence_number>(asked_at_[random_.below(asked_at_.size())]);
    }

    core::verb verb() {
        switch (random_.below(10)) {
            case 0:
            case 1:
            case 2:
            case 3:
                return acquire();
            case 4:
            case 5:
                return renew();
            case 6:
            case 7:
                return release();
            case 8:
                return core::revoke{key(), fence()};
            default:
                return core::block{
                    key(), random_.chance(400) ? core::microseconds{} : some_time(), "maintenance"};
        }
    }
    core::verb acquire() {
        core::acquire asked;
        asked.key = key();
        asked.holder = holder();
        asked.ttl = some_ttl();
        asked.fences = random_.chance(300) ? 64 : 1;
        if (random_.chance(100)) {
            asked.floor = fence();
        }
        if (random_.chance(300)) {
            asked.part = random_.chance(900)
                             ? core::share{static_cast<std::uint32_t>(1 + random_.below(2)), 3}
                             : core::share{1, core::share::unlimited};
        }
        if (random_.chance(300)) {
            asked.attached = core::attachment::detached;
        }
        asked.traced = random_.chance(400);
        if (random_.chance(150)) {
            asked.mark = result();
        }
        if (random_.chance(400)) {
            asked.queue = std::chrono::duration_cast<core::microseconds>(
                random_.between(core::microseconds{1}, std::chrono::seconds{6}));
        }
        if (random_.chance(150)) {
            asked.seen = fence();
        }
        if (random_.chance(300)) {
            asked.not_after = core::store_instant{
                core::microseconds{begin_us_ + random_.between(0, 7'200'000'000)}};
        }
        return asked;
    }
    core::verb renew() {
        core::renew asked;
        asked.key = key();
        asked.holder = holder();
        asked.ttl = some_ttl();
        asked.fences = random_.chance(300) ? 64 : 0;
        if (random_.chance(200)) {
            asked.adopt = core::renew::change{
                holder(),
                random_.chance(500) ? core::attachment::attached : core::attachment::detached};
        }
        return asked;
    }
    core::verb release() {
        core::release asked;
        asked.key = key();
        asked.holder = holder();
        if (random_.chance(400)) {
            asked.result = result();
            asked.late = random_.chance(500);
        }
        return asked;
    }

    random random_;
    const std::vector<std::string> keys_;
    const std::int64_t begin_us_;
    std::array<std::int64_t, 3> asked_at_{};
};

}  // namespace dibs::simulation
