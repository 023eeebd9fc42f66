// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/postgres/backend.hpp"

#include "simulation/stores/postgres/answer_rows.hpp"
#include "simulation/stores/postgres/rows.hpp"
#include "store/postgres/columns.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>

namespace dibs::simulation::postgres {

namespace {

using core::microseconds;
using core::verdict;
using namespace store::postgres;

bool nobody_is_gone(std::uint64_t /*process*/) {
    return false;
}

core::store_now now_of(std::int64_t us) {
    return {core::store_instant{microseconds{us}}, core::wall_instant{microseconds{us}}};
}

template <typename Instant>
std::int64_t micros(Instant at) {
    return at.time_since_epoch().count();
}

bool has_live(const core::record& kept, const core::holder_id& holder, core::store_now now) {
    return std::any_of(kept.grants.begin(), kept.grants.end(), [&](const core::grant& one) {
        return one.holder == holder && one.live(now);
    });
}

/// A release without a result, of a lease that would end soon.
bool is_soon_over(const core::verb& what, const core::record& kept, core::store_now now) {
    constexpr std::chrono::minutes soon{1};
    const auto* ending = std::get_if<core::release>(&what);
    return ending != nullptr && !ending->result &&
           std::any_of(kept.grants.begin(), kept.grants.end(), [&](const core::grant& one) {
               return one.holder == ending->holder && one.live(now) &&
                      one.expires < now.lease + soon;
           });
}

bool answers_results(const core::verb& what) {
    return !std::holds_alternative<core::revoke>(what) &&
           !std::holds_alternative<core::block>(what);
}

/// A strict store waits until whatever was granted and forgotten is over: the one step of the order
/// that the rules leave to such a store.
std::optional<store::step> not_ready(const core::verb& what,
                                     const lease_row& row,
                                     const store::rules_context& context,
                                     const store::queue_sight& queue,
                                     std::int64_t quiet_until) {
    const auto* asked = std::get_if<core::acquire>(&what);
    const auto* renewed = std::get_if<core::renew>(&what);
    const bool adopts =
        renewed != nullptr && renewed->adopt && renewed->adopt->holder != renewed->holder;
    const auto now_us = micros(context.now.wall);
    if (quiet_until <= now_us || (asked == nullptr && !adopts) ||
        (asked != nullptr && has_live(row.kept, asked->holder, context.now))) {
        return std::nullopt;
    }
    auto kept = row.kept;
    auto granted = store::apply(what, kept, context, queue);
    if (granted.reply.what != verdict::granted && granted.reply.what != verdict::renewed) {
        return std::nullopt;
    }
    store::step refused;
    refused.reply.what = verdict::not_ready;
    refused.reply.took = core::effect::yes;
    refused.reply.now = context.now;
    refused.reply.retry_after = microseconds{quiet_until - now_us};
    refused.reply.result = std::move(granted.reply.result);
    if (asked != nullptr && asked->queue > microseconds{0}) {
        refused.ticket = queue.mine ? store::queue_step::prolong : store::queue_step::enter;
    }
    return refused;
}

std::uint32_t watchers_of(const tables& on,
                          const std::string& key,
                          const backend::surroundings& around) {
    constexpr std::size_t few = 8;
    const auto all = on.waiters.find(key);
    if (all == on.waiters.end()) {
        return 0;
    }
    const auto live = [&](const auto& one) { return around.listens(one.second.pid); };
    const auto count = all->second.size() > few
                           ? std::count_if(all->second.begin(), all->second.end(), live)
                           : static_cast<std::ptrdiff_t>(all->second.size());
    return static_cast<std::uint32_t>(count);
}

bool waited_for_by_others(const tables& on, const std::string& key, const std::string& process) {
    const auto all = on.waiters.find(key);
    return all != on.waiters.end() &&
           std::any_of(all->second.begin(), all->second.end(), [&](const auto& one) {
               return one.first != process;
           });
}

/// What a short way does to a row.
struct short_change {
    lease_row* row = nullptr;
    core::record kept;
    core::answer reply;
};

/// None: nothing but an exclusive grant, or its trace, may be on the row, and what is asked must be
/// carried out. `sooner`: what is about to end within that counts as over.
std::optional<short_change> short_change_by(const core::verb& what,
                                            tables& on,
                                            const store::rules_context& context,
                                            microseconds sooner = {}) {
    const auto known = on.leases.find(core::key_of(what));
    if (known == on.leases.end()) {
        return std::nullopt;
    }
    const auto& kept = known->second.kept;
    if (!known->second.line.empty() || kept.capacity != 1 ||
        (kept.result && context.now.wall < kept.result->keep_until)) {
        return std::nullopt;
    }
    short_change made{&known->second, kept, {}};
    made.reply = store::apply(what, made.kept, context, {}).reply;
    const auto later = context.now.lease + sooner;
    if (const auto* asked = std::get_if<core::acquire>(&what)) {
        // Whoever holds the key already has it renewed by the function alone.
        const bool in_time =
            !asked->not_after || sooner == microseconds{0} || later < *asked->not_after;
        return made.reply.what == verdict::granted && made.kept.fence > kept.fence && in_time
                   ? std::optional{std::move(made)}
                   : std::nullopt;
    }
    const bool carried_out =
        made.reply.what == verdict::released || made.reply.what == verdict::renewed;
    const bool lasts = std::all_of(kept.grants.begin(), kept.grants.end(), [&](const auto& one) {
        return later < one.expires;
    });
    return carried_out && lasts ? std::optional{std::move(made)} : std::nullopt;
}

std::int64_t quiet_until(tables& on, std::int64_t longest, const backend::surroundings& around) {
    auto& known = on.strict;
    if (!known) {
        known = epoch{around.timeline, longest, around.now_us + longest};
    } else if (known->timeline != around.timeline || known->longest < longest) {
        known->longest = std::max(known->longest, longest);
        known->timeline = around.timeline;
        known->quiet_until = around.now_us + known->longest;
    }
    return known->quiet_until;
}

}  // namespace

/// What comes of a statement at its commit.
struct backend::transaction {
    tables& on;
    const surroundings& around;
    std::vector<std::pair<core::verb, core::answer>> done{};
    std::vector<note> notes{};

