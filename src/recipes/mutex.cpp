// SPDX-License-Identifier: Apache-2.0
#include "recipes/mutex.hpp"

#include "recipes/mutex_parts.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

namespace dibs::recipes {

using core::effect;
using core::instant;
using core::milliseconds;
using core::nanoseconds;
using core::reply;
using core::verdict;

namespace {

constexpr nanoseconds retry_longest = std::chrono::seconds{1};
/// Longer than any net; "for ever" does not fit into nanoseconds.
constexpr core::microseconds longest_look_ahead = std::chrono::hours{1};

/// What the store said in its last answer, as it is by now if nothing was renewed: who waited may have asked long ago.
void bring_up_to(instant now, mutex_outcome& outcome) {
    const auto age = std::chrono::floor<core::microseconds>(now - outcome.sent);
    const auto less = [age](core::microseconds left) {
        return left == core::microseconds::max() ? left
                                                 : std::max(left - age, core::microseconds{0});
    };
    for (auto& who : outcome.holders) {
        who.held_for += age;
        who.remaining = less(who.remaining);
    }
    outcome.retry_after = less(outcome.retry_after);
}

}  // namespace

mutex::mutex(core::environment env,
             store::store& through,
             core::batcher& batches,
             core::watchdog& dog,
             core::undo& doubts)
    : env_(env), store_(through), batcher_(batches), watchdog_(dog), undo_(doubts), beat_([this] {
          keep_tickets_alive();
      }) {
    std::array<std::byte, sizeof random_> bytes{};
    env_.random.fill(bytes);
    std::memcpy(&random_, bytes.data(), sizeof random_);
}

mutex::~mutex() = default;

/// Between half and one and a half times as long, so that those who wait do not retry in step.
nanoseconds mutex::spread(nanoseconds pause) {
    const auto permille = 500 + static_cast<std::int64_t>(draw() % 1001);
    return pause / 1000 * permille;
}

std::uint32_t mutex::draw() {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(random_ >> 33U);
}

mutex::place_ptr mutex::place_of(const std::string& key) {
    const auto hash = places_.hash_of(key);
    if (const auto& found = places_.find(key, hash)) {
        return found;
    }
    auto made = std::allocate_shared<place>(core::recycling_allocator<place>{}, key, *this);
    made->me = made;
    places_.add(made, hash);
    return made;
}

void mutex::forget_if_idle(const place_ptr& where) {
    if (where->calls == 0 && !where->current && where->giving_back == 0 &&
        where->giving_shares_back == 0) {
        const bool aside = where->aside_until > instant{} && env_.time.now() < where->aside_until;
        if (!aside || !store_.caps().wakes_all) {
            stop_watching(*where);
        }
        await_no_notices(*where);
        if (!aside) {
            places_.remove(*where);
        } else if (!where->alarm.armed()) {
            env_.time.arm(where->alarm, where->aside_until);
        }
    }
}

// --- acquire -------------------------------------------------------------------------------------

mutex::call_ptr mutex::acquire(std::string key, mutex_terms terms, completion done) {
    auto made = std::allocate_shared<call>(core::recycling_allocator<call>{},
                                           *this,
                                           std::move(key),
                                           std::move(terms),
                                           std::move(done));
    made->me = made;
    if (closed_) {
        env_.exec.post([this, made] { cancel(made, errc::closed); });
        return made;
    }
    const auto now = env_.time.now();
    made->holder = core::holder_id::draw(env_.random);
    const auto& agreed = made->terms;
    made->wait_until = agreed.wait >= instant::max() - now ? instant::max() : now + agreed.wait;
    made->timeout_at = now + agreed.timeout;
    made->where = place_of(made->key);
    ++made->where->calls;
    made->listed = calls_.insert(calls_.end(), made);
    if (made->queues) {
        enter_queue(made);
        attempt(made, now);
    } else if (made->waits()) {
        made->in_line = true;
        made->where->line.push_back(made);
        arm_for_end(made, now);
        if (made->where->line.size() == 1) {
            env_.exec.post([this, where = made->where] { advance(where); });
        }
    } else if (now < made->where->aside_until) {
        retry_in(made, made->where->aside_until - now);
    } else {
        attempt(made, now);
    }
    return made;
}

/// Lets the first caller of the line do what is due next.
void mutex::advance(const place_ptr& where) {
    if (closed_) {
        return;
    }
    if (where->line.empty()) {
        watch_no_longer(where);
        forget_if_idle(where);
        return;
    }
    where->watch_until = {};
    const auto now = env_.time.now();
    if (where->current && !where->current->held(now)) {
        where->current.reset();
        where->hops = 0;
    }
    if (where->current || where->giving_back > 0) {
        return;  // the end of the lease, or of its release, comes back here
    }
    const auto first = where->line.front();
    if (first->trying) {
        return;
    }
    if (now < where->aside_until) {
        env_.time.arm(where->alarm, where->aside_until);
        // Whoever has the key meanwhile is to know that somebody waits here.
        if (store_.caps().wakes_all && where->watch == place::watch_stage::none) {
            start_watching(where);
        }
        return;
    }
    attempt(first, now);
}

void mutex::attempt(const call_ptr& which, instant now) {
    const auto end = limit(*which);
    const auto& terms = which->terms.lease;
    core::acquire asked;
    asked.key = which->key;
    asked.holder = which->holder;
    asked.ttl = std::chrono::duration_cast<core::microseconds>(terms.ttl);
    asked.floor = which->terms.fence_floor;
    asked.part = which->terms.part;
    // What a mark announces is the work of one caller.
    asked.mark = which->terms.mark;
    asked.seen = which->terms.seen;
    const bool may_pass_on =
        which->in_line && which->where->line.size() > 1 && asked.part.exclusive();
    asked.fences = may_pass_on && !asked.mark ? core::fences_for_a_line : 1;
    asked.attached = terms.attached ? core::attachment::attached : core::attachment::detached;
    // Who is here when it expires knows by the deadline; a handle that comes back later does not.
    asked.traced = !terms.attached || which->terms.mark.has_value();
    auto patience = terms.ttl / 6;
    if (which->queues) {
        asked.queue = std::chrono::duration_cast<core::microseconds>(ticket_time);
        patience = std::min(patience, beat_every);  // the next beat should find it answered
        which->wakes_seen = which->where->wakes;
        which->asked_at = now;
    }
    // Who races is not worth it: of many some four ask, and the others watch on.
    const bool for_a_result = which->terms.awaits_result || which->terms.mark.has_value();
    asked.notify = which->in_line && for_a_result && store_.caps().notifies &&
                   which->where->watch == place::watch_stage::none;
    if (asked.notify) {
        await_notices(which->where);
    }
    asked.not_after = not_after(std::min(end, now + patience));
    which->last_not_after = asked.not_after;
    which->unbounded = which->unbounded || !asked.not_after;
    which->watched = which->where->watch == place::watch_stage::ready;
    which->where->woken = false;
    which->trying = true;
    ++which->unanswered;
    which->ticket =
        batcher_.submit(std::move(asked), patience, end, [this, which](const reply& heard) {
            answered(which, heard);
        });
    if (!which->in_line && end != instant::max()) {
        env_.time.arm(which->alarm, end + milliseconds{10});
    }
}

void mutex::answered(const call_ptr& which, const reply& heard) {
    const auto& given = heard.given;
    learn_clock(heard);
    // One that was given up for good may still be carried out: it stays unanswered.
    if (heard.final && given.took != effect::unknown) {
        --which->unanswered;
        if (which->unanswered == 0 && which->finished) {
            if (const auto lease = lease_of(*which)) {
                lease->doubt.answered = true;
            }
        }
    }
    which->last_sent = std::max(which->last_sent, heard.sent);
    const bool granted_now = given.took == effect::yes && given.what == verdict::granted;
    if (which->finished) {
        if (granted_now && !in_use(*which) && given.fences.first != which->granted) {
            settle_doubt(which);
        } else if (which->unanswered == 0) {
            undo_.acquire_answered(which->holder);
        }
        return;
    }
    which->trying = false;
    if (granted_now) {
        granted(which, heard);
    } else if (given.took == effect::yes && given.what != verdict::too_late) {
        stood_off(which, heard);
    } else {
        failed(which, heard);
    }
}

/// Whether a lease under the call's holder id is held: its own, or the one it was handed on as.
bool mutex::in_use(const call& which) {
    const auto lease = lease_of(which);
    return lease && lease->held(env_.time.now());
}

lease_ptr mutex::lease_of(const call& which) {
    if (auto lease = which.lease.lock();
        lease && lease->holder == which.holder && lease->held(env_.time.now())) {
        return lease;
    }
    const auto& where = places_.find(which.key);
    const bool handed_on = where && where->current && where->current->holder == which.holder;
    return handed_on ? where->current : nullptr;
}

void mutex::granted(const call_ptr& which, const reply& heard) {
    const auto now = env_.time.now();
    const auto deadline = core::local_deadline(heard.sent, which->terms.lease.ttl);
    if (now >= deadline) {
        which->may_hold = true;
        which->last.error = errc::timed_out;
        which->last.detail = "the grant came after its own deadline";
        retry_in(which, retry_first);
        return;
    }
    auto lease =
        std::allocate_shared<core::lease_state>(core::recycling_allocator<core::lease_state>{},
                                                which->key,
                                                which->holder,
                                                heard.given.fences.first,
                                                which->terms.lease,
                                                now,
                                                deadline);
    auto& where = *which->where;
    const bool exclusive = which->terms.part.exclusive();
    lease->shared = !exclusive;
    if (exclusive) {
        where.current = lease;
        where.block = heard.given.fences;
        where.granted_at = now;
        where.round_trip = now - heard.sent;
        where.hops = 0;
    }
    // Who holds the key next is to see those who stand in the line while this process stands aside.
    // Nor is it worth while to begin anew at each turn.
    const bool stays = exclusive && store_.caps().wakes_all;
    if (where.queued == (which->queues ? 1U : 0U) && !stays &&
        (exclusive || alone_here(where, *which))) {
        stop_watching(where);
    }
    await_no_notices(where);
    lease->doubt = {.answered = which->unanswered == 0, .not_after = not_after_of(*which)};
    which->lease = lease;
    which->granted = lease->fence();
    which->may_hold = false;
    watchdog_.guard(lease, heard.sent, now);
    ++counters_.granted;
    mutex_outcome outcome;
    outcome.lease = std::move(lease);
    outcome.result = heard.given.result;
    outcome.sent = heard.sent;
    finish(which, std::move(outcome));
    end_overdue(which->where);
}

void mutex::stood_off(const call_ptr& which, const reply& heard) {
    const auto& given = heard.given;
    which->failures = 0;
    which->may_hold = which->unanswered > 0;
    which->last = {};
    which->last.holders = given.holders;
    which->last.retry_after = given.retry_after;
    which->where->watchers = given.watchers;
    which->last.done = given.what == verdict::done;
    which->last.blocked = given.what == verdict::blocked;
    which->last.blocked_reason = given.reason;
    which->last.queue_first = given.what == verdict::held && given.holders.empty();
    which->last.result = given.result;
    which->last.sent = heard.sent;
    if (which->queues) {
        note_ticket(which, given);
    }
    which->not_ready = given.what == verdict::not_ready;
    if (which->not_ready) {
        which->last.error = errc::not_ready;
        which->last.detail = given.detail;
    } else {
        which->stood_off = true;
    }
    if (which->in_line) {
        end_overdue(which->where);
    }
    if (which->finished) {
        return;
    }
    const bool over = !which->waits() || which->last.done || env_.time.now() >= limit(*which);
    if (over) {
        give_up(which);
        return;
    }
    const nanoseconds left =
        std::clamp<core::microseconds>(given.retry_after, milliseconds{1}, longest_look_ahead);
    if (which->queues) {
        wait_in_queue(which, given, left);
    } else if (given.what != verdict::held) {
        wait_for_wake(which, std::min(left, net_with_wakes));
    } else if (store_.caps().wakes && !given.will_notify &&
               which->where->watch == place::watch_stage::none) {
        start_watching(which->where);
        wait_for_wake(which, std::min(left, net_behind_wakes(given)));
    } else if (which->where->woken) {
        attempt(which, env_.time.now());
    } else {
        const bool will_be_woken = given.will_notify ||
                                   which->where->watch == place::watch_stage::ready ||
                                   which->where->watch == place::watch_stage::asked;
        const auto net = spread(will_be_woken ? net_behind_wakes(given) : net_without_wakes);
        // When the first grant expires, all who wait come; a little apart is enough.
        wait_for_wake(which, std::min(net, left + spread(milliseconds{4})));
    }
}

void mutex::failed(const call_ptr& which, const reply& heard) {
    const auto& given = heard.given;
    which->not_ready = false;
    if (given.took == effect::unknown) {
        which->may_hold = true;
    }
    // What the store said to a try before explains more than that this one came too late.
    if (given.what != verdict::too_late) {
        which->last.error = given.error;
        which->last.detail = given.detail;
    } else {
        which->last.error = make_error_code(errc::timed_out);
        if (which->failures == 0) {
            which->last.detail = given.detail;
        }
    }
    const bool worth_a_retry = given.took == effect::unknown || given.what == verdict::too_late ||
                               given.error == condition::retryable;
    // A full disk or a read-only server stays so for longer than a try may take: for that only the
    // wait counts, and who does not wait is told at once.
    const bool refused =
        given.took != effect::unknown && !which->may_hold && given.error == errc::store_refused;
    const auto end =
        refused ? std::max(which->wait_until, which->terms.patient_until) : limit(*which);
    const auto now = env_.time.now();
    if (!worth_a_retry || now >= end || now >= limit(*which)) {
        give_up(which);
        return;
    }
    ++which->failures;
    const auto longest =
        std::min(retry_longest, retry_first * (1 << std::min(which->failures - 1, 10U)));
    const auto pause = std::min(spread(longest), end - now);
    retry_in(which, given.what == verdict::too_late ? nanoseconds::zero() : pause);
}

mutex_trouble mutex::trouble_with(const std::string& key) const {
    const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const auto& one) {
        return one->failures > 0 && one->key == key;
    });
    if (found != calls_.end()) {
        return {(*found)->last.error, (*found)->last.detail};
    }
    const auto noted = noted_.find(key);
    return noted == noted_.end() ? mutex_trouble{} : noted->second;
}

