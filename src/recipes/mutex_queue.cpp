// SPDX-License-Identifier: Apache-2.0
// The mutex's part in the store's queue. A call asks for the key again and again, by wake-up, by
// timer, and with the beat that keeps its ticket alive; it is granted when it is the head of a free
// key. So whatever goes wrong costs time, and the order is the store's alone.

#include "recipes/mutex.hpp"
#include "recipes/mutex_parts.hpp"

#include <algorithm>

namespace dibs::recipes {

void mutex::enter_queue(const call_ptr& which) {
    ++which->where->queued;
    which->in_queue = queue_.insert(queue_.end(), which);
    arm_for_end(which, env_.time.now());
    if (!beat_.armed()) {
        env_.time.arm(beat_, env_.time.now() + beat_every);
    }
}

void mutex::leave_queue(const call_ptr& which) {
    --which->where->queued;
    which->where->tickets.erase(which->number);
    queue_.erase(which->in_queue);
    if (queue_.empty()) {
        env_.time.disarm(beat_);
    }
}

void mutex::note_ticket(const call_ptr& which, const core::answer& given) {
    if (which->number == given.ticket) {
        return;
    }
    auto& known = which->where->tickets;
    known.erase(which->number);
    which->number = given.ticket;
    if (which->number != 0) {
        known[which->number] = which;
    }
}

void mutex::wait_in_queue(const call_ptr& which, const core::answer& given, nanoseconds left) {
    auto& where = *which->where;
    if (store_.caps().wakes && where.watch == place::watch_stage::none) {
        start_watching(which->where);
    }
    const bool first = !where.tickets.empty() && where.tickets.begin()->second == which;
    if (first && where.wakes != which->wakes_seen) {
        attempt(which, env_.time.now());  // woken, perhaps after this answer was given
        return;
    }
    // Nobody is woken when a time is over: the head looks for itself when the holder's is, and the
    // one behind it when the head's is. For all others the beat is enough.
    const bool at_the_front =
        given.position == 1 ||
        (given.position == 2 && given.what == core::verdict::held && given.holders.empty());
    const bool will_be_woken =
        where.watch == place::watch_stage::ready || where.watch == place::watch_stage::asked;
    if (!at_the_front && will_be_woken) {
        arm_for_end(which, env_.time.now());
        return;
    }
    if (!at_the_front) {
        // Nobody tells them that they are the head by now. Who is further back looks less often.
        wait_for_wake(which, std::min(spread(net_without_wakes * given.position), beat_every));
        return;
    }
    const auto net = spread(will_be_woken ? net_behind_wakes(given) : net_without_wakes);
    wait_for_wake(which, std::min(net, left + spread(core::milliseconds{4})));
}

/// A wake-up is for the head of the queue. Of the calls of this process only the one that came first
/// can be that.
void mutex::try_first_in_queue(const place_ptr& where) {
    ++where->wakes;
    if (closed_ || where->tickets.empty()) {
        return;
    }
    const auto first = where->tickets.begin()->second;
    if (!first->trying) {
        attempt(first, env_.time.now());
    }
}

void mutex::keep_tickets_alive() {
    const auto now = env_.time.now();
    for (const auto& which : queue_) {
        if (!which->trying && now - which->asked_at >= beat_every / 2) {
            attempt(which, now);
        }
    }
    env_.time.arm(beat_, now + beat_every);
}

}  // namespace dibs::recipes
