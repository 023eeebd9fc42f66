// SPDX-License-Identifier: Apache-2.0
#include "core/watchdog.hpp"

#include "core/recycling_allocator.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace dibs::core {

namespace {

/// A deadline noticed this much too late means that the process did not run, rather than that the
/// store was gone.
constexpr nanoseconds asleep_after = std::chrono::seconds{1};

/// A renewal waits for this part of its pause until a batch is full: nobody waits for it.
constexpr int linger_part = 100;

/// Spreads bits (the finaliser of SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t bits) noexcept {
    bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
    return bits ^ (bits >> 31U);
}

[[nodiscard]] bool limited(const lease_state& lease) noexcept {
    return lease.terms.max_hold > nanoseconds::zero();
}

[[nodiscard]] instant end_of_hold(const lease_state& lease) noexcept {
    return limited(lease) ? lease.since() + lease.terms.max_hold : instant::max();
}

/// Until when a renewal for `ttl` that leaves at `sent` makes the lease last.
[[nodiscard]] instant deadline_by(const lease_state& lease,
                                  instant sent,
                                  nanoseconds ttl) noexcept {
    return std::min(local_deadline(sent, ttl), end_of_hold(lease));
}

/// Renewed, but not the grant that this lease stands on: that one has ended, and an acquire of ours
/// that came late or twice was granted anew. Others may have had the key in between.
[[nodiscard]] bool of_another_grant(const lease_state& lease, const answer& given) noexcept {
    return given.took == effect::yes && given.what == verdict::renewed && given.fences.last != 0 &&
           !given.fences.contains(lease.fence());
}

void give_back(undo& through, const lease_state& lease, const holder_id& holder, instant sent) {
    through.settle({.key = lease.key(),
                    .holder = holder,
                    .ttl = lease.terms.ttl,
                    .last_sent = sent,
                    .not_after = lease.doubt.not_after,
                    .answered = lease.doubt.answered});
}

}  // namespace

struct guarded_lease : std::enable_shared_from_this<guarded_lease> {
    guarded_lease(watchdog::lease_ptr held, timer::action on_alarm)
        : lease(std::move(held)), alarm(std::move(on_alarm)) {}

    watchdog::lease_ptr lease;
    guarded_lease* previous = nullptr;
    guarded_lease* next = nullptr;
    timer alarm;
    instant renew_at = instant::max();
    instant last_sent{};
    unsigned failures = 0;
    std::uint64_t sends = 0;  ///< numbers the renewals
    unsigned unanswered = 0;  ///< those that may still be executed
    bool on_its_way = false;  ///< the latest renewal was handed to the batcher and is not answered
    bool told_to_stop = false;
    batcher::ticket ticket;

    struct wish {
        nanoseconds ttl;
        std::optional<renew::change> into;
        batcher::completion done;
    };
    /// Few holders ask for anything.
    struct wish_list {
        std::vector<wish> waiting;    ///< came while a renewal was on its way
        std::optional<wish> current;  ///< whose renewal is on its way
    };
    std::unique_ptr<wish_list> wishes;

    void add(wish added) {
        if (!wishes) {
            wishes = std::make_unique<wish_list>();
        }
        wishes->waiting.push_back(std::move(added));
    }
    [[nodiscard]] bool asked() const noexcept { return wishes && !wishes->waiting.empty(); }
    /// Requires: asked().
    const wish& begin_next() {
        auto& waiting = wishes->waiting;
        wishes->current = std::move(waiting.front());
        waiting.erase(waiting.begin());
        return *wishes->current;
    }
    [[nodiscard]] const wish* current() const noexcept {
        return wishes && wishes->current ? &*wishes->current : nullptr;
    }
    [[nodiscard]] std::optional<wish> take_current() noexcept {
        return wishes ? std::exchange(wishes->current, std::nullopt) : std::nullopt;
    }

    /// A renewal that shortens the lease counts from when it is sent, since its answer may get
    /// lost. Answers to earlier renewals do not lift that.
    std::uint64_t shortening_send = 0;
    instant shortened_to = instant::max();
};

