// SPDX-License-Identifier: Apache-2.0
// The SQLite store: the real database with its real SQL, on a disk in memory. What the real store
// adds around it, a thread that works and one that listens, are events here.

#include "simulation/stores/memory_disk.hpp"
#include "simulation/stores/step_log.hpp"
#include "simulation/stores/store_model.hpp"
#include "store/record/watch_book.hpp"
#include "store/sqlite/database.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

namespace dibs::simulation {

namespace {

namespace sqlite = store::sqlite;

constexpr store::capabilities sqlite_caps{
    .name = "sqlite",
    .ttl_min = core::milliseconds{50},
    .ttl_max = std::chrono::hours{24 * 30},
    .wakes = true,
    .notices_death = true,
    .shared = true,
    .queues = true,
    .keeps_grants = true,
    .survives_restart = true,
    .fence_source = "counter in the row and wall clock",
    .scope = "this host, this user",
};

/// A transaction, and a message to another process of the host.
constexpr core::nanoseconds work_least = core::microseconds{20};
constexpr core::nanoseconds work_most = core::microseconds{400};

/// Pages. Each look for a page in the log goes through its versions since the last fold, of which a
/// run would see a handful otherwise; so it also dies and loses power around one more often.
constexpr int fold_log_after = 100;

class host_store;

/// What the store objects of the host share.
class sqlite_model final : public store_model {
  public:
    explicit sqlite_model(store_context context);

    [[nodiscard]] opened_store open(process& by, const weather& conditions) override;
    void died(const process& gone) override;
    [[nodiscard]] core::store_now clock() const override {
        return {core::store_instant{
                    std::chrono::floor<core::microseconds>(machine_.now().time_since_epoch())},
                machine_.wall()};
    }
    /// The host goes down with all that runs on it: whoever calls this has killed them.
    consequence lose_power(core::nanoseconds down_for) override;
    consequence step_clock(core::nanoseconds by) override {
        machine_.step_wall(by);
        stepped_back_ = stepped_back_ || by < core::nanoseconds::zero();
        return stepped_back_ ? R"("C3")" : "";
    }
    bool kill_within_step(process& which,
                          std::uint64_t writes,
                          std::function<void()> then) override;

    // --- for the store objects -------------------------------------------------------------------

    world& in;
    recorder& history;
    random chance;
    step_log log;

    [[nodiscard]] memory_disk& disk() noexcept { return disk_; }
    [[nodiscard]] const std::string& boot() const noexcept { return boot_; }
    [[nodiscard]] bool is_gone(const sqlite::process_id& id) const { return !there_.contains(id); }
    /// False: nobody of that id is there.
    bool wake(const sqlite::process_id& id, const std::string& key);
    void note_woken(const std::string& key, const sqlite::process_id& id);
    void enter(const sqlite::process_id& id, host_store& here) { there_[id] = &here; }
    void leave(const sqlite::process_id& id);

  private:
    [[nodiscard]] host_store* store_of(const process& which) const;

    host& machine_;
    memory_disk disk_;
    std::string boot_ = "boot-1";
    unsigned boots_ = 1;
    bool stepped_back_ = false;
    std::map<sqlite::process_id, host_store*> there_;
};

/// The store object of one process.
class host_store final : public store::store, private sqlite::surroundings {
  public:
    host_store(sqlite_model& model, process& in) : model_(model), process_(in) {
        id_ = sqlite::process_id::draw(in.env().random);
        model_.enter(id_, *this);
        model_.disk().used_by(process_.number());
        sqlite::database_options options;
        options.path = "/dibs.db";
        options.vfs = memory_disk::name;
        options.boot_id = model_.boot();
        options.fold_log_after = fold_log_after;
        options.self = id_;
        options.who.host = "simulated";
        options.who.pid = static_cast<std::int64_t>(in.number());
        sqlite::failure trouble;
        database_ = sqlite::database::open(std::move(options), *this, trouble);
        if (trouble) {
            throw std::runtime_error{"the simulated store cannot be opened: " + trouble.detail};
        }
    }

