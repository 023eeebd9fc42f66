// SPDX-License-Identifier: Apache-2.0
// The PostgreSQL store: its own requests, which batch, split and try again, before a server that
// carries out their statements as the real one does (stores/postgres/backend.hpp). What the real
// store adds around them, the connections and their thread, is a remote_store here.

#include "simulation/stores/postgres/backend.hpp"
#include "simulation/stores/postgres/rows.hpp"
#include "simulation/stores/replicated_server.hpp"
#include "simulation/stores/told_effects.hpp"
#include "store/postgres/postgres_store.hpp"
#include "store/postgres/requests.hpp"
#include "store/remote/party_text.hpp"

#include <dibs/error.hpp>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

namespace pg = store::postgres;

/// What goes wrong with a statement.
enum class mishap {
    none,
    disk_full,
    read_only,
    cancelled,
    deadlock,
    session_ends_before,  ///< its commit
    session_ends_after,
    no_answer,        ///< the connection breaks
    standby_is_away,  ///< for a while: the waits for it are cancelled
    rows_are_locked,  ///< by others, some of which soon let go
    nobody_is_woken,  ///< sessions that listened have just ended
};

constexpr std::array mishaps{mishap::disk_full,
                             mishap::read_only,
                             mishap::cancelled,
                             mishap::deadlock,
                             mishap::session_ends_before,
                             mishap::session_ends_after,
                             mishap::no_answer,
                             mishap::standby_is_away,
                             mishap::rows_are_locked,
                             mishap::nobody_is_woken};

/// After so many statements nobody waits for a batch any more.
constexpr unsigned statements_max = 50;

class postgres_model final : public replicated_server<postgres::tables> {
  public:
    explicit postgres_model(store_context context)
        : replicated_server(context),
          is_synchronous_(random_.chance(400)),
          is_pooled_(random_.chance(200)),
          purges_(random_.chance(300)),
          longest_ttl_(random_.chance(500) ? std::chrono::ceil<core::microseconds>(context.ttl)
                                           : core::microseconds{0}),
          caps_(store::postgres_capabilities(longest_ttl_, !is_pooled_)),
          effects_(context.laws) {
        if (purges_) {
            forgets();
        }
    }

    // --- to the simulator ------------------------------------------------------------------------

    [[nodiscard]] bool wakes() const override { return !is_pooled_; }

    consequence refuse(unsigned per_mille) override {
        if (per_mille == 0) {
            standby_is_back_ = {};
        }
        return replicated_server::refuse(per_mille);
    }

    /// What was committed is there again, but for releases that did not wait for the disk; who listened
    /// may be forgotten.
    consequence restart(core::nanoseconds down_for) override {
        forget_releases();
        if (random_.chance(500)) {
            data_.waiters.clear();
        }
        return replicated_server::restart(down_for);
    }
    consequence lose_power(core::nanoseconds down_for) override { return restart(down_for); }

    /// A synchronous standby has all that was acknowledged, another one lags behind. A strict store
    /// grants nothing then until what was forgotten is over. Whoever is promoted begins a timeline.
    consequence fail_over() override {
        ++timeline_;
        if (!is_synchronous_) {
            const auto fallen = replicated_server::fail_over();
            data_.waiters.clear();
            return is_strict() ? fences_alone(*fallen) : fallen;
        }
        consequence fallen = "";
        if (auto before = std::exchange(before_unacknowledged_, nullptr)) {
            become(std::move(*before));
            fallen = fences_alone(forgotten());
        } else {
            forget_releases();
        }
        data_.waiters.clear();
        replicated_server::restart(random_.between(core::milliseconds{1}, core::milliseconds{500}));
        return fallen;
    }

    // --- to the network --------------------------------------------------------------------------

    [[nodiscard]] const store::capabilities& caps() const override { return caps_; }

    [[nodiscard]] store::answers execute(session from,
                                         sim_time sent,
                                         const std::vector<core::entry>& batch) override {
        origin_ = {from, sent};
        std::optional<store::answers> given;
        ask(pg::batch_request::make(
            caller(from), batch, [&](store::answers told) { given = std::move(told); }));
        effects_.told(batch, *given);
        if (purges_) {
            purge();
        }
        return std::move(*given);
    }

    [[nodiscard]] core::page list(session from,
                                  const std::string& prefix,
                                  const std::string& after,
                                  std::size_t limit) override {
        core::page shown;
        ask(pg::make_listing(
            caller(from),
            {prefix, after, limit, [&](core::page told) { shown = std::move(told); }},
            core::instant::max()));
        return shown;
    }

