// SPDX-License-Identifier: Apache-2.0
#include "store/record/rules.hpp"

#include "core/fence.hpp"
#include "core/verb_fault.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

namespace dibs::store {

namespace {

using core::answer;
using core::effect;
using core::grant;
using core::loss;
using core::microseconds;
using core::record;
using core::store_now;
using core::verdict;

/// Signed in SQL, and a double must be able to pass on what people will live to see
/// (core/fence.hpp).
constexpr core::fence_number fence_max = std::numeric_limits<std::int64_t>::max();

/// How long the traces of a grant that ended without its holder are kept for a late finish.
constexpr microseconds trace_kept = std::chrono::hours{1};

/// `at + by`, for ever when that is out of reach.
template <typename Instant>
Instant later(Instant at, microseconds by) noexcept {
    const auto room = Instant::max() - std::max(at, Instant{});
    return by >= room ? Instant::max() : at + by;
}

/// How long until `end`; for ever when that is for ever, 0 when it has passed.
template <typename Instant>
microseconds left(Instant end, Instant now) noexcept {
    if (end == Instant::max()) {
        return core::result_to_keep::forever;
    }
    return end > now ? end - now : microseconds{0};
}

// A grant that an operator ended stays as a trace until the next one, so that its holder can be
// told why; it is told apart from an expired one by an expiry before its own beginning.
void end_by_operator(grant& ended, store_now now) noexcept {
    ended.granted = now.lease;
    ended.expires = now.lease - microseconds{1};
}

bool ended_by_operator(const grant& ended) noexcept {
    return ended.expires < ended.granted;
}

grant* find_live(record& kept, const core::holder_id& holder, store_now now) noexcept {
    const auto found = std::find_if(kept.grants.begin(), kept.grants.end(), [&](const grant& one) {
        return one.holder == holder && one.live(now);
    });
    return found == kept.grants.end() ? nullptr : &*found;
}

grant* find_trace(record& kept, const core::holder_id& holder) noexcept {
    const auto found = std::find_if(kept.grants.begin(), kept.grants.end(), [&](const grant& one) {
        return one.holder == holder;
    });
    return found == kept.grants.end() ? nullptr : &*found;
}

bool anybody_live(const record& kept, store_now now) noexcept {
    return std::any_of(
        kept.grants.begin(), kept.grants.end(), [&](const grant& one) { return one.live(now); });
}

std::uint64_t weight_in_use(const record& kept, store_now now) noexcept {
    std::uint64_t sum = 0;
    for (const auto& one : kept.grants) {
        sum += one.live(now) ? one.weight : 0;
    }
    return sum;
}

bool blocked(const record& kept, store_now now) noexcept {
    return now.wall < kept.blocked_until;
}

core::boxed<core::kept_result> readable(const record& kept,
                                        store_now now,
                                        core::fence_number seen = 0) {
    if (!kept.result || now.wall >= kept.result->keep_until) {
        return std::nullopt;
    }
    const auto& stored = *kept.result;
    core::kept_result shown;
    shown.value = stored.value;
    shown.fence = stored.fence;
    shown.is_mark = stored.is_mark;
    shown.fresh = now.wall < stored.fresh_until && stored.fence > seen;
    shown.age = std::max(now.wall - stored.written, microseconds{0});
    shown.fresh_left = left(stored.fresh_until, now.wall);
    shown.keep_left = left(stored.keep_until, now.wall);
    return shown;
}

core::holder_info shown(const grant& one, const rules_context& context) {
    core::holder_info info;
    info.who = context.who.who(one.process);
    info.fences = one.fences;
    info.weight = one.weight;
    info.attached = one.attached;
    info.held_for = std::max(context.now.lease - one.granted, microseconds{0});
    info.remaining = left(one.expires, context.now.lease);
    info.self = one.process == context.self;
    return info;
}

std::vector<core::holder_info> live_holders(const record& kept, const rules_context& context) {
    std::vector<core::holder_info> holders;
    for (const auto& one : kept.grants) {
        if (one.live(context.now)) {
            holders.push_back(shown(one, context));
        }
    }
    return holders;
}

void keep(record& kept,
          const core::result_to_keep& wanted,
          core::fence_number fence,
          bool is_mark,
          store_now now) {
    core::stored_result stored;
    stored.value = wanted.value;
    stored.fence = fence;
    stored.is_mark = is_mark;
    stored.written = now.wall;
    // Never fresh is never fresh, also for whoever's calendar is behind the one that wrote it.
    stored.fresh_until =
        wanted.fresh == microseconds{0} ? core::wall_instant{} : later(now.wall, wanted.fresh);
    stored.keep_until = std::max(stored.fresh_until, later(now.wall, wanted.keep));
    kept.result = std::move(stored);
}

step refuse(errc why, std::string detail) {
    return {.reply = core::refused(why, std::move(detail))};
}

step answered(verdict what, const rules_context& context) {
    step taken;
    taken.reply.what = what;
    taken.reply.took = effect::yes;
    taken.reply.now = context.now;
    return taken;
}

/// A live grant of this holder is not there: what became of it?
step not_held(const core::holder_id& holder, record& kept, const rules_context& context) {
    auto refusal = answered(verdict::not_held, context);
    const auto* trace = find_trace(kept, holder);
    if (trace != nullptr) {
        refusal.reply.lost = ended_by_operator(*trace) ? loss::revoked : loss::expired;
    } else {
        // Traces go with the next grant. So somebody else's there means that one was given since.
        refusal.reply.lost = kept.grants.empty() ? loss::gone : loss::taken;
    }
    refusal.reply.result = readable(kept, context.now);
    return refusal;
}

step give(const core::acquire& asked, record& kept, const rules_context& context) {
    const auto fences = core::next_fences(kept.fence, context.now.wall, asked.floor, asked.fences);
    if (fences.last > fence_max) {
        return refuse(errc::invalid_argument, "the fence would not fit in 63 bits");
    }
    std::erase_if(kept.grants, [&](const grant& one) { return !one.live(context.now); });
    grant given;
    given.holder = asked.holder;
    given.fences = fences;
    given.weight = asked.part.weight;
    given.attached = asked.attached;
    given.granted = context.now.lease;
    given.expires = later(context.now.lease, asked.ttl);
    given.process = context.self;
    kept.fence = fences.last;
    kept.capacity = asked.part.capacity;
    kept.grants.push_back(given);
    if (asked.mark) {
        keep(kept, *asked.mark, fences.last, true, context.now);
    }

    auto granted = answered(verdict::granted, context);
    granted.reply.fences = given.fences;
    granted.reply.expires = given.expires;
    granted.changed = true;
    // A release wakes one waiter; where several fit in, each lets the next one know.
    granted.freed = weight_in_use(kept, context.now) < kept.capacity;
    return granted;
}

bool heads(const queue_sight& queue) noexcept {
    return queue.mine && queue.head && queue.mine->number == queue.head->number;
}

/// It is not granted now: whoever asked for it stands in the queue from now on, or still does.
step queued(step refusal, const core::acquire& asked, const queue_sight& queue) {
    if (asked.queue > microseconds{0}) {
        refusal.ticket = queue.mine ? queue_step::prolong : queue_step::enter;
    }
    return refusal;
}

/// The holder's ticket, if it has one, is of no use any more. Whoever comes next must hear of it.
step without_ticket(step taken,
                    const record& kept,
                    const rules_context& context,
                    const queue_sight& queue) {
    if (queue.mine) {
        taken.ticket = queue_step::leave;
        taken.freed = taken.freed || (heads(queue) && !blocked(kept, context.now) &&
                                      weight_in_use(kept, context.now) < kept.capacity);
    }
    return taken;
}

/// Steps 2 to 9 of the order in store.hpp; step 8 is not for stores that decide in this process.
step decide(const core::acquire& asked,
            record& kept,
            const rules_context& context,
            const queue_sight& queue) {
    const auto now = context.now;
    if (auto* mine = find_live(kept, asked.holder, now)) {
        mine->expires = later(now.lease, asked.ttl);
        auto granted = answered(verdict::granted, context);
        granted.reply.fences = mine->fences;
        granted.reply.expires = mine->expires;
        granted.changed = true;
        return granted;
    }
    const auto agreed = anybody_live(kept, now) ? kept.capacity : asked.part.capacity;
    const auto capacity = std::min(agreed, asked.part.capacity);
    if (agreed != asked.part.capacity && capacity != 1) {
        return {.reply = core::capacity_differs(agreed, asked.part.capacity)};
    }
    if (blocked(kept, now)) {
        auto refusal = answered(verdict::blocked, context);
        refusal.reply.reason = kept.blocked_reason;
        refusal.reply.retry_after = left(kept.blocked_until, now.wall);
        return queued(std::move(refusal), asked, queue);
    }
    if (weight_in_use(kept, now) + asked.part.weight > capacity) {
        auto refusal = answered(verdict::held, context);
        refusal.reply.holders = live_holders(kept, context);
        refusal.reply.retry_after = core::result_to_keep::forever;
        for (const auto& holder : refusal.reply.holders) {
            refusal.reply.retry_after = std::min(refusal.reply.retry_after, holder.remaining);
        }
        return queued(std::move(refusal), asked, queue);
    }
    const auto result = readable(kept, now, asked.seen);
    if (result && result->fresh) {
        return without_ticket(answered(verdict::done, context), kept, context, queue);
    }
    if (queue.head && !heads(queue)) {
        auto refusal = answered(verdict::held, context);
        refusal.reply.holders = live_holders(kept, context);
        refusal.reply.retry_after = left(queue.head->until, now.lease);
        // Whoever finds a free key reminds its head, which may have missed its wake-up. But not its
        // own process: where nobody is behind that ticket any more, it would come back here at once,
        // again and again.
        refusal.freed = queue.head->process != context.self;
        return queued(std::move(refusal), asked, queue);
    }
    auto given = give(asked, kept, context);
    if (queue.mine && given.changed) {
        given.ticket = queue_step::leave;
    }
    return given;
}

step carry_out(const core::acquire& asked,
               record& kept,
               const rules_context& context,
               const queue_sight& queue) {
    // As it was found: who takes the key over reads what was left there, also when a mark of its
    // own replaces it.
    auto found = readable(kept, context.now, asked.seen);
    auto taken = asked.not_after && context.now.lease > *asked.not_after
                     ? answered(verdict::too_late, context)
                     : decide(asked, kept, context, queue);
    taken.reply.result = std::move(found);
    return taken;
}

step carry_out(const core::renew& asked,
               record& kept,
               const rules_context& context,
               const queue_sight& /*queue*/) {
    const auto now = context.now;
    auto* mine = find_live(kept, asked.holder, now);
    if (mine == nullptr) {
        return not_held(asked.holder, kept, context);
    }
    if (asked.adopt && asked.adopt->holder != asked.holder &&
        find_live(kept, asked.adopt->holder, now) != nullptr) {
        return refuse(errc::invalid_argument, "the holder id to adopt the lease holds the key");
    }
    auto fences = mine->fences;
    if (asked.fences > 0) {
        fences = core::next_fences(kept.fence, now.wall, 0, asked.fences);
        if (fences.last > fence_max) {
            return refuse(errc::invalid_argument, "the fence would not fit in 63 bits");
        }
        kept.fence = fences.last;
    }
    mine->fences = fences;
    mine->expires = later(now.lease, asked.ttl);
    if (asked.adopt) {
        // The adopter's id may have left a trace here; what is asked about it from now on is this
        // grant.
        const auto adopted = *mine;
        std::erase_if(kept.grants, [&](const grant& one) {
            return one.holder == asked.holder || one.holder == asked.adopt->holder;
        });
        kept.grants.push_back(adopted);
        mine = &kept.grants.back();
        mine->holder = asked.adopt->holder;
        mine->attached = asked.adopt->attached;
        mine->process = context.self;
    }
    auto renewed = answered(verdict::renewed, context);
    renewed.reply.fences = mine->fences;
    renewed.reply.expires = mine->expires;
    renewed.reply.result = readable(kept, now);
    renewed.changed = true;
    return renewed;
}

step carry_out(const core::release& asked,
               record& kept,
               const rules_context& context,
               const queue_sight& queue) {
    const auto now = context.now;
    const auto* mine = find_live(kept, asked.holder, now);
    if (mine == nullptr && asked.result && asked.late) {
        const auto* trace = find_trace(kept, asked.holder);
        if (trace != nullptr && !ended_by_operator(*trace) && trace->fences.last == kept.fence) {
            mine = trace;
        }
    }
    if (mine == nullptr) {
        return without_ticket(not_held(asked.holder, kept, context), kept, context, queue);
    }
    if (asked.result) {
        keep(kept, *asked.result, mine->fences.last, false, now);
    }
    std::erase_if(kept.grants, [&](const grant& one) { return one.holder == asked.holder; });
    auto ended = answered(asked.result ? verdict::finished : verdict::released, context);
    ended.reply.result = readable(kept, now);
    ended.changed = true;
    ended.freed = true;
    return ended;
}

step carry_out(const core::revoke& asked,
               record& kept,
               const rules_context& context,
               const queue_sight& /*queue*/) {
    const auto found = std::find_if(kept.grants.begin(), kept.grants.end(), [&](const grant& one) {
        return one.live(context.now) && one.fences.contains(asked.fence);
    });
    if (found == kept.grants.end()) {
        auto refusal = answered(verdict::fence_moved, context);
        refusal.reply.holders = live_holders(kept, context);
        return refusal;
    }
    kept.revoked = found->fences.last;
    end_by_operator(*found, context.now);
    auto ended = answered(verdict::revoked, context);
    ended.changed = true;
    ended.freed = true;
    return ended;
}

step carry_out(const core::block& asked,
               record& kept,
               const rules_context& context,
               const queue_sight& /*queue*/) {
    const bool lifted = asked.duration == microseconds{0};
    auto set = answered(verdict::block_set, context);
    set.changed = true;
    set.freed = lifted && blocked(kept, context.now);
    kept.blocked_until = lifted ? core::wall_instant{} : later(context.now.wall, asked.duration);
    kept.blocked_reason = lifted ? std::string{} : asked.reason;
    return set;
}

}  // namespace

step apply(const core::verb& what,
           core::record& record,
           const rules_context& context,
           const queue_sight& queue) {
    if (const auto fault = core::fault_of(what); !fault.empty()) {
        return refuse(errc::invalid_argument, std::string{fault});
    }
    return std::visit([&](const auto& asked) { return carry_out(asked, record, context, queue); },
                      what);
}

core::holder_id ticket_holder(const core::verb& what) noexcept {
    if (const auto* asked = std::get_if<core::acquire>(&what)) {
        return asked->holder;
    }
    const auto* given = std::get_if<core::release>(&what);
    return given != nullptr ? given->holder : core::holder_id{};
}

core::queued_info describe(const core::ticket& one, const rules_context& context) {
    core::queued_info info;
    info.who = context.who.who(one.process);
    info.waiting_for = std::max(context.now.lease - one.entered, microseconds{0});
    info.self = one.process == context.self;
    return info;
}

core::record_info describe(const std::string& key,
                           const core::record& record,
                           const rules_context& context) {
    core::record_info info;
    info.key = key;
    info.fence = record.fence;
    info.part.capacity = record.capacity;
    info.holders = live_holders(record, context);
    info.result = readable(record, context.now);
    if (blocked(record, context.now)) {
        info.blocked_for = left(record.blocked_until, context.now.wall);
        info.blocked_reason = record.blocked_reason;
    }
    return info;
}

namespace {
/// A block of fences reaches back from the clock, by a microsecond each. It must not reach those of
/// a record that was forgotten.
constexpr microseconds purge_margin = std::chrono::seconds{1};
}  // namespace

bool purgeable(const core::record& record, core::store_now now) noexcept {
    const bool kept = record.result && now.wall < record.result->keep_until;
    const auto clock = now.wall.time_since_epoch().count();
    // An attached holder whose process is gone finishes nothing any more. Another one might: late,
    // but with a result that must not be thrown away.
    const bool traced =
        std::any_of(record.grants.begin(), record.grants.end(), [&](const grant& one) {
            return !one.dead && now.lease < later(one.expires, trace_kept);
        });
    return !kept && !traced && !blocked(record, now) && clock > purge_margin.count() &&
           record.fence < static_cast<core::fence_number>(clock - purge_margin.count());
}

}  // namespace dibs::store