void mutex::note_trouble(const std::string& key, mutex_trouble what) {
    if (what.error) {
        noted_[key] = std::move(what);
    } else {
        noted_.erase(key);
    }
}

void mutex::wait_for_wake(const call_ptr& which, nanoseconds at_most) {
    const auto now = env_.time.now();
    env_.time.arm(which->alarm, std::min(limit(*which), now + at_most));
}

void mutex::retry_in(const call_ptr& which, nanoseconds pause) {
    wait_for_wake(which, pause);
}

/// Whether somebody was seen to have the key: by the call itself, or by the caller before it in the
/// line.
bool mutex::known_held(const call& which) const {
    if (which.stood_off || !which.in_line) {
        return which.stood_off;
    }
    const auto& where = *which.where;
    return (where.current && where.current->held(env_.time.now())) || where.line.front()->stood_off;
}

/// Whether nobody else stands in the line.
bool mutex::alone_here(const place& where, const call& which) {
    return where.line.size() <= (which.in_line ? 1U : 0U);
}

/// When a call ends at the latest. Once it is known that somebody has the key, or that nobody gets it
/// yet, only the wait counts.
instant mutex::limit(const call& which) const {
    return which.not_ready || known_held(which) ? which.wait_until
                                                : std::max(which.wait_until, which.timeout_at);
}