watchdog::watchdog(environment env, batcher& through, undo& doubts, listener told)
    : env_(env), batcher_(through), undo_(doubts), listener_(std::move(told)) {
    std::array<std::byte, sizeof seed_> bytes{};
    env_.random.fill(bytes);
    std::memcpy(&seed_, bytes.data(), sizeof seed_);
}

watchdog::~watchdog() {
    while (first_ != nullptr) {
        const auto lease = first_->lease;
        unlink(*first_);
        lease->guard.reset();
    }
}

void watchdog::link(guarded_lease& added) noexcept {
    added.next = first_;
    if (first_ != nullptr) {
        first_->previous = &added;
    }
    first_ = &added;
}

void watchdog::unlink(guarded_lease& gone) noexcept {
    (gone.previous != nullptr ? gone.previous->next : first_) = gone.next;
    if (gone.next != nullptr) {
        gone.next->previous = gone.previous;
    }
    gone.previous = gone.next = nullptr;
}

// Drawn from the moment of sending, so that leases renewed in one batch stay together, while
// processes drift apart.
nanoseconds watchdog::jittered(nanoseconds every, instant sent) const noexcept {
    const auto bits = mixed(seed_ ^ static_cast<std::uint64_t>(sent.time_since_epoch().count()));
    const auto permille = 900 + static_cast<std::int64_t>(bits % 191);  // and it may linger
    return every / 1000 * permille;
}

void watchdog::guard(const lease_ptr& lease, instant sent, instant now) {
    auto added = std::allocate_shared<guarded_lease>(
        recycling_allocator<guarded_lease>{}, lease, [this, held = lease.get()] {
            wake(*held->guard);
        });
    added->last_sent = sent;
    lease->shorten(end_of_hold(*lease));
    if (lease->terms.renew_every > nanoseconds::zero()) {
        added->renew_at = sent + jittered(lease->terms.renew_every, sent);
    }
    lease->guard = added;
    link(*added);
    schedule(*added, now);
}

bool watchdog::forget(const lease_state& lease) {
    const auto which = lease.guard;
    if (!which) {
        return false;
    }
    unlink(*which);
    which->lease->guard.reset();
    env_.time.disarm(which->alarm);
    batcher_.cancel(which->ticket);
    if (const auto wishes = std::move(which->wishes)) {
        const auto tell = [](guarded_lease::wish& wish) {
            wish.done({.given = refused(errc::not_held, "the lease was given back meanwhile")});
        };
        if (wishes->current && wishes->current->done) {
            tell(*wishes->current);
        }
        std::for_each(wishes->waiting.begin(), wishes->waiting.end(), tell);
    }
    return true;
}

bool watchdog::in_doubt(const lease_state& lease) const {
    return lease.guard && (lease.guard->on_its_way || lease.guard->unanswered > 0);
}

void watchdog::doubt_all() {
    const auto now = env_.time.now();
    for (auto* which = first_; which != nullptr; which = which->next) {
        which->renew_at = std::min(which->renew_at, now);
        schedule(*which, now);
    }
}

std::vector<watchdog::lease_ptr> watchdog::guarded() const {
    std::vector<lease_ptr> all;
    for (auto* which = first_; which != nullptr; which = which->next) {
        all.push_back(which->lease);
    }
    return all;
}

void watchdog::schedule(guarded_lease& which, instant now) {
    const auto& lease = *which.lease;
    auto next = lease.deadline();
    if (!which.on_its_way) {
        next = std::min(next, which.renew_at);
    }
    if (!which.told_to_stop && lease.terms.notice > nanoseconds::zero()) {
        next = std::min(next, lease.deadline() - lease.terms.notice);
    }
    env_.time.arm(which.alarm, std::max(next, now));
}

void watchdog::ask_holder_to_stop(guarded_lease& which) {
    which.told_to_stop = true;
    env_.notices.notify([lease = which.lease] { lease->request_lost(); });
}

void watchdog::expire(guarded_lease& which, instant now) {
    const auto& lease = *which.lease;
    const bool asleep = now - lease.deadline() > std::min(asleep_after, lease.terms.ttl);
    lose(which.lease,
         now >= end_of_hold(lease) ? errc::max_hold_reached
         : asleep                  ? errc::holder_was_asleep
                                   : errc::lease_expired);
}

