// SPDX-License-Identifier: Apache-2.0
#include "store/record/ticket_line.hpp"

#include <variant>

namespace dibs::store {

const core::ticket* ticket_line::head(core::store_now now, const gone_query& gone) {
    while (!tickets_.empty()) {
        auto& first = tickets_.begin()->second;
        first.dead = gone(first.process);
        if (first.live(now)) {
            return &first;
        }
        numbers_.erase(first.holder);
        tickets_.erase(tickets_.begin());
    }
    return nullptr;
}

queue_sight ticket_line::look(const core::holder_id& holder,
                              core::store_now now,
                              const gone_query& gone) {
    queue_sight seen;
    if (const auto* first = head(now, gone)) {
        seen.head = *first;
    }
    if (const auto known = numbers_.find(holder); known != numbers_.end()) {
        const auto& mine = tickets_.at(known->second);
        // Who comes back after its time was over has lost its place.
        if (mine.live(now)) {
            seen.mine = mine;
        } else {
            drop(known->second, holder);
        }
    }
    return seen;
}

void ticket_line::carry_out(step& taken,
                            const core::verb& what,
                            std::uint64_t& numbers,
                            const rules_context& context) {
    if (taken.ticket == queue_step::none) {
        return;
    }
    const auto holder = ticket_holder(what);
    const auto known = numbers_.find(holder);
    if (taken.ticket == queue_step::leave) {
        if (known != numbers_.end()) {
            drop(known->second, holder);
        }
        return;
    }
    if (taken.ticket == queue_step::enter) {
        core::ticket given;
        given.holder = holder;
        given.number = ++numbers;
        given.entered = context.now.lease;
        numbers_[holder] = given.number;
        tickets_.emplace(given.number, given);
    }
    auto& mine = tickets_.at(numbers_.at(holder));
    mine.until = context.now.lease + std::get<core::acquire>(what).queue;
    mine.process = context.self;
    taken.reply.ticket = mine.number;
    taken.reply.position = 1;
    for (const auto& [number, one] : tickets_) {
        if (number == mine.number || taken.reply.position > core::position_exact) {
            break;
        }
        taken.reply.position += one.live(context.now) ? 1 : 0;
    }
}

void ticket_line::describe(core::record_info& shown,
                           const rules_context& context,
                           const gone_query& gone) const {
    for (const auto& [number, one] : tickets_) {
        if (one.live(context.now) && !gone(one.process)) {
            ++shown.queued;
            if (shown.queue.size() < core::queue_shown) {
                shown.queue.push_back(store::describe(one, context));
            }
        }
    }
}

bool ticket_line::drop_those_of(std::uint64_t process) {
    bool found = false;
    for (auto at = tickets_.begin(); at != tickets_.end();) {
        if (at->second.process == process) {
            found = true;
            numbers_.erase(at->second.holder);
            at = tickets_.erase(at);
        } else {
            ++at;
        }
    }
    return found;
}

void ticket_line::drop(std::uint64_t number, const core::holder_id& holder) {
    tickets_.erase(number);
    numbers_.erase(holder);
}

}  // namespace dibs::store