    void watch(session from, const std::string& key, waker wake) override {
        replicated_server::watch(from, key, std::move(wake));
        const auto pid = ears_.emplace(from, pids_ + 1).first->second;
        pids_ = std::max(pids_, pid);
        model_.watch(key, std::to_string(from), pid, data_, surroundings({}));
    }
    void unwatch(session from, const std::string& key) override {
        replicated_server::unwatch(from, key);
        postgres::backend::unwatch(key, std::to_string(from), data_);
    }
    void leave(session from) override {
        replicated_server::leave(from);
        ears_.erase(from);
    }

  private:
    /// The server's end of a connection.
    class wire final : public pg::carrier {
      public:
        explicit wire(postgres_model& to) : to_(to) {}
        bool send(pg::statement which, const pg::parameters& with) override {
            told = to_.carry_out(which, with);
            return true;
        }
        bool send_text(const std::string& /*sql*/) override { return false; }
        [[nodiscard]] bool is_set_up() const noexcept override { return !to_.is_pooled_; }

        pg::reply told;

      private:
        postgres_model& to_;
    };

    [[nodiscard]] bool is_strict() const { return longest_ttl_ > core::microseconds{0}; }
    /// Nobody is let in beside another one; but a clock that was set back gives lower fences.
    [[nodiscard]] static consequence fences_alone(std::string_view fallen) {
        return fallen.find("C3") == std::string_view::npos ? "" : R"("C3")";
    }

    [[nodiscard]] const std::shared_ptr<const pg::caller>& caller(session of) {
        auto& known = callers_[of];
        if (!known) {
            core::party told;
            told.host = "simulated";
            told.pid = static_cast<std::int64_t>(of);
            pg::caller self;
            self.process = std::to_string(of);
            self.who = store::remote::text_of(told);
            self.where = "simulated:store";
            self.longest_ttl = longest_ttl_;
            known = std::make_shared<const pg::caller>(std::move(self));
        }
        return known;
    }

    /// Asks until it is answered. No time passes: a row that is locked is let go, or given up.
    void ask(std::unique_ptr<pg::request> first) {
        std::vector<core::task> letters;
        std::deque<std::unique_ptr<pg::request>> waiting;
        waiting.push_back(std::move(first));
        auto now = core::instant{};
        for (unsigned asked = 1; !waiting.empty(); ++asked) {
            auto one = std::move(waiting.front());
            waiting.pop_front();
            now = std::max(now, asked > statements_max ? core::instant::max() : one->not_before());
            std::vector<std::unique_ptr<pg::request>> next;
            wire over{*this};
            if (one->send(over, {letters, next, now}) == pg::request::sending::sent) {
                if (over.told.result) {
                    one->answered(over.told, {letters, next, now});
                } else {
                    one->lost({errc::store_unreachable, "the connection broke"},
                              {letters, next, now});
                }
            }
            for (auto& further : next) {
                waiting.push_back(std::move(further));
            }
        }
        for (auto& letter : letters) {
            letter();
        }
    }

    [[nodiscard]] pg::reply carry_out(pg::statement which, const pg::parameters& with) {
        const auto wrong = refuses_now() ? mishaps.at(random_.below(mishaps.size())) : mishap::none;
        switch (wrong) {
            case mishap::disk_full:
                return postgres::refused("53100", "could not extend file");
            case mishap::read_only:
                return postgres::refused("25006", "cannot execute in a read-only transaction");
            case mishap::cancelled:
                return postgres::refused("57014", "canceling statement due to statement timeout");
            case mishap::deadlock:
                return postgres::refused("40P01", "deadlock detected");
            case mishap::session_ends_before:
                return ended_session();
            default:
                break;
        }
        if (wrong == mishap::standby_is_away) {
            standby_is_back_ = world_.now() + random_.between(core::milliseconds{100}, away_most);
        }
        // Committed here, and perhaps nowhere else.
        const bool unacknowledged = is_synchronous_ && world_.now() < standby_is_back_;
        if (unacknowledged && !before_unacknowledged_) {
            before_unacknowledged_ = std::make_unique<postgres::tables>(data_);
        }
        const bool may_release =
            which == pg::statement::release_one || which == pg::statement::execute;
        auto before =
            before_releases_ || !may_release ? nullptr : std::make_unique<postgres::tables>(data_);
        auto told = model_.run(which, with, data_, surroundings(wrong));
        if (model_.waited_for_the_disk()) {
            before_releases_.reset();
        } else if (before) {
            before_releases_ = std::move(before);
        }
        tell_woken();
        if (wrong == mishap::session_ends_after || wrong == mishap::no_answer) {
            return wrong == mishap::no_answer ? pg::reply{} : ended_session();
        }
        if (unacknowledged && model_.waited_for_the_disk()) {
            told.warning = "canceling wait for synchronous replication due to user request";
        } else if (!unacknowledged && model_.waited_for_the_disk() &&
                   which != pg::statement::list && ::PQntuples(told.result.get()) > 0) {
            // What comes after it in the log takes it along.
            before_unacknowledged_.reset();
        }
        return told;
    }

