// SPDX-License-Identifier: Apache-2.0
// The reference store: the rules of the record on a map, behind a network, with everything that a
// server and its replica may suffer. Expiry goes by the server's calendar, as Redis does it, so a
// stepped clock moves it.

#include "simulation/stores/replicated_server.hpp"
#include "store/record/rules.hpp"
#include "store/record/ticket_line.hpp"

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
    .queues = true,
    .keeps_grants = false,
    .survives_restart = true,
    .fence_source = "counter in the record and wall clock",
    .scope = "all who reach it",
};

/// A network store does not know who is dead.
bool nobody_is_gone(std::uint64_t /*process*/) {
    return false;
}

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

class reference final : public replicated_server<record_map>, public store::parties {
  public:
    explicit reference(store_context context)
        : replicated_server(context), purges_(random_.chance(500)) {
        if (purges_) {
            forgets();
        }
    }

    consequence evict(random& chosen_by) override {
        if (!data_.empty()) {
            auto without = data_;
            without.erase(std::next(without.begin(),
                                    static_cast<std::ptrdiff_t>(chosen_by.below(without.size()))));
            become(std::move(without));
        }
        return forgotten();
    }

    [[nodiscard]] const store::capabilities& caps() const override { return reference_caps; }
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
            sync_now();
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
        auto at = after < prefix ? data_.lower_bound(prefix) : data_.upper_bound(after);
        for (; at != data_.end() && at->first.starts_with(prefix); ++at) {
            if (shown.records.size() == limit) {
                shown.more = true;
                break;
            }
            shown.records.push_back(store::describe(at->first, at->second, context));
            if (const auto line = queues_.find(at->first); line != queues_.end()) {
                line->second.describe(shown.records.back(), context, nobody_is_gone);
            }
        }
        return shown;
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
        if (refuses_now()) {
            return core::refused(random_.chance(500) ? errc::store_refused : errc::store_busy,
                                 "the server refuses to write just now");
        }
        const auto& key = core::key_of(what);
        const auto at = data_.find(key);
        core::record fresh;
        auto& kept = at == data_.end() ? fresh : at->second;
        auto& line = queues_[key];
        const auto sight = line.look(store::ticket_holder(what), context.now, nobody_is_gone);
        auto taken = store::apply(what, kept, context, sight);
        line.carry_out(taken, what, last_ticket_, context);
        taken.reply.waiters = others_wait(key, context.self) || !line.empty();
        log_.carried_out(what, taken.reply, {context.self, sent});
        if (taken.changed && at == data_.end()) {
            data_.emplace(key, std::move(fresh));
        }
        if (taken.freed) {
            wake_next(key, context.now);
        }
        return std::move(taken.reply);
    }

    /// The head of the queue alone; where there is none, everybody.
    void wake_next(const std::string& key, core::store_now now) {
        const auto* head = queues_[key].head(now, nobody_is_gone);
        for (const auto& [from, tell] : watchers_of(key)) {
            if (head == nullptr || head->process == from) {
                log_.woken(key, from, now.lease);
                tell(store::wake_by::unknown);
            }
        }
    }

    /// Queues are in memory alone: whoever waits enters anew.
    void restarted() override {
        queues_.clear();
        log_.queues_lost();
    }

    [[nodiscard]] record_map records_of(const record_map& copy) const override { return copy; }

    [[nodiscard]] bool others_wait(const std::string& key, session self) const {
        const auto& all = watchers_of(key);
        return std::any_of(
            all.begin(), all.end(), [&](const auto& one) { return one.first != self; });
    }

    void purge_one(core::store_now now) {
        auto next = data_.upper_bound(purged_up_to_);
        if (next == data_.end()) {
            purged_up_to_.clear();
            return;
        }
        purged_up_to_ = next->first;
        const auto line = queues_.find(next->first);
        const bool queued =
            line != queues_.end() && line->second.head(now, nobody_is_gone) != nullptr;
        if (store::purgeable(next->second, now) && !queued) {
            data_.erase(next);
        }
    }

    std::map<std::string, store::ticket_line> queues_;
    std::uint64_t last_ticket_ = 0;
    const bool purges_;
    std::string purged_up_to_;
};

}  // namespace

std::unique_ptr<store_model> make_reference_store(store_context context) {
    return std::make_unique<reference>(context);
}

}  // namespace dibs::simulation