void mutex::arm_for_end(const call_ptr& which, instant now) {
    const bool waiting = now < which->wait_until;
    env_.time.arm(which->alarm, waiting ? which->wait_until : limit(*which));
}

/// Ends those whose wait was over before it was known that somebody has the key.
void mutex::end_overdue(const place_ptr& where) {
    if (where->line.empty()) {
        return;
    }
    const auto now = env_.time.now();
    std::vector<call_ptr> overdue;
    std::copy_if(
        where->line.begin(), where->line.end(), std::back_inserter(overdue), [&](const auto& one) {
            return now >= limit(*one);
        });
    for (const auto& one : overdue) {
        if (!one->finished) {
            give_up(one);
        }
    }
}

void mutex::on_timer(const call_ptr& which) {
    if (which->finished) {
        return;
    }
    const auto now = env_.time.now();
    if (now >= limit(*which)) {
        give_up(which);
    } else if (which->trying || (which->in_line && which->where->line.front() != which)) {
        arm_for_end(which, now);
    } else if (!which->in_line) {
        attempt(which, now);
    } else {
        arm_for_end(which, now);
        advance(which->where);
    }
}

/// The call's time is over, or trying again is of no use.
void mutex::give_up(const call_ptr& which) {
    if (which->trying && batcher_.cancel(which->ticket)) {
        --which->unanswered;
        which->trying = false;
    }
    const bool held = known_held(*which);
    auto outcome = std::move(which->last);
    auto failures = which->failures;
    if (which->in_line && which->where->line.front() != which && !which->stood_off) {
        // It was not its turn: what the store said to the first of the line counts.
        const auto& first = *which->where->line.front();
        outcome.holders = first.last.holders;
        outcome.sent = first.last.sent;
        outcome.error = first.last.error;
        outcome.detail = first.last.detail;
        failures = first.failures;
    }
    const bool trouble = failures > 0 && outcome.error != errc::timed_out;
    if (outcome.error == condition::invalid_argument) {
        // Nobody's having the key explains that.
    } else if (held && !trouble) {
        outcome.error.clear();
    } else if (which->may_hold || which->trying) {
        outcome.error = errc::outcome_unknown;
    } else if (outcome.error == condition::outcome_unknown) {
        outcome.error = errc::timed_out;  // in doubt is another's try
    } else if (!outcome.error && !outcome.done && !outcome.blocked) {
        outcome.error = errc::timed_out;
    }
    if (!outcome.error) {
        ++counters_.busy;
    }
    bring_up_to(env_.time.now(), outcome);
    finish(which, std::move(outcome));
}