    ~host_store() override { close(); }

    [[nodiscard]] const dibs::store::capabilities& caps() const noexcept override {
        return sqlite_caps;
    }
    [[nodiscard]] const std::string& location() const noexcept override { return location_; }

    void execute(dibs::store::lane which,
                 std::vector<core::entry> batch,
                 dibs::store::batch_completion done) override {
        if (closed_) {
            process_.post([done = std::move(done), size = batch.size()]() mutable {
                done(dibs::store::answers(size, core::refused(errc::closed, "closed")));
            });
            return;
        }
        auto& job = batches_.emplace_back();
        job.which = which;
        job.entries = std::move(batch);
        job.done = std::move(done);
        job.sent = model_.in.now();
        work_soon();
    }

    dibs::store::watch_id watch(std::string_view key,
                                dibs::store::watch_completion ready,
                                dibs::store::wake_callback wake) override {
        if (closed_) {
            process_.post([ready = std::move(ready)]() mutable { ready(errc::closed); });
            return 0;
        }
        const auto made = book_.add(key, std::move(ready), std::move(wake));
        if (made.ready_now) {
            post([this, id = made.id] { book_.ready(id); });
        } else if (made.begins != 0) {
            enrol(std::string{key}, true, made.begins);
        }
        return made.id;
    }

    void unwatch(dibs::store::watch_id id) override {
        if (closed_) {
            return;
        }
        if (auto left = book_.remove(id); !left.empty()) {
            enrol(std::move(left), false, 0);
        }
    }

    void list(std::string prefix,
              std::string after,
              std::size_t limit,
              dibs::store::page_completion done) override {
        if (closed_) {
            process_.post([done = std::move(done)]() mutable {
                core::page none;
                none.error = errc::closed;
                done(std::move(none));
            });
            return;
        }
        lists_.push_back({std::move(prefix), std::move(after), limit, std::move(done)});
        work_soon();
    }

    void close() override {
        if (std::exchange(closed_, true)) {
            return;
        }
        *here_ = false;
        book_.clear();
        refuse_rest();
        model_.leave(id_);
        if (process_.alive()) {
            static_cast<void>(database_->leave(true));
            model_.died(process_);
        } else {
            model_.disk().abandon(process_.number());
        }
        database_.reset();
    }

    /// The disk takes nothing of this process any more, from within a step on.
    void dies() noexcept { dies_ = true; }
    [[nodiscard]] const process& of_process() const noexcept { return process_; }

    /// A message from another process, or the death of one that is looked out for.
    void hear(const std::string& key) {
        post([this, key] { book_.wake(key); });
    }

    void somebody_left(const sqlite::process_id& id) {
        for (const auto& [key, all] : lookouts_) {
            if (std::find(all.begin(), all.end(), id) != all.end()) {
                hear(key);
            }
        }
    }

  private:
    struct batch_job {
        dibs::store::lane which = dibs::store::lane::others;
        std::vector<core::entry> entries;
        dibs::store::answers replies;
        dibs::store::batch_completion done;
        sim_time sent{};
    };
    struct enrolment_job {
        sqlite::enrolment wish;
        dibs::store::watch_book::stay which = 0;
    };
    struct list_job {
        std::string prefix;
        std::string after;
        std::size_t limit = 0;
        dibs::store::page_completion done;
    };

    // --- the world outside of the file -----------------------------------------------------------

    [[nodiscard]] core::store_now clock() override { return model_.clock(); }
    [[nodiscard]] core::instant now() override { return process_.now(); }
    void pause(core::microseconds) override {
        // Transactions are single events here, so nobody can be in the way.
        throw std::logic_error{"the simulated file is locked by nobody who lives"};
    }
    [[nodiscard]] bool gone(const sqlite::process_id& id) override { return model_.is_gone(id); }
    [[nodiscard]] sqlite::failure appear() override { return {}; }
    [[nodiscard]] std::uint64_t draw() override { return model_.chance.next(); }