    /// The server tells the same but once.
    void notify(note what) {
        for (auto& one : notes) {
            if (one.process == what.process && one.key == what.key && one.whose == what.whose) {
                one.as_head = one.as_head || what.as_head;
                return;
            }
        }
        notes.push_back(std::move(what));
    }
};

void backend::commit(transaction& in) {
    if (in.around.carried_out) {
        for (const auto& [what, given] : in.done) {
            in.around.carried_out(what, given);
        }
    }
    if (in.around.notified) {
        for (const auto& one : in.notes) {
            in.around.notified(one);
        }
    }
}

std::uint64_t backend::number_of(const std::string& process, const std::string& who) {
    const auto [at, is_new] = numbers_.emplace(process, processes_.size());
    if (is_new) {
        processes_.push_back({process, who});
    }
    return at->second;
}

core::party backend::who(std::uint64_t number) const {
    core::party handle;
    handle.pid = static_cast<std::int64_t>(number);
    return handle;
}

std::vector<std::string> backend::holder_texts(const core::record& of, core::store_now now) const {
    std::vector<const core::grant*> live;
    for (const auto& one : of.grants) {
        if (one.live(now)) {
            live.push_back(&one);
        }
    }
    std::sort(live.begin(), live.end(), [](const auto* left, const auto* right) {
        return left->fences.first < right->fences.first;
    });
    std::vector<std::string> texts;
    for (const auto* one : live) {
        const auto& from = processes_.at(one->process);
        texts.insert(texts.end(),
                     {std::to_string(one->fences.first),
                      std::to_string(one->fences.last),
                      std::to_string(one->weight),
                      one->attached == core::attachment::attached ? "true" : "false",
                      std::to_string(micros(one->granted)),
                      std::to_string(micros(one->expires)),
                      from.process,
                      from.who});
    }
    return texts;
}

reply backend::run(store::postgres::statement which,
                   const store::postgres::parameters& with,
                   tables& on,
                   const surroundings& around) {
    const arguments given{with};
    waited_for_the_disk_ = true;
    switch (which) {
        case store::postgres::statement::execute:
            return execute(given, on, around);
        case store::postgres::statement::acquire_one:
            return execute_one(acquire_one_of(given), on, around);
        case store::postgres::statement::release_one:
            return execute_one(release_one_of(given), on, around);
        case store::postgres::statement::step_some:
            return execute_some(some_of(given), on, around);
        case store::postgres::statement::list:
            return list(given, on, around);
        case store::postgres::statement::purge:
            return purge(given, on, around);
        default:
            throw std::logic_error{"the model has no such statement"};
    }
}

// --- lease_execute_1 -----------------------------------------------------------------------------

reply backend::execute(const arguments& with, tables& on, const surroundings& around) {
    const auto asked = batch_of(with);
    const auto now_us = around.now_us;
    const store::rules_context context{now_of(now_us), number_of(asked.process, asked.who), *this};
    transaction doing{on, around};

    std::vector<std::string> freed;
    std::vector<std::size_t> waited_for;
    const bool gives = std::any_of(asked.entries.begin(), asked.entries.end(), [](const auto& one) {
        const auto* renewed = std::get_if<core::renew>(&one.what);
        return std::holds_alternative<core::acquire>(one.what) ||
               (renewed != nullptr && renewed->adopt);
    });
    const auto quiet = asked.longest > 0 && gives ? quiet_until(on, asked.longest, around) : 0;

    answer_rows told{now_us};
    for (std::size_t at = 0; at < asked.entries.size(); ++at) {
        const auto& what = asked.entries[at].what;
        const auto& key = core::key_of(what);
        const auto* acquire = std::get_if<core::acquire>(&what);
        const bool holds = std::holds_alternative<core::block>(what);
        const auto known = on.leases.find(key);
        bool locked = known != on.leases.end() && around.locked && around.locked(key);
        if (locked && asked.alone) {
            if (!around.is_let_go(key)) {
                return refused("55P03", "canceling statement due to lock timeout");
            }
            locked = false;
        }
        // A row that is not seen is made by an acquire that may change something, or by a hold: then
        // it is found to be there.
        const bool in_time =
            acquire != nullptr && (!acquire->not_after || context.now.lease <= *acquire->not_after);
        const bool makes =
            holds || (in_time && (quiet <= now_us || acquire->queue > microseconds{0}));
        if (locked && (makes || acquire == nullptr)) {
            told.locked(at);
            continue;
        }
        lease_row scratch;
        const bool is_there = known != on.leases.end() && !locked;
        auto& row = is_there ? known->second : makes ? on.leases[key] : scratch;
        const bool was_queued = !row.line.empty();

        const auto queue = row.line.look(store::ticket_holder(what), context.now, nobody_is_gone);
        auto found = store::describe(key, row.kept, context).result;
        auto waits = not_ready(what, row, context, queue, quiet);
        waited_for_the_disk_ =
            asked.entries.size() > 1 || !is_soon_over(what, row.kept, context.now);
        auto taken = waits ? std::move(*waits) : store::apply(what, row.kept, context, queue);
        row.line.carry_out(taken, what, row.last_ticket, context);
        auto& given = taken.reply;
        if (!answers_results(what) || given.what == verdict::failed) {
            // More than the specification asks for: the row is at hand.
            given.result = std::move(found);
        }

        const auto* head = row.line.head(context.now, nobody_is_gone);
        const bool told_of_waiters = given.what == verdict::renewed ||
                                     given.what == verdict::released ||
                                     given.what == verdict::finished;
        if (told_of_waiters && head != nullptr) {
            given.waiters = true;
        } else if (told_of_waiters) {
            waited_for.push_back(at);
        }
        if (taken.freed && head != nullptr && given.what != verdict::finished) {
            doing.notify(
                {processes_.at(head->process).process, key, store::wake_by::unknown, true});
        } else if (taken.freed) {
            freed.push_back(key);
        }
        if (given.what == verdict::held) {
            given.watchers = watchers_of(on, key, around);
        }

        const bool short_way = asked.entries.size() > 1 && asked.entries[at].simple && is_there &&
                               !was_queued && !row.kept.result &&
                               (given.what == verdict::granted || told_of_waiters);
        if (short_way) {
            told.answer_shortly(at, given);
        } else {
            const bool names_holders =
                given.what == verdict::held || given.what == verdict::fence_moved;
            told.answer(
                at,
                given,
                row.kept.capacity,
                names_holders ? holder_texts(row.kept, context.now) : std::vector<std::string>{});
        }
        doing.done.emplace_back(what, std::move(given));
    }
    for (const auto& key : freed) {
        wake(doing, key, asked.process);
    }
    for (const auto at : waited_for) {
        if (waited_for_by_others(on, core::key_of(asked.entries[at].what), asked.process)) {
            told.waited_for(at);
        }
    }
    commit(doing);
    reply whole;
    whole.result = told.take();
    return whole;
}

// --- acquire_one.sql and release_one.sql ---------------------------------------------------------

reply backend::execute_one(const one_step& asked, tables& on, const surroundings& around) {
    const auto& key = core::key_of(asked.what);
    const bool acquires = std::holds_alternative<core::acquire>(asked.what);
    const store::rules_context context{
        now_of(around.now_us), number_of(asked.process, asked.who), *this};
    rows told{acquires ? static_cast<int>(acquired_column_count)
                       : static_cast<int>(released_column_count)};
    if (auto change = short_change_by(asked.what, on, context)) {
        if (around.locked && around.locked(key) && !around.is_let_go(key)) {
            return refused("55P03", "canceling statement due to lock timeout");
        }
        transaction doing{on, around};
        waited_for_the_disk_ = !is_soon_over(asked.what, change->row->kept, context.now);
        change->row->kept = std::move(change->kept);
        told.begin();
        if (acquires) {
            told.number(a_now, around.now_us);
            told.number(a_first, static_cast<std::int64_t>(change->reply.fences.first));
            told.number(a_last, static_cast<std::int64_t>(change->reply.fences.last));
        } else {
            wake(doing, key, asked.process);
            change->reply.waiters = waited_for_by_others(on, key, asked.process);
            told.number(r_now, around.now_us);
            told.truth(r_waiters, change->reply.waiters);
        }
        doing.done.emplace_back(asked.what, std::move(change->reply));
        commit(doing);
    }
    reply whole;
    whole.result = told.take();
    return whole;
}

// --- step_some.sql -------------------------------------------------------------------------------

reply backend::execute_some(const some_steps& asked, tables& on, const surroundings& around) {
    constexpr microseconds sooner{100'000};
    const store::rules_context context{
        now_of(around.now_us), number_of(asked.process, asked.who), *this};
    std::vector<std::optional<short_change>> changes;
    for (const auto& what : asked.all) {
        changes.push_back(short_change_by(what, on, context, sooner));
        const auto& key = core::key_of(what);
        if (changes.back() && around.locked && around.locked(key) && !around.is_let_go(key)) {
            return refused("55P03", "canceling statement due to lock timeout");
        }
    }
    transaction doing{on, around};
    rows told{some_column_count};
    std::vector<std::int64_t> waited_for;
    for (std::size_t at = 0; at < changes.size(); ++at) {
        auto& change = changes[at];
        if (!change) {
            continue;
        }
        const auto& what = asked.all[at];
        const auto& key = core::key_of(what);
        change->row->kept = std::move(change->kept);
        told.begin();
        told.number(s_entry, static_cast<std::int64_t>(at) + 1);
        told.number(s_now, around.now_us);
        told.number(s_first, static_cast<std::int64_t>(change->reply.fences.first));
        told.number(s_last, static_cast<std::int64_t>(change->reply.fences.last));
        if (std::holds_alternative<core::release>(what)) {
            wake(doing, key, asked.process);
        }
        if (!std::holds_alternative<core::acquire>(what) &&
            waited_for_by_others(on, key, asked.process)) {
            change->reply.waiters = true;
            waited_for.push_back(static_cast<std::int64_t>(at) + 1);
        }
        doing.done.emplace_back(what, std::move(change->reply));
    }
    told.begin();
    told.numbers(s_waited_for, waited_for);
    commit(doing);
    reply whole;
    whole.result = told.take();
    return whole;
}

/// All that wait for the key; each is told whether the step was its own.
void backend::wake(transaction& in, const std::string& key, const std::string& process) {
    const auto found = in.on.waiters.find(key);
    if (found == in.on.waiters.end()) {
        return;
    }
    for (const auto& [waiting, one] : found->second) {
        in.notify(
            {waiting,
             key,
             waiting == process ? store::wake_by::own_process : store::wake_by::other_process});
    }
}

// --- the others ----------------------------------------------------------------------------------

void backend::watch(const std::string& key,
                    const std::string& process,
                    std::int64_t pid,
                    tables& on,
                    const surroundings& around) const {
    auto& all = on.waiters[key];
    std::erase_if(all, [&](const auto& one) {
        return one.first != process && !around.listens(one.second.pid);
    });
    all[process].pid = pid;
}

void backend::unwatch(const std::string& key, const std::string& process, tables& on) {
    const auto all = on.waiters.find(key);
    if (all != on.waiters.end() && all->second.erase(process) > 0 && all->second.empty()) {
        on.waiters.erase(all);
    }
}

reply backend::list(const arguments& with, const tables& on, const surroundings& around) const {
    const auto prefix = std::string{with.text(0)};
    const auto after = std::string{with.text(1)};
    const auto limit = with.number(2);
    const store::rules_context context{now_of(around.now_us), processes_.size(), *this};
    rows told{list_column_count};
    std::int64_t shown = 0;
    for (auto at = on.leases.lower_bound(prefix);
         at != on.leases.end() && at->first.starts_with(prefix);
         ++at) {
        const auto& [key, row] = *at;
        if (key <= after) {
            continue;
        }
        told.begin();
        told.number(l_now, around.now_us);
        if (shown++ == limit) {
            break;
        }
        auto info = store::describe(key, row.kept, context);
        row.line.describe(info, context, nobody_is_gone);
        told.text(l_key, key);
        told.number(l_fence, static_cast<std::int64_t>(info.fence));
        told.number(l_capacity, info.part.capacity);
        told.texts(l_holders, holder_texts(row.kept, context.now));
        std::int64_t waiters = 0;
        if (const auto all = on.waiters.find(key); all != on.waiters.end()) {
            waiters = std::count_if(all->second.begin(), all->second.end(), [&](const auto& one) {
                return around.listens(one.second.pid);
            });
        }
        told.number(l_waiters, waiters);
        told.number(l_queued, info.queued);
        std::vector<std::string> queue;
        for (const auto& one : info.queue) {
            const auto& from = processes_.at(static_cast<std::size_t>(one.who.pid));
            queue.insert(
                queue.end(),
                {std::to_string(around.now_us - one.waiting_for.count()), from.process, from.who});
        }
        told.texts(l_queue, queue);
        if (info.result) {
            write_result(told, l_value, *info.result, around.now_us);
        }
        told.number(l_blocked_until, micros(row.kept.blocked_until));
        told.text(l_reason, row.kept.blocked_reason);
    }
    reply whole;
    whole.result = told.take();
    return whole;
}

reply backend::purge(const arguments& with, tables& on, const surroundings& around) {
    const auto now = now_of(around.now_us);
    const auto looks = with.number(1);
    std::string last;
    std::int64_t looked = 0;
    for (auto at = on.leases.upper_bound(std::string{with.text(0)});
         at != on.leases.end() && looked < looks;
         ++looked) {
        last = at->first;
        auto& row = at->second;
        const auto all = on.waiters.find(last);
        const bool watched =
            all != on.waiters.end() &&
            std::any_of(all->second.begin(), all->second.end(), [&](const auto& one) {
                return around.listens(one.second.pid);
            });
        const bool goes = store::purgeable(row.kept, now) && !watched &&
                          !(around.locked && around.locked(last)) &&
                          row.line.head(now, nobody_is_gone) == nullptr;
        at = goes ? on.leases.erase(at) : std::next(at);
    }
    rows told{1};
    told.begin();
    told.text(0, looked < looks ? "" : last);
    reply whole;
    whole.result = told.take();
    return whole;
}

}  // namespace dibs::simulation::postgres
