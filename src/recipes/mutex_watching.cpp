// SPDX-License-Identifier: Apache-2.0
// How a key is watched while callers of this process wait for it, and who of many processes asks when it is given back.
#include "recipes/mutex_parts.hpp"

#include <utility>

namespace dibs::recipes {

using core::milliseconds;

namespace {

/// Where standing aside keeps nobody from being woken, a key is watched for so long after the line of its
/// waiters has become empty: with few callers it does so all the time.
constexpr nanoseconds watch_longer = milliseconds{500};
/// Of the processes that a release wakes, about so many ask for the key at once.
constexpr std::uint32_t askers = 4;

}  // namespace

void mutex::start_watching(const place_ptr& where) {
    await_no_notices(*where);  // one of them wakes
    where->watch = place::watch_stage::asked;
    where->watch_id = store_.watch(
        where->key,
        [this, weak = std::weak_ptr<place>(where)](std::error_code error) {
            const auto still = weak.lock();
            if (!still || still->watch != place::watch_stage::asked) {
                return;
            }
            still->watch = error ? place::watch_stage::failed : place::watch_stage::ready;
            advance(still);  // check again: the key may have been given back before the watch held
            try_first_in_queue(still);
        },
        [this, weak = std::weak_ptr<place>(where)](store::wake_by whose) {
            if (const auto still = weak.lock()) {
                woken(still, whose);
            }
        });
}

void mutex::stop_watching(place& where) {
    if (where.watch_id != 0) {
        store_.unwatch(std::exchange(where.watch_id, 0));
    }
    where.watch = place::watch_stage::none;
}

void mutex::await_notices(const place_ptr& where) {
    if (where->notices_id != 0) {
        return;
    }
    where->notices_id = store_.await_notices(
        where->key, [this, weak = std::weak_ptr<place>(where)](store::wake_by whose) {
            if (const auto still = weak.lock()) {
                woken(still, whose);
            }
        });
}

void mutex::await_no_notices(place& where) {
    if (where.notices_id != 0) {
        store_.unwatch(std::exchange(where.notices_id, 0));
    }
}

/// While this process holds the key and nobody of it waits.
void mutex::watch_no_longer(const place_ptr& where) {
    if (where->watch == place::watch_stage::none || !where->current || where->queued > 0) {
        where->watch_until = {};
        return;
    }
    const auto now = env_.time.now();
    if (where->watch_until == instant{}) {
        where->watch_until = now + watch_longer;
    }
    if (now >= where->watch_until) {
        where->watch_until = {};
        stop_watching(*where);
    } else {
        env_.time.arm(where->alarm, where->watch_until);
    }
}

/// Whether this process leaves a key that another one gave back to those who race for it, too. Each
/// of n that wait asks with a chance of `askers` in n, so a release costs a few steps and not n; that
/// none of them asks has a chance of e^-4, and then the first timer of n finds the key free.
bool mutex::sits_out(const place& where) {
    if (where.watchers <= 2 * askers || where.queued > 0 || where.line.empty()) {
        return false;
    }
    const auto& first = where.line.front()->terms;
    return !first.mark && !first.awaits_result && draw() % where.watchers >= askers;
}

void mutex::woken(const place_ptr& where, store::wake_by whose) {
    if (whose == store::wake_by::other_process) {
        where->aside_until = {};  // whom this process left the key to has had it
        if (sits_out(*where)) {
            return;
        }
    }
    where->woken = true;
    advance(where);
    try_first_in_queue(where);
}

}  // namespace dibs::recipes