void watchdog::wake(guarded_lease& which) {
    const auto keep = which.shared_from_this();
    const auto now = env_.time.now();
    auto& lease = *which.lease;
    if (now >= lease.deadline()) {
        expire(which, now);
        return;
    }
    const bool notice_is_due =
        lease.terms.notice > nanoseconds::zero() && now >= lease.deadline() - lease.terms.notice;
    if (!which.told_to_stop && notice_is_due) {
        ask_holder_to_stop(which);
    }
    if (lease.deadline() == end_of_hold(lease)) {
        which.renew_at = instant::max();  // no renewal can prolong it any more
    }
    if (!which.on_its_way && now >= which.renew_at) {
        send(which, now);
    }
    schedule(which, now);
}

void watchdog::send(guarded_lease& which, instant now) {
    auto& lease = *which.lease;
    renew asked;
    asked.key = lease.key();
    asked.holder = lease.holder;
    auto ttl = lease.terms.ttl;
    auto linger = which.failures == 0 ? lease.terms.renew_every / linger_part : nanoseconds::zero();
    if (which.asked()) {
        linger = nanoseconds::zero();
        const auto& wish = which.begin_next();
        ttl = wish.ttl;
        asked.adopt = wish.into;
    }
    asked.ttl = std::chrono::duration_cast<microseconds>(ttl);
    const auto number = ++which.sends;
    if (const auto at_worst = deadline_by(lease, now, ttl); at_worst < lease.deadline()) {
        lease.shorten(at_worst);
        which.shortening_send = number;
        which.shortened_to = at_worst;
    }
    which.on_its_way = true;
    ++which.unanswered;
    which.ticket = batcher_.submit(
        std::move(asked),
        std::min(lease.terms.ttl, ttl) / 6,
        std::max(lease.deadline(), now + milliseconds{1}),
        [this, number, ttl, asked_as = lease.holder, weak = which.weak_from_this()](
            const reply& heard) {
            const auto still = weak.lock();
            if (!still || still->lease->guard != still) {
                return;
            }
            still->unanswered -= heard.final ? 1 : 0;
            if (number == still->sends && still->on_its_way) {
                answered(still, heard);
            } else if (asked_as == still->lease->holder) {
                answered_late(*still, number, ttl, heard);
            }
        },
        linger >= milliseconds{1} ? linger : nanoseconds::zero());
}

// The answer of a renewal that was given up as unknown; another one may be on its way meanwhile.
void watchdog::answered_late(guarded_lease& which,
                             std::uint64_t number,
                             nanoseconds ttl,
                             const reply& heard) {
    if (heard.given.took != effect::yes) {
        return;
    }
    const auto keep = which.shared_from_this();
    const auto now = env_.time.now();
    if (of_another_grant(*which.lease, heard.given)) {
        lose(which.lease, errc::lease_gone);
        give_back(undo_, *which.lease, which.lease->holder, heard.sent);
    } else if (heard.given.what != verdict::renewed) {
        lose(which.lease, reason_of(heard.given.lost));
    } else if (heard.sent > which.last_sent) {
        which.last_sent = heard.sent;
        auto deadline = deadline_by(*which.lease, heard.sent, ttl);
        if (number < which.shortening_send) {
            deadline = std::min(deadline, which.shortened_to);
        }
        if (which.lease->prolong(now, deadline)) {
            schedule(which, now);
        } else {
            expire(which, now);
        }
    }
}