    [[nodiscard]] static pg::reply ended_session() {
        return postgres::refused(
            "57P01", "terminating connection due to administrator command", true);
    }

    [[nodiscard]] postgres::backend::surroundings surroundings(mishap wrong) {
        postgres::backend::surroundings around;
        around.now_us = clock().wall.time_since_epoch().count();
        around.timeline = timeline_;
        around.listens = [this](std::int64_t pid) {
            return std::any_of(
                ears_.begin(), ears_.end(), [&](const auto& one) { return one.second == pid; });
        };
        if (wrong == mishap::rows_are_locked) {
            around.locked =
                [this, drawn = std::map<std::string, bool>{}](const std::string& key) mutable {
                    const auto [at, is_new] = drawn.emplace(key, false);
                    if (is_new) {
                        at->second = random_.chance(600);
                    }
                    return at->second;
                };
            around.is_let_go = [this](const std::string&) { return random_.chance(600); };
        }
        around.carried_out = [this](const core::verb& what, const core::answer& given) {
            effects_.carried_out(what, given);
            log_.carried_out(what, given, origin_);
        };
        around.notified = [this, wrong](const postgres::backend::note& what) {
            if (wrong != mishap::nobody_is_woken) {
                notify(what);
            }
        };
        return around;
    }

    /// They may be in the log on the disk by now, or not.
    void forget_releases() {
        if (auto before = std::exchange(before_releases_, nullptr); before && random_.chance(500)) {
            before->waiters = data_.waiters;
            become(std::move(*before));
        }
    }

    void notify(const postgres::backend::note& what) {
        const auto& all = watchers_of(what.key);
        const auto at = all.find(std::stoull(what.process));
        if (at == all.end()) {
            return;
        }
        if (what.as_head) {
            woken_[what.key] = at->first;
        }
        at->second(what.whose);
    }
    /// A later step may have taken back the ticket of one who was woken by an earlier one.
    void tell_woken() {
        for (const auto& [key, process] : std::exchange(woken_, {})) {
            log_.woken(key, process, clock().lease);
        }
    }

    void purge() {
        pg::parameters with;
        with.text(purged_up_to_);
        with.number(1);
        const auto told = model_.run(pg::statement::purge, with, data_, surroundings({}));
        purged_up_to_ = pg::row{*told.result, 0}.bytes(0);
    }

    [[nodiscard]] std::map<std::string, core::record> records_of(
        const postgres::tables& copy) const override {
        std::map<std::string, core::record> found;
        for (const auto& [key, row] : copy.leases) {
            found.emplace(key, row.kept);
        }
        return found;
    }

    void restarted() override { ears_.clear(); }

    static constexpr core::nanoseconds away_most = std::chrono::seconds{2};

    const bool is_synchronous_;  ///< synchronous_standby_names is set
    const bool is_pooled_;       ///< a pooler lends its sessions, and passes no wake-ups on
    const bool purges_;
    const core::microseconds longest_ttl_;  ///< 0: not strict
    const store::capabilities caps_;
    postgres::backend model_;
    std::uint32_t timeline_ = 1;
    /// The standby's, while something after it is committed that nobody was told of.
    std::unique_ptr<postgres::tables> before_unacknowledged_;
    sim_time standby_is_back_{};
    /// The server's, while nothing but such releases were committed since.
    std::unique_ptr<postgres::tables> before_releases_;
    std::map<session, std::int64_t> ears_;  ///< the server process by which it listens
    std::int64_t pids_ = 0;
    std::map<session, std::shared_ptr<const pg::caller>> callers_;
    std::map<std::string, session> woken_;  ///< by the statement under way, as the head of a queue
    step_log::origin origin_;
    told_effects effects_;
    std::string purged_up_to_;
};

}  // namespace

std::unique_ptr<store_model> make_postgres_store(store_context context) {
    return std::make_unique<postgres_model>(context);
}

}  // namespace dibs::simulation
