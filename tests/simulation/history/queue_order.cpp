// SPDX-License-Identifier: Apache-2.0
#include "simulation/history/queue_order.hpp"

#include "recipes/mutex_parts.hpp"

#include <algorithm>
#include <variant>

namespace dibs::simulation {

void queue_order::carried_out(const core::verb& what,
                              const core::answer& given,
                              std::uint64_t process) {
    const auto now = given.now.lease;
    if (now < latest_) {
        // A clock that was set back: what was over may or may not be alive again.
        forget();
    }
    latest_ = now;
    furthest_ = std::max(furthest_, now);
    if (blind_until_ == core::store_instant::max()) {
        // A clock that was set back leaves tickets which last until after its furthest moment.
        blind_until_ =
            furthest_ + std::chrono::duration_cast<core::microseconds>(recipes::ticket_time);
    }
    auto& of = lines_[core::key_of(what)];
    drop_overdue(of, now);
    if (const auto* asked = std::get_if<core::acquire>(&what)) {
        of.on_hold = given.what == core::verdict::blocked;
        if (given.what == core::verdict::granted) {
            granted(*asked, given, of, process);
        } else if (given.what == core::verdict::done) {
            leave(of, asked->holder);
        } else if (given.ticket != 0) {
            queued(*asked, given, of, process);
        }
    } else if (const auto* release = std::get_if<core::release>(&what)) {
        leave(of, release->holder);
    }
}

void queue_order::granted(const core::acquire& asked,
                          const core::answer& given,
                          line& of,
                          std::uint64_t process) {
    const auto mine = of.numbers.find(asked.holder);
    const auto number = mine == of.numbers.end() ? 0 : mine->second;
    // Whoever holds the key already may ask again, whoever waits. Its expiry is new either way; its
    // fence is not, and a new one is larger than any before.
    const auto known = fences_.find(asked.key);
    const bool again = known != fences_.end() && given.fences.first <= known->second;
    if (!again && sees(of) && !of.tickets.empty() && of.tickets.begin()->first != number) {
        laws_.breached("somebody overtook the head of the queue of " + asked.key);
    }
    fences_[asked.key] = std::max(fences_[asked.key], given.fences.last);
    of.holding = process;
    leave(of, asked.holder);
}

void queue_order::queued(const core::acquire& asked,
                         const core::answer& given,
                         line& of,
                         std::uint64_t process) {
    const auto mine = of.numbers.find(asked.holder);
    if (mine != of.numbers.end() && mine->second != given.ticket) {
        laws_.breached("somebody in the queue of " + asked.key + " lost its place");
    } else if (sees(of) && mine == of.numbers.end() && !of.tickets.empty() &&
               of.tickets.rbegin()->first > given.ticket) {
        laws_.breached("somebody entered the queue of " + asked.key + " before its tail");
    }
    const auto now = given.now.lease;
    const auto entered = mine == of.numbers.end() ? now : of.tickets.at(mine->second).entered;
    leave(of, asked.holder);
    if (const auto same = of.tickets.find(given.ticket); same != of.tickets.end()) {
        laws_.breached("two in the queue of " + asked.key + " have one number");
        of.numbers.erase(same->second.holder);
    }
    of.tickets[given.ticket] = {asked.holder, entered, now + asked.queue, process};
    of.numbers[asked.holder] = given.ticket;
    if (sees(of) && given.position == 1 && of.tickets.begin()->first != given.ticket) {
        laws_.breached("two heads in the queue of " + asked.key);
    }
}

void queue_order::woken(const std::string& key, std::uint64_t process, core::store_instant now) {
    auto& of = lines_[key];
    latest_ = now;
    drop_overdue(of, now);
    // While an operator has the key on hold a wake-up brings nobody anything, whoever gets it.
    // A transaction wakes at its end. Meanwhile one of its steps may have taken what an earlier one
    // has freed, and a later one may have entered the queue.
    const auto* head = of.tickets.empty() ? nullptr : &of.tickets.begin()->second;
    if (sees(of) && !of.on_hold && head != nullptr && head->entered < now &&
        head->process != process && of.holding != process) {
        laws_.breached("somebody else than the head of the queue of " + key + " was woken");
    }
}

void queue_order::process_ended(std::uint64_t process) {
    for (auto& [key, of] : lines_) {
        for (auto at = of.tickets.begin(); at != of.tickets.end();) {
            if (at->second.process == process) {
                of.numbers.erase(at->second.holder);
                at = of.tickets.erase(at);
            } else {
                ++at;
            }
        }
    }
}

void queue_order::forget() {
    lines_.clear();
    blind_until_ = core::store_instant::max();
}

void queue_order::leave(line& of, const core::holder_id& holder) {
    if (const auto mine = of.numbers.find(holder); mine != of.numbers.end()) {
        of.tickets.erase(mine->second);
        of.numbers.erase(mine);
    }
}

void queue_order::drop_overdue(line& of, core::store_instant now) {
    for (auto at = of.tickets.begin(); at != of.tickets.end();) {
        if (now >= at->second.until) {
            of.unsure_until = std::max(of.unsure_until, at->second.until + core::milliseconds{1});
            of.numbers.erase(at->second.holder);
            at = of.tickets.erase(at);
        } else {
            ++at;
        }
    }
}

}  // namespace dibs::simulation