void watchdog::answered(const guarded_ptr& which, const reply& heard) {
    const auto now = env_.time.now();
    const auto& given = heard.given;
    which->ticket = {};  // it keeps the memory of what it names
    if (of_another_grant(*which->lease, given)) {
        auto wish = which->take_current();
        const auto& lease = *which->lease;
        const auto holder = wish && wish->into ? wish->into->holder : lease.holder;
        lose(which->lease, errc::lease_gone);
        give_back(undo_, lease, holder, heard.sent);
        if (wish && wish->done) {
            wish->done({.given = refused(errc::not_held, "the lease was lost meanwhile")});
        }
        return;
    }
    if (given.took == effect::yes && given.what == verdict::renewed) {
        if (now >= which->lease->deadline() || !renewed(*which, heard)) {
            auto wish = which->take_current();
            expire(*which, now);
            if (wish && wish->done) {
                wish->done({.given = refused(errc::not_held, "the lease was lost meanwhile")});
            }
            return;
        }
    } else if (given.took == effect::yes) {
        // Our own undo or a foreign hand ended it. A holder id that changed meanwhile (adoption) is
        // no loss of ours.
        auto wish = which->take_current();
        lose(which->lease, reason_of(given.lost));
        if (wish && wish->done) {
            wish->done({.given = given, .sent = heard.sent});
        }
        return;
    } else {
        ++counters_.renew_failed;
        ++which->failures;
        which->lease->note_renewal_trouble(given.detail.empty() ? given.error.message()
                                                                : given.detail);
        if (listener_.renewal_failed) {
            listener_.renewal_failed(*which->lease, given);
        }
        const auto longest = which->lease->terms.ttl / 6;
        const auto pause = std::min(longest, longest / 16 * (1 << std::min(which->failures, 4U)));
        if (which->renew_at != instant::max()) {
            which->renew_at = now + std::min(longest, jittered(pause, now));
        }
    }
    which->on_its_way = false;
    if (auto wish = which->take_current(); wish && wish->done) {
        wish->done({.given = given, .sent = heard.sent});
    }
    if (which->lease->guard != which) {
        return;
    }
    if (which->asked()) {
        send(*which, now);
    }
    schedule(*which, now);
}

bool watchdog::renewed(guarded_lease& which, const reply& heard) {
    auto& lease = *which.lease;
    which.last_sent = heard.sent;
    which.failures = 0;
    lease.forget_renewal_trouble();
    ++counters_.renewed;
    if (const auto* const wish = which.current()) {
        lease.terms.ttl = wish->ttl;
        lease.terms.renew_every = std::min(lease.terms.renew_every, wish->ttl / 3);
        if (wish->into) {
            lease.holder = wish->into->holder;
            lease.terms.attached = wish->into->attached == attachment::attached;
        }
    }
    which.shortening_send = 0;
    if (which.renew_at != instant::max()) {
        which.renew_at = heard.sent + jittered(lease.terms.renew_every, heard.sent);
    }
    return lease.prolong(env_.time.now(), deadline_by(lease, heard.sent, lease.terms.ttl));
}

void watchdog::renew_now(const lease_ptr& lease, nanoseconds ttl, batcher::completion done) {
    if (!lease->guard) {
        done({.given = refused(errc::not_held, "the lease is not held")});
        return;
    }
    auto& which = *lease->guard;
    which.add({ttl, std::nullopt, std::move(done)});
    if (!which.on_its_way) {
        const auto now = env_.time.now();
        send(which, now);
        schedule(which, now);
    }
}

void watchdog::change(const lease_ptr& lease, renew::change into, batcher::completion done) {
    if (!lease->guard) {
        done({.given = refused(errc::not_held, "the lease is not held")});
        return;
    }
    auto& which = *lease->guard;
    which.add({lease->terms.ttl, into, std::move(done)});
    if (!which.on_its_way) {
        const auto now = env_.time.now();
        send(which, now);
        schedule(which, now);
    }
}

void watchdog::lose(const lease_ptr& lease, errc reason) {
    const auto which = lease->guard;
    if (!which) {
        return;
    }
    lease->lose(reason);
    ++counters_.lost;
    if (listener_.lost) {
        listener_.lost(lease);
    }
    if (!which->told_to_stop) {
        ask_holder_to_stop(*which);
    }
    forget(*lease);
    const bool store_may_have_it = reason != errc::lease_taken && reason != errc::lease_revoked &&
                                   reason != errc::lease_gone && reason != errc::store_replaced;
    if (store_may_have_it) {
        give_back(undo_, *lease, lease->holder, which->last_sent);
    }
}

}  // namespace dibs::core
