// SPDX-License-Identifier: Apache-2.0
#include "store/memory/memory_space.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>
#include <variant>

namespace dibs::store {

namespace {

/// Records looked at per batch for being forgotten: more than one, so that it keeps up with those
/// who write.
constexpr int purge_step = 2;

bool is_acquire(const core::entry& what) {
    return std::holds_alternative<core::acquire>(what.what);
}

}  // namespace

std::shared_ptr<memory_space> memory_space::open(const std::string& name) {
    if (name.empty()) {
        return std::make_shared<memory_space>();
    }
    // "All clients of this process" cannot be said without a place of the process.
    static std::mutex guard_of_spaces;
    static std::map<std::string, std::weak_ptr<memory_space>> spaces;
    const std::lock_guard guard{guard_of_spaces};
    std::erase_if(spaces, [](const auto& entry) { return entry.second.expired(); });
    auto& place = spaces[name];
    auto space = place.lock();
    if (!space) {
        space = std::make_shared<memory_space>();
        place = space;
    }
    return space;
}

watch_id memory_space::new_watch_id() noexcept {
    static std::atomic<watch_id> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

core::party memory_space::known_parties::who(std::uint64_t number) const {
    const auto found = all_.find(number);
    return found == all_.end() ? core::party{} : found->second.who;
}

std::uint64_t memory_space::join(core::party who) {
    const std::lock_guard guard{mutex_};
    processes_[++last_process_].who = std::move(who);
    return last_process_;
}

void memory_space::leave(std::uint64_t process, core::store_now now) {
    const std::lock_guard guard{mutex_};
    std::vector<std::string> passed_on;
    for (auto list = watchers_.begin(); list != watchers_.end();) {
        const auto gone = std::erase_if(list->second, [&](const watcher& one) {
            if (one.process != process) {
                return false;
            }
            watched_key_.erase(one.id);
            return true;
        });
        if (gone > 0) {
            passed_on.push_back(list->first);
        }
        list = list->second.empty() ? watchers_.erase(list) : std::next(list);
    }

    bool named = false;
    processes_[process].gone = true;
    for (const auto& [key, kept] : records_) {
        for (const auto& grant : kept.grants) {
            named = named || grant.process == process;
            if (grant.process == process && grant.attached == core::attachment::attached) {
                passed_on.push_back(key);
            }
        }
    }
    if (!named) {
        processes_.erase(process);
    }
    for (auto line = queues_.begin(); line != queues_.end();) {
        if (line->second.drop_those_of(process)) {
            passed_on.push_back(line->first);
        }
        line = line->second.empty() ? queues_.erase(line) : std::next(line);
    }
    for (const auto& key : passed_on) {
        wake_next(key, now);
    }
}

answers memory_space::execute(std::uint64_t self,
                              const std::vector<core::entry>& batch,
                              const store_clock_reader& clock,
                              core::instant now,
                              bool wakes_all) {
    const std::lock_guard guard{mutex_};
    const known_parties known{processes_};
    const rules_context context{clock(), self, known};
    answers given(batch.size());
    const auto run = [&](bool acquires) {
        for (std::size_t at = 0; at < batch.size(); ++at) {
            if (is_acquire(batch[at]) != acquires) {
                continue;
            }
            given[at] = now < batch[at].deadline
                            ? execute_one(batch[at], context, wakes_all)
                            : core::refused(errc::timed_out, "its deadline passed in the queue");
        }
    };
    run(false);
    run(true);
    purge_some(context.now);
    return given;
}

core::answer memory_space::execute_one(const core::entry& what,
                                       const rules_context& context,
                                       bool wakes_all) {
    const auto& key = core::key_of(what.what);
    auto at = records_.find(key);
    core::record fresh;
    auto& kept = at == records_.end() ? fresh : at->second;
    know_the_dead(kept);
    auto line = queues_.find(key);
    const auto sight = line == queues_.end()
                           ? queue_sight{}
                           : line->second.look(ticket_holder(what.what), context.now, gone_query_);
    auto taken = apply(what.what, kept, context, sight);
    if (taken.ticket != queue_step::none) {
        if (line == queues_.end()) {
            line = queues_.try_emplace(key).first;
        }
        line->second.carry_out(taken, what.what, last_ticket_, context);
    }
    if (line != queues_.end() && line->second.empty()) {
        queues_.erase(line);
    }
    if (taken.changed && at == records_.end()) {
        at = records_.emplace(key, std::move(fresh)).first;
    }
    switch (taken.reply.what) {
        case core::verdict::granted:
            // With room for more, whoever was woken for this grant has had its turn; the next wake
            // is for others.
            if (!taken.freed) {
                note_taken(key);
            }
            break;
        case core::verdict::renewed:
        case core::verdict::released:
        case core::verdict::finished:
            taken.reply.waiters = others_wait(key, context.now, context.self);
            break;
        default:
            break;
    }
    if (taken.reply.what == core::verdict::held && wakes_all) {
        taken.reply.watchers = waiting_processes(key);
    }
    if (taken.reply.what == core::verdict::finished) {
        wake_all(key, wakes_all ? context.self : 0);  // a result is of use to everybody
    } else if (taken.freed && wakes_all && !queues_.contains(key)) {
        wake_all(key, context.self);
    } else if (taken.freed) {
        wake_next(key, context.now);
    }
    if (at != records_.end()) {
        purge(at, context.now);
    }
    return std::move(taken.reply);
}

void memory_space::know_the_dead(core::record& kept) const {
    for (auto& grant : kept.grants) {
        if (grant.attached == core::attachment::attached) {
            grant.dead = gone(grant.process);
        }
    }
}

bool memory_space::gone(std::uint64_t process) const {
    const auto found = processes_.find(process);
    return found == processes_.end() || found->second.gone;
}

void memory_space::watch(watch_id id, std::uint64_t process, std::string_view key, waker wake) {
    const std::lock_guard guard{mutex_};
    watcher added;
    added.id = id;
    added.process = process;
    added.wake = std::move(wake);
    watchers_[std::string{key}].push_back(std::move(added));
    watched_key_[id] = key;
}

void memory_space::unwatch(watch_id id) {
    const std::lock_guard guard{mutex_};
    const auto known = watched_key_.find(id);
    if (known == watched_key_.end()) {
        return;
    }
    const auto key = std::move(known->second);
    watched_key_.erase(known);
    const auto list = watchers_.find(key);
    const auto gone = std::find_if(
        list->second.begin(), list->second.end(), [&](const watcher& one) { return one.id == id; });
    const bool owes_a_wake = gone->woken;
    list->second.erase(gone);
    if (list->second.empty()) {
        watchers_.erase(list);
    } else if (owes_a_wake && !queues_.contains(key)) {
        wake_one(key);  // in a queue, the ticket that is taken back passes it on
    }
}

bool memory_space::others_wait(const std::string& key, core::store_now now, std::uint64_t self) {
    if (const auto line = queues_.find(key);
        line != queues_.end() && line->second.head(now, gone_query_) != nullptr) {
        return true;
    }
    const auto list = watchers_.find(key);
    return list != watchers_.end() &&
           std::any_of(list->second.begin(), list->second.end(), [&](const watcher& one) {
               return one.process != self;
           });
}

std::uint32_t memory_space::waiting_processes(const std::string& key) const {
    const auto list = watchers_.find(key);
    if (list == watchers_.end()) {
        return 0;
    }
    std::set<std::uint64_t> distinct;
    for (const auto& one : list->second) {
        distinct.insert(one.process);
    }
    return static_cast<std::uint32_t>(distinct.size());
}

void memory_space::wake_next(const std::string& key, core::store_now now) {
    const auto line = queues_.find(key);
    const auto* head = line == queues_.end() ? nullptr : line->second.head(now, gone_query_);
    if (head != nullptr) {
        wake_process(key, head->process);
    } else {
        wake_one(key);
    }
}

void memory_space::wake_process(const std::string& key, std::uint64_t process) {
    const auto list = watchers_.find(key);
    if (list == watchers_.end()) {
        return;
    }
    for (auto& one : list->second) {
        if (one.process == process) {
            one.woken = true;
            one.wake(wake_by::unknown);
        }
    }
}

void memory_space::wake_one(const std::string& key) {
    const auto list = watchers_.find(key);
    if (list == watchers_.end()) {
        return;
    }
    const auto next = std::find_if(
        list->second.begin(), list->second.end(), [](const watcher& one) { return !one.woken; });
    if (next == list->second.end()) {
        // All were told before and found nothing then: they must hear of this one too.
        wake_all(key);
        return;
    }
    next->woken = true;
    next->wake(wake_by::unknown);
}

void memory_space::wake_all(const std::string& key, std::uint64_t by) {
    const auto list = watchers_.find(key);
    if (list == watchers_.end()) {
        return;
    }
    for (auto& one : list->second) {
        one.woken = by == 0;  // where all are told, nobody has to pass it on
        one.wake(by == 0             ? wake_by::unknown
                 : by == one.process ? wake_by::own_process
                                     : wake_by::other_process);
    }
}

void memory_space::note_taken(const std::string& key) {
    const auto list = watchers_.find(key);
    if (list == watchers_.end()) {
        return;
    }
    for (auto& one : list->second) {
        one.woken = false;
    }
}

core::page memory_space::list(std::uint64_t self,
                              const std::string& prefix,
                              const std::string& after,
                              std::size_t limit,
                              const store_clock_reader& clock) {
    const std::lock_guard guard{mutex_};
    const known_parties known{processes_};
    const rules_context context{clock(), self, known};
    core::page shown;
    auto at = after < prefix ? records_.lower_bound(prefix) : records_.upper_bound(after);
    for (; at != records_.end() && at->first.starts_with(prefix); ++at) {
        if (shown.records.size() == limit) {
            shown.more = true;
            break;
        }
        know_the_dead(at->second);
        shown.records.push_back(describe(at->first, at->second, context));
        shown.records.back().waiters = waiting_processes(at->first);
        if (const auto line = queues_.find(at->first); line != queues_.end()) {
            line->second.describe(shown.records.back(), context, gone_query_);
        }
    }
    return shown;
}

void memory_space::purge_some(core::store_now now) {
    for (int looked_at = 0; looked_at < purge_step; ++looked_at) {
        auto next = records_.upper_bound(purged_up_to_);
        if (next == records_.end()) {
            purged_up_to_.clear();
            return;
        }
        purged_up_to_ = next->first;
        know_the_dead(next->second);
        purge(next, now);
    }
}

void memory_space::purge(records::iterator at, core::store_now now) {
    if (const auto line = queues_.find(at->first);
        line != queues_.end() && line->second.head(now, gone_query_) == nullptr) {
        queues_.erase(line);
    }
    if (purgeable(at->second, now) && !watchers_.contains(at->first) &&
        !queues_.contains(at->first)) {
        records_.erase(at);
    }
}

}  // namespace dibs::store
