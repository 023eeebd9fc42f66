// SPDX-License-Identifier: Apache-2.0
// Several hold a key at once: the permits of a semaphore, and readers beside a writer. They try, race
// and stand in the queue, through the client; whether more hold a key than may, and whether a reader
// overtook a writer that waited, the checker and the laws of every step say.

#include "simulation/workloads/caller.hpp"
#include "simulation/workloads/workload.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

class shared_keys final : public workload {
  public:
    explicit shared_keys(scene& on) : scene_(on) {
        for (unsigned at = 0; at < on.drawn.keys; ++at) {
            const bool permits = on.chance.chance(500);
            places_.push_back(
                {"k" + std::to_string(at),
                 permits ? static_cast<std::uint32_t>(on.chance.between(2, 5)) : mode::unlimited});
        }
    }

    void employ(client_process& newcomer) override {
        for (unsigned at = 0; at < scene_.drawn.callers; ++at) {
            rest(newcomer);
        }
    }

  private:
    struct place {
        std::string key;
        std::uint32_t capacity = 1;
    };

    void rest(client_process& by) {
        const auto pause = scene_.chance.skewed(core::microseconds{50}, scene_.drawn.rest_most);
        by.self().post_in(pause, [this, &by] {
            if (!by.core()->closed()) {
                begin(by);
            }
        });
    }

    /// A reader takes one, and so does who wants a permit, or two; a writer takes all there is, and at
    /// times somebody wants a semaphore for itself.
    [[nodiscard]] mode mode_of(const place& at) {
        auto& chance = scene_.chance;
        const bool readers = at.capacity == mode::unlimited;
        if (chance.chance(readers ? 300 : 100)) {
            return exclusive;
        }
        return readers ? shared : permits(chance.chance(200) ? 2 : 1).of(at.capacity);
    }

    void begin(client_process& by) {
        auto& chance = scene_.chance;
        const auto& at = places_[chance.below(places_.size())];
        acquire_options asked;
        asked.ttl = scene_.drawn.ttl;
        asked.mode = mode_of(at);
        asked.renew = chance.chance(700);
        if (chance.chance(700)) {
            asked.wait = std::chrono::ceil<core::milliseconds>(
                chance.between(core::nanoseconds{core::milliseconds{1}}, 4 * scene_.drawn.ttl));
            asked.order = chance.chance(500) ? order::queue : order::race;
        }
        const operation call;
        acquire(by, at.key, asked, call, [this, &by](std::unique_ptr<held_lease> held) {
            if (held) {
                work(by, std::move(held));
            } else {
                rest(by);
            }
        });
    }

    void work(client_process& by, std::unique_ptr<held_lease> held) {
        static_cast<void>(held->held());
        const auto length = scene_.chance.skewed(core::microseconds{10}, scene_.drawn.work_most);
        by.self().post_in(length, [this, &by, kept = std::move(held)]() mutable {
            if (by.core()->closed()) {
                return;
            }
            static_cast<void>(kept->held());
            give_back(by, std::move(kept), [this, &by](bool) {
                if (!by.core()->closed()) {
                    rest(by);
                }
            });
        });
    }

    scene& scene_;
    std::vector<place> places_;
};

}  // namespace

std::unique_ptr<workload> make_shared_leases(scene& on) {
    return std::make_unique<shared_keys>(on);
}

}  // namespace dibs::simulation
