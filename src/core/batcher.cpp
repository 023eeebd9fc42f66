// SPDX-License-Identifier: Apache-2.0
#include "core/batcher.hpp"

#include "core/payload.hpp"
#include "core/recycling_allocator.hpp"

#include <algorithm>
#include <utility>

namespace dibs::core {

namespace {

/// However long a lease lasts, its operations hold up those of others for no longer than this.
constexpr nanoseconds patience_max = std::chrono::seconds{5};

/// Of one lane. More would only grow the store's own queue.
constexpr unsigned flights_max = 4;

/// A batch leaves beside others when it holds this many. Smaller ones cost the store more in steps
/// than they save in waiting.
constexpr std::size_t worth_a_flight = 32;

}  // namespace

struct batcher::pending {
    pending(verb&& asked, nanoseconds within, instant until, completion&& told, instant leaves)
        : what(std::move(asked)),
          patience(within),
          give_up(until),
          done(std::move(told)),
          leaves_at(leaves) {}

    verb what;
    nanoseconds patience;
    instant give_up;
    completion done;
    instant leaves_at;
    enum class stage : std::uint8_t {
        waiting,
        cancelled,
        sent,
        doubtful,
        answered
    } at = stage::waiting;
};

struct batcher::flight : std::enable_shared_from_this<batcher::flight> {
    flight(lane_state& lane, batcher& mine, std::weak_ptr<bool> alive)
        : on(lane), patience([this, &mine, alive = std::move(alive)] {
              // The store may keep the batch for longer than the batcher lives.
              if (!alive.expired()) {
                  mine.out_of_patience(shared_from_this());
              }
          }) {}
    lane_state& on;
    bool under_way = false;
    std::vector<std::shared_ptr<pending>> entries;
    instant sent{};
    timer patience;
};

batcher::batcher(environment env, batch_target& target) : env_(env), target_(target) {}

batcher::~batcher() = default;

bool batcher::idle() const noexcept {
    return in_flight_ == 0 && renewals_.first.empty() && others_.first.empty() &&
           others_.second.empty();
}

batcher::lane_state& batcher::lane_of(const verb& what) noexcept {
    return std::holds_alternative<renew>(what) ? renewals_ : others_;
}

batcher::ticket batcher::submit(verb&& what,
                                nanoseconds patience,
                                instant give_up,
                                completion&& done,
                                nanoseconds linger) {
    const bool lingers = linger > nanoseconds::zero();
    auto entry = std::allocate_shared<pending>(recycling_allocator<pending>{},
                                               std::move(what),
                                               std::min(patience, patience_max),
                                               give_up,
                                               std::move(done),
                                               lingers ? env_.time.now() + linger : instant{});
    auto& which = lane_of(entry->what);
    if (closed_) {
        env_.exec.post(
            [entry] { entry->done({.given = refused(errc::closed, "the client is closed")}); });
        return ticket{};
    }
    const bool ahead =
        std::holds_alternative<release>(entry->what) || std::holds_alternative<renew>(entry->what);
    auto& queue = ahead ? which.first : which.second;
    ticket made{entry};
    if (!lingers && !queue.empty() && queue.front()->leaves_at > instant{}) {
        queue.push_front(std::move(entry));
    } else {
        queue.push_back(std::move(entry));
    }
    leave_or_linger(which);
    return made;
}

bool batcher::cancel(const ticket& which) noexcept {
    const auto entry = which.entry_.lock();
    if (!entry || entry->at != pending::stage::waiting) {
        return entry != nullptr && entry->at == pending::stage::cancelled;
    }
    entry->at = pending::stage::cancelled;
    return true;
}

bool batcher::lane_state::may_leave() const noexcept {
    return under_way == 0 ? !first.empty() || !second.empty()
                          : under_way < flights_max && waiting() >= worth_a_flight;
}

instant batcher::lane_state::leaves_at() const noexcept {
    const bool at_once = first.empty() || !second.empty() || first.front()->leaves_at == instant{};
    return at_once || waiting() >= max_batch_entries ? instant{} : first.front()->leaves_at;
}

void batcher::leave_or_linger(lane_state& which) {
    if (which.flush_posted || !which.may_leave()) {
        return;
    }
    const auto at = which.leaves_at();
    if (at == instant{}) {
        post_flush(which);
    } else if (!which.linger.armed()) {
        env_.time.arm(which.linger, at);
    }
}

// The flush comes as a task of its own, so that what is asked for in the same turn shares the
// batch.
void batcher::post_flush(lane_state& which) {
    if (std::exchange(which.flush_posted, true)) {
        return;
    }
    env_.exec.post([this, alive = std::weak_ptr<bool>(alive_), &which] {
        if (!alive.expired()) {
            which.flush_posted = false;
            flush(which);
        }
    });
}

bool batcher::take(std::deque<std::shared_ptr<pending>>& from,
                   std::vector<std::shared_ptr<pending>>& into,
                   std::size_t& payload,
                   instant now) {
    while (!from.empty()) {
        if (into.size() == max_batch_entries) {
            return false;
        }
        const auto* more = payload_of(from.front()->what);
        const auto size = more != nullptr ? more->size() : 0;
        if (!into.empty() && payload + size > max_batch_payload) {
            return false;
        }
        auto entry = std::move(from.front());
        from.pop_front();
        if (entry->at == pending::stage::cancelled) {
            continue;
        }
        if (now >= entry->give_up) {
            entry->at = pending::stage::answered;
            env_.exec.post([entry, now] {
                entry->done({.given = refused(errc::timed_out, "not sent before its deadline"),
                             .sent = now});
            });
            continue;
        }
        payload += size;
        into.push_back(std::move(entry));
    }
    return true;
}

std::shared_ptr<batcher::flight> batcher::empty_flight(lane_state& which) {
    if (!which.spares.empty()) {
        auto spare = std::move(which.spares.back());
        which.spares.pop_back();
        // Unless the store or a timer still looks at it.
        if (spare.use_count() == 1) {
            return spare;
        }
    }
    return std::make_shared<flight>(which, *this, alive_);
}

void batcher::flush(lane_state& which) {
    if (!which.may_leave() || closed_) {
        return;
    }
    const auto now = env_.time.now();
    if (which.leaves_at() > now) {
        leave_or_linger(which);
        return;
    }
    env_.time.disarm(which.linger);
    auto batch = empty_flight(which);
    std::size_t payload = 0;
    if (take(which.first, batch->entries, payload, now)) {
        take(which.second, batch->entries, payload, now);
    }
    if (batch->entries.empty()) {
        which.spares.push_back(std::move(batch));
        return;
    }
    batch->sent = now;
    std::vector<entry> going;
    going.reserve(batch->entries.size());
    auto earliest = instant::max();
    for (const auto& one : batch->entries) {
        one->at = pending::stage::sent;
        const auto until = std::min(now + one->patience, one->give_up);
        earliest = std::min(earliest, until);
        going.emplace_back(std::move(one->what), until);
    }
    in_flight_ += going.size();
    batch->under_way = true;
    ++which.under_way;
    // The store refuses an entry at its deadline by itself; its definite answer shall win over our
    // doubt.
    env_.time.arm(batch->patience, earliest + milliseconds{5});
    target_.execute(which.name,
                    std::move(going),
                    [this, alive = std::weak_ptr<bool>(alive_), batch](answers given) {
                        if (!alive.expired()) {
                            answered(batch, std::move(given));
                        }
                    });
    if (which.leaves_at() > instant{}) {
        leave_or_linger(which);
    }
}

void batcher::answered(const std::shared_ptr<flight>& batch, answers given) {
    const std::weak_ptr<bool> alive = alive_;
    env_.time.disarm(batch->patience);
    in_flight_ -= batch->entries.size();
    free_lane(batch);
    for (std::size_t at = 0; at < batch->entries.size(); ++at) {
        auto& one = *batch->entries[at];
        one.at = pending::stage::answered;
        if (at < given.size()) {
            one.done({.given = std::move(given[at]), .sent = batch->sent});
        } else {
            one.done({.given = in_doubt("the store answered fewer entries than it was sent"),
                      .sent = batch->sent});
        }
    }
    if (!alive.expired()) {
        batch->entries.clear();
        if (batch->on.spares.size() < flights_max) {
            batch->on.spares.push_back(batch);
        }
    }
}

void batcher::out_of_patience(const std::shared_ptr<flight>& batch) {
    free_lane(batch);
    const auto now = env_.time.now();
    auto next = instant::max();
    std::vector<std::shared_ptr<pending>> doubtful;
    for (const auto& one : batch->entries) {
        if (one->at != pending::stage::sent) {
            continue;
        }
        const auto until = std::min(batch->sent + one->patience, one->give_up) + milliseconds{5};
        if (now >= until) {
            one->at = pending::stage::doubtful;
            doubtful.push_back(one);
        } else {
            next = std::min(next, until);
        }
    }
    if (next != instant::max()) {
        env_.time.arm(batch->patience, next);
    }
    for (const auto& one : doubtful) {
        one->done({.given = in_doubt("the store did not answer in time"),
                   .sent = batch->sent,
                   .final = false});
    }
}

void batcher::free_lane(const std::shared_ptr<flight>& batch) {
    auto& lane = batch->on;
    if (std::exchange(batch->under_way, false)) {
        --lane.under_way;
        leave_or_linger(lane);
    }
}

void batcher::close() {
    closed_ = true;
    for (auto* queue : {&renewals_.first, &others_.first, &others_.second}) {
        for (const auto& entry : *queue) {
            if (entry->at == pending::stage::waiting) {
                entry->at = pending::stage::answered;
                env_.exec.post([entry] {
                    entry->done({.given = refused(errc::closed, "the client is closed")});
                });
            }
        }
        queue->clear();
    }
}

}  // namespace dibs::core
