// SPDX-License-Identifier: Apache-2.0
// The reference store: the rules of the record on a map, behind a network, with everything that a
// server and its replica may suffer. Expiry goes by the server's calendar, as Redis does it, so a
// stepped clock moves it.

#include "simulation/network/remote_store.hpp"
#include "simulation/network/server.hpp"
#include "simulation/stores/step_log.hpp"
#include "simulation/stores/store_model.hpp"
#include "store/record/rules.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

namespace dibs::simulation {

namespace {

constexpr store::capabilities reference_caps{
    .name = "reference",
    .ttl_min = core::milliseconds{50},
    .ttl_max = std::chrono::hours{24},
    .wakes = true,
    .notices_death = false,
    .shared = true,
    .keeps_grants = false,
    .survives_restart = true,
    .fence_source = "counter in the record and wall clock",
    .scope = "all who reach it",
};

/// What the server has not written to its disk for longer than this survives a power loss.
constexpr core::nanoseconds sync_every = std::chrono::seconds{1};

using record_map = std::map<std::string, core::record>;

bool must_survive(const core::verb& what) {
    if (const auto* asked = std::get_if<core::acquire>(&what)) {
        return asked->mark.has_value();
    }
    if (const auto* given = std::get_if<core::release>(&what)) {
        return given->result.has_value();
    }
    return std::holds_alternative<core::block>(what);
}

class reference final : public store_model, public server, public store::parties {
  public:
    explicit reference(store_context context)
        : world_(context.in),
          random_(context.chosen_by),
          machine_(context.in,
                   "server",
                   std::chrono::hours{100},
                   std::chrono::hours{24 * 365 * 56}),
          log_(context.history, context.laws),
          lag_(random_.between(core::milliseconds{5}, core::milliseconds{1500})),
          purges_(random_.chance(500)),
          forgets_(purges_) {
        machine_.on_change(
            {[this] { log_.clock(clock().lease); }, [this] { log_.clock(clock().lease); }});
        replicate();
        sync();
    }

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
        return "";
    }

    consequence lose_power(core::nanoseconds down_for) override {
        become(synced_);
        restart(down_for);
        return forgotten();
    }

    consequence fail_over() override {
        auto taking_over = std::exchange(other_copy_, records_);
        become(std::move(taking_over));
        copied_ = false;
        restart(random_.between(core::milliseconds{1}, core::milliseconds{500}));
        return forgotten();
    }

    consequence evict(random& chosen_by) override {
        if (!records_.empty()) {
            auto without = records_;
            without.erase(std::next(without.begin(),
                                    static_cast<std::ptrdiff_t>(chosen_by.below(without.size()))));
            become(std::move(without));
        }
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

    [[nodiscard]] const store::capabilities& caps() const override { return reference_caps; }
    [[nodiscard]] bool up() const override { return world_.now() >= down_until_; }

    [[nodiscard]] store::answers execute(session from,
                                         sim_time sent,
                                         const std::vector<core::entry>& batch) override {
        store::answers given(batch.size());
        const store::rules_context context{clock(), from, *this};
        for (const bool acquires : {false, true}) {
            for (std::size_t at = 0; at < batch.size(); ++at) {
                if (std::holds_alternative<core::acquire>(batch[at].what) == acquires) {
                    given[at] = carry_out(batch[at].what, context, sent);
                }
            }
        }
        if (std::any_of(batch.begin(), batch.end(), [](const auto& one) {
                return must_survive(one.what);
            })) {
            synced_ = records_;
        }
        if (purges_) {
            purge_one(context.now);
        }
        return given;
    }

    [[nodiscard]] core::page list(session from,
                                  const std::string& prefix,
                                  const std::string& after,
                                  std::size_t limit) override {
        const store::rules_context context{clock(), from, *this};
        core::page shown;
        auto at = after < prefix ? records_.lower_bound(prefix) : records_.upper_bound(after);
        for (; at != records_.end() && at->first.starts_with(prefix); ++at) {
            if (shown.records.size() == limit) {
                shown.more = true;
                break;
            }
            shown.records.push_back(store::describe(at->first, at->second, context));
        }
        return shown;
    }

    void watch(session from, const std::string& key, std::function<void()> wake) override {
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

    [[nodiscard]] core::party who(std::uint64_t number) const override {
        core::party told;
        told.host = "simulated";
        told.pid = static_cast<std::int64_t>(number);
        return told;
    }

  private:
    core::answer carry_out(const core::verb& what,
                           const store::rules_context& context,
                           sim_time sent) {
        if (random_.chance(refused_per_mille_)) {
            return core::refused(random_.chance(500) ? errc::store_refused : errc::store_busy,
                                 "the server refuses to write just now");
        }
        const auto& key = core::key_of(what);
        const auto at = records_.find(key);
        core::record fresh;
        auto& kept = at == records_.end() ? fresh : at->second;
        auto taken = store::apply(what, kept, context);
        taken.reply.waiters = others_wait(key, context.self);
        log_.carried_out(what, taken.reply, {context.self, sent});
        if (taken.changed && at == records_.end()) {
            records_.emplace(key, std::move(fresh));
        }
        if (taken.freed) {
            wake(key);
        }
        return std::move(taken.reply);
    }

    [[nodiscard]] bool others_wait(const std::string& key, session self) const {
        const auto at = watchers_.find(key);
        return at != watchers_.end() &&
               std::any_of(at->second.begin(), at->second.end(), [&](const auto& one) {
                   return one.first != self;
               });
    }

    void wake(const std::string& key) {
        const auto at = watchers_.find(key);
        if (at != watchers_.end()) {
            for (const auto& [from, tell] : at->second) {
                tell();
            }
        }
    }

    /// Fences rise as long as the clock is not behind the last grant that was forgotten.
    [[nodiscard]] std::string_view forgotten() {
        forgets_ = true;
        return stepped_back_ ? R"("C1","C2","C3")" : R"("C1","C2")";
    }

    void become(record_map then) {
        log_.replaced(records_, then, clock());
        records_ = std::move(then);
    }

    void replicate() {
        if (copied_) {
            other_copy_ = records_;
        }
        copied_ = true;
        world_.in(lag_, [this] { replicate(); });
    }

    void sync() {
        synced_ = records_;
        world_.in(sync_every, [this] { sync(); });
    }

    void purge_one(core::store_now now) {
        auto next = records_.upper_bound(purged_up_to_);
        if (next == records_.end()) {
            purged_up_to_.clear();
            return;
        }
        purged_up_to_ = next->first;
        if (store::purgeable(next->second, now)) {
            records_.erase(next);
        }
    }

    world& world_;
    random random_;
    host machine_;
    step_log log_;
    const core::nanoseconds lag_;
    const bool purges_;
    bool forgets_;
    bool stepped_back_ = false;
    record_map records_;
    record_map other_copy_;
    record_map synced_;
    bool copied_ = true;  ///< the other copy follows this one
    sim_time down_until_{};
    unsigned refused_per_mille_ = 0;
    std::map<std::string, std::map<session, std::function<void()>>> watchers_;
    std::string purged_up_to_;
};

}  // namespace

std::unique_ptr<store_model> make_reference_store(store_context context) {
    return std::make_unique<reference>(context);
}

}  // namespace dibs::simulation
