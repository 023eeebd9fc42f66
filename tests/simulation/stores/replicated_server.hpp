// SPDX-License-Identifier: Apache-2.0
#pragma once
// What befalls a server with a disk and a replica, whatever its data are. `Data` is a copy of all of
// them: of the server itself, of the replica, which lags behind, and of what is surely on the disk.
// Expiry goes by the server's calendar, so a stepped clock moves it.

#include "simulation/network/remote_store.hpp"
#include "simulation/network/server.hpp"
#include "simulation/stores/step_log.hpp"
#include "simulation/stores/store_model.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace dibs::simulation {

template <typename Data>
class replicated_server : public store_model, public server {
  public:
    // --- to the simulator ------------------------------------------------------------------------

    [[nodiscard]] opened_store open(process& by, const weather& conditions) override {
        auto made = std::make_unique<remote_store>(by, *this, conditions, random_.split());
        auto* raw = made.get();
        return {std::move(made), [raw] { raw->cut(); }, [raw] { raw->opened(); }};
    }

    [[nodiscard]] core::store_now clock() const override {
        const auto wall = machine_.wall();
        return {core::store_instant{wall.time_since_epoch()}, wall};
    }

    consequence restart(core::nanoseconds down_for) override {
        down_until_ = world_.now() + down_for;
        watchers_.clear();
        restarted();
        return "";
    }

    consequence lose_power(core::nanoseconds down_for) override {
        become(Data{synced_});
        restart(down_for);
        return forgotten();
    }

    consequence fail_over() override {
        become(std::exchange(other_copy_, data_));
        // The former primary may be out of reach for a while, and be asked to take over again.
        follows_from_ = world_.now() + random_.skewed(lag_, core::nanoseconds{10 * lag_});
        restart(random_.between(core::milliseconds{1}, core::milliseconds{500}));
        return forgotten();
    }

    consequence step_clock(core::nanoseconds by) override {
        machine_.step_wall(by);
        stepped_back_ = stepped_back_ || by < core::nanoseconds::zero();
        return stepped_back_ && forgets_ ? R"("C1","C2","C3")" : R"("C1","C2")";
    }

    consequence set_clock_rate(std::int64_t ppm) override {
        machine_.set_rate(ppm);
        return "";
    }

    consequence refuse(unsigned per_mille) override {
        refused_per_mille_ = per_mille;
        return "";
    }

    // --- to the network --------------------------------------------------------------------------

    [[nodiscard]] bool up() const override { return world_.now() >= down_until_; }

    void watch(session from, const std::string& key, waker wake) override {
        watchers_[key][from] = std::move(wake);
    }

    void unwatch(session from, const std::string& key) override {
        const auto at = watchers_.find(key);
        if (at != watchers_.end()) {
            at->second.erase(from);
        }
    }

    void leave(session from) override {
        for (auto& [key, all] : watchers_) {
            all.erase(from);
        }
    }

  protected:
    explicit replicated_server(store_context context)
        : world_(context.in),
          random_(context.chosen_by),
          machine_(context.in,
                   "server",
                   std::chrono::hours{100},
                   std::chrono::hours{24 * 365 * 56}),
          log_(context.history, context.laws),
          lag_(random_.between(core::milliseconds{5}, core::milliseconds{1500})) {
        machine_.on_change(
            {[this] { log_.clock(clock().lease); }, [this] { log_.clock(clock().lease); }});
        replicate();
        sync();
    }

    /// The records of a copy, for the history.
    [[nodiscard]] virtual std::map<std::string, core::record> records_of(
        const Data& copy) const = 0;
    /// It has begun anew, perhaps from another copy.
    virtual void restarted() {}

    /// Everything that it has is on the disk.
    void sync_now() { synced_ = data_; }

    void become(Data then) {
        log_.replaced(records_of(data_), records_of(then), clock());
        data_ = std::move(then);
    }

    /// Fences rise as long as the clock is not behind the last grant that was forgotten.
    [[nodiscard]] std::string_view forgotten() {
        forgets_ = true;
        return stepped_back_ ? R"("C1","C2","C3")" : R"("C1","C2")";
    }
    /// It forgets without any fault, too.
    void forgets() noexcept { forgets_ = true; }

    /// `by`: whose step it is, where the server tells.
    void wake(const std::string& key, std::optional<session> by = std::nullopt) {
        const auto at = watchers_.find(key);
        if (at != watchers_.end()) {
            for (const auto& [from, tell] : at->second) {
                tell(!by           ? store::wake_by::unknown
                     : *by == from ? store::wake_by::own_process
                                   : store::wake_by::other_process);
            }
        }
    }
    [[nodiscard]] const std::map<session, waker>& watchers_of(const std::string& key) const {
        static const std::map<session, waker> none;
        const auto at = watchers_.find(key);
        return at == watchers_.end() ? none : at->second;
    }

    [[nodiscard]] bool refuses_now() { return random_.chance(refused_per_mille_); }

    world& world_;
    random random_;
    host machine_;
    step_log log_;
    Data data_;

  private:
    /// What the server has not written to its disk for longer than this survives a power loss.
    static constexpr core::nanoseconds sync_every = std::chrono::seconds{1};

    void replicate() {
        if (world_.now() >= follows_from_) {
            other_copy_ = data_;
        }
        world_.in(lag_, [this] { replicate(); });
    }

    void sync() {
        synced_ = data_;
        world_.in(sync_every, [this] { sync(); });
    }

    const core::nanoseconds lag_;
    bool forgets_ = false;
    bool stepped_back_ = false;
    Data other_copy_;
    Data synced_;
    sim_time follows_from_{};  ///< the other copy follows this one again
    sim_time down_until_{};
    unsigned refused_per_mille_ = 0;
    std::map<std::string, std::map<session, waker>> watchers_;
};

}  // namespace dibs::simulation