void mutex::finish(const call_ptr& which, mutex_outcome&& outcome) {
    which->finished = true;
    calls_.erase(which->listed);
    env_.time.disarm(which->alarm);
    if (which->trying && batcher_.cancel(which->ticket)) {
        --which->unanswered;
        which->trying = false;
    }
    if (which->queues) {
        leave_queue(which);
    }
    const bool own_grant = outcome.lease && outcome.lease->holder == which->holder;
    if (!own_grant && (which->may_hold || which->unanswered > 0 || which->number != 0)) {
        settle_doubt(which);
    }
    const auto where = which->where;
    --where->calls;
    const bool was_first = which->in_line && where->line.front() == which;
    if (was_first) {
        where->line.pop_front();
    } else if (which->in_line) {
        where->line.remove(which);
    }
    which->in_line = false;
    if (was_first && which->stood_off && !where->line.empty()) {
        where->line.front()->stood_off = true;
    }
    which->last = std::move(outcome);
    env_.exec.post([which] {
        auto done = std::move(which->done);
        done(std::move(which->last));
    });
    if (was_first || where->line.empty()) {
        advance(where);
    }
}

void mutex::settle_doubt(const call_ptr& which) {
    undo_.settle({.key = which->key,
                  .holder = which->holder,
                  .ttl = which->terms.lease.ttl,
                  .last_sent = std::max(which->last_sent, env_.time.now()),
                  .not_after = not_after_of(*which),
                  .answered = which->unanswered == 0});
}