    // --- the thread that works -------------------------------------------------------------------

    void post(core::task work) {
        process_.post([here = here_, work = std::move(work)]() mutable {
            if (*here) {
                work();
            }
        });
    }

    void enrol(std::string key, bool begins, dibs::store::watch_book::stay which) {
        auto& job = enrolments_.emplace_back();
        job.wish.key = std::move(key);
        job.wish.begins = begins;
        job.wish.deadline = process_.now() + std::chrono::seconds{5};
        job.which = which;
        work_soon();
    }

    void work_soon() {
        if (std::exchange(working_, true)) {
            return;
        }
        work_at(model_.in.now() + model_.chance.between(work_least, work_most));
    }

    void work_at(sim_time when) {
        model_.in.at(when, [this, here = here_, life = process_.life()] {
            if (!*here || !*life) {
                return;
            }
            if (process_.paused()) {
                work_at(process_.paused_until());
                return;
            }
            working_ = false;
            work();
        });
    }

    void work() {
        auto batches = std::exchange(batches_, {});
        auto enrolments = std::exchange(enrolments_, {});
        auto lists = std::exchange(lists_, {});
        sqlite::group all;
        all.lost = std::exchange(lost_, {});
        for (const auto which : {dibs::store::lane::renewals, dibs::store::lane::others}) {
            for (auto& job : batches) {
                if (job.which == which) {
                    job.replies.resize(job.entries.size());
                    all.batches.push_back({job.which, job.entries, job.replies});
                }
            }
        }
        for (auto& job : enrolments) {
            all.enrolments.push_back(&job.wish);
        }
        sqlite::aftermath after;
        database_->run(all, after);
        write_down(batches);
        if (dies_) {
            return;  // it was killed within the transaction: nobody hears of it
        }
        finish(after);
        for (auto& job : batches) {
            post([done = std::move(job.done), replies = std::move(job.replies)]() mutable {
                done(std::move(replies));
            });
        }
        for (auto& job : enrolments) {
            post([this, key = job.wish.key, which = job.which, error = job.wish.trouble.error] {
                book_.entered(key, which, error);
            });
        }
        for (auto& job : lists) {
            core::page page;
            database_->list(job.prefix, job.after, job.limit, page);
            post([done = std::move(job.done), page = std::move(page)]() mutable {
                done(std::move(page));
            });
        }
    }

    /// In the order in which the database takes them.
    void write_down(const std::vector<batch_job>& batches) {
        for (const auto which : {dibs::store::lane::renewals, dibs::store::lane::others}) {
            for (const auto& job : batches) {
                if (job.which == which) {
                    write_down(job);
                }
            }
        }
    }

    void write_down(const batch_job& job) {
        for (const bool first : {true, false}) {
            for (std::size_t at = 0; at < job.entries.size(); ++at) {
                const auto& what = job.entries[at].what;
                const bool goes_first = std::holds_alternative<core::renew>(what) ||
                                        std::holds_alternative<core::release>(what);
                if (goes_first == first) {
                    model_.log.carried_out(what, job.replies[at], {process_.number(), job.sent});
                }
            }
        }
    }

    void finish(sqlite::aftermath& after) {
        for (auto& next : after.lookouts) {
            const bool one_is_gone =
                std::any_of(next.processes.begin(), next.processes.end(), [&](const auto& id) {
                    return model_.is_gone(id);
                });
            lookouts_[next.key] = std::move(next.processes);
            if (one_is_gone) {
                hear(next.key);
            }
        }
        for (auto& order : after.wakes) {
            wake_first(order);
        }
    }