std::optional<core::store_instant> mutex::not_after_of(const call& which) {
    return which.unbounded ? std::nullopt : which.last_not_after;
}

void mutex::cancel(const call_ptr& which, errc why) {
    if (which->finished) {
        return;
    }
    mutex_outcome outcome;
    outcome.error = why;
    if (which->where) {
        finish(which, std::move(outcome));
    } else {
        which->finished = true;
        auto done = std::move(which->done);  // what it holds may hold the call
        done(std::move(outcome));
    }
}

// --- the end of a lease, and of all ---------------------------------------------------------------

void mutex::lost(const lease_ptr& lease) {
    const auto where = places_.find(lease->key());
    if (!where || where->current != lease) {
        return;
    }
    where->current.reset();
    where->hops = 0;
    env_.exec.post([this, where] { advance(where); });
}

/// Whether it is a share, nobody here knows: so those who wait here ask the store, as they would if
/// another process had adopted it.
void mutex::adopted(const lease_ptr& lease, instant sent) {
    ++counters_.granted;
    watchdog_.guard(lease, sent);
}

bool mutex::give_away(const lease_ptr& lease) {
    if (!lease->end_by_release()) {
        return false;
    }
    watchdog_.forget(*lease);
    lost(lease);
    return true;
}

void mutex::close() {
    closed_ = true;
    while (!calls_.empty()) {
        const auto which = calls_.front();
        cancel(which, errc::closed);
    }
}

// --- the store's clock ---------------------------------------------------------------------------

void mutex::learn_clock(const reply& heard) {
    if (heard.given.took == effect::yes) {
        clock_ = {heard.given.now.lease, heard.sent};
    }
}

/// `until` on the store's clock, or a little later; empty when its clock was never seen.
std::optional<core::store_instant> mutex::not_after(instant until) const {
    if (!clock_ || until == instant::max()) {
        return std::nullopt;
    }
    const auto ahead = until - clock_->local;
    const auto slack = ahead / 50 + milliseconds{20};
    return clock_->store + std::chrono::duration_cast<core::microseconds>(ahead + slack);
}

}  // namespace dibs::recipes