    void wake_first(sqlite::wake_order& order) {
        sqlite::unreachable unreached;
        for (const auto& candidate : order.candidates) {
            model_.note_woken(order.key, candidate.id);
            if (candidate.id == id_) {
                hear(order.key);
                unreached.nobody_woken = false;
            } else if (model_.wake(candidate.id, order.key)) {
                unreached.nobody_woken = false;
            } else {
                unreached.processes.push_back(candidate.process);
                continue;
            }
            break;
        }
        if (!unreached.processes.empty()) {
            unreached.key = std::move(order.key);
            lost_.push_back(std::move(unreached));
            work_soon();
        }
    }

    void refuse_rest() {
        for (auto& job : std::exchange(batches_, {})) {
            job.done(
                dibs::store::answers(job.entries.size(), core::refused(errc::closed, "closed")));
        }
        for (auto& job : std::exchange(lists_, {})) {
            core::page none;
            none.error = errc::closed;
            job.done(std::move(none));
        }
    }

    sqlite_model& model_;
    process& process_;
    const std::string location_ = "simulated:sqlite";
    sqlite::process_id id_;
    std::unique_ptr<sqlite::database> database_;
    dibs::store::watch_book book_;
    bool closed_ = false;
    bool working_ = false;
    bool dies_ = false;
    std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
    std::vector<batch_job> batches_;
    std::vector<enrolment_job> enrolments_;
    std::vector<list_job> lists_;
    std::vector<sqlite::unreachable> lost_;
    std::map<std::string, std::vector<sqlite::process_id>> lookouts_;
};

sqlite_model::sqlite_model(store_context context)
    : in(context.in),
      history(context.history),
      chance(context.chosen_by),
      log(context.history, context.laws),
      machine_(context.machine),
      disk_(chance.split()) {
    machine_.on_change({[this] { log.clock(clock().lease); },
                        [this] {
                            log.clock(clock().lease);
                            // Holds go by the calendar.
                            log.forget_holds(clock().lease);
                        }});
}

opened_store sqlite_model::open(process& by, const weather& conditions) {
    static_cast<void>(conditions);
    return {std::make_unique<host_store>(*this, by), {}, {}};
}

host_store* sqlite_model::store_of(const process& which) const {
    for (const auto& [id, here] : there_) {
        if (&here->of_process() == &which) {
            return here;
        }
    }
    return nullptr;
}

bool sqlite_model::kill_within_step(process& which,
                                    std::uint64_t writes,
                                    std::function<void()> then) {
    auto* here = store_of(which);
    if (here == nullptr) {
        return false;
    }
    disk_.abandon_after(which.number(), writes, [here, then = std::move(then)] {
        here->dies();
        then();
    });
    return true;
}

void sqlite_model::leave(const sqlite::process_id& id) {
    there_.erase(id);
    for (const auto& [other, here] : there_) {
        here->somebody_left(id);
    }
}

bool sqlite_model::wake(const sqlite::process_id& id, const std::string& key) {
    if (!there_.contains(id)) {
        return false;
    }
    in.in(chance.between(work_least, work_most), [this, id, key] {
        if (const auto at = there_.find(id); at != there_.end()) {
            at->second->hear(key);
        }
    });
    return true;
}

void sqlite_model::note_woken(const std::string& key, const sqlite::process_id& id) {
    if (const auto at = there_.find(id); at != there_.end()) {
        log.woken(key, at->second->of_process().number(), clock().lease);
    }
}

void sqlite_model::died(const process& gone) {
    log.process_ended(gone.number(), clock().lease);
}

store_model::consequence sqlite_model::lose_power(core::nanoseconds down_for) {
    static_cast<void>(down_for);
    log.all_ended(clock().lease);
    disk_.lose_power();
    boot_ = "boot-" + std::to_string(++boots_);
    machine_.reboot(chance.between(core::milliseconds{500}, std::chrono::seconds{60}));
    return stepped_back_ ? R"("C3")" : "";
}

}  // namespace

std::unique_ptr<store_model> make_sqlite_store(store_context context) {
    return std::make_unique<sqlite_model>(context);
}

}  // namespace dibs::simulation
