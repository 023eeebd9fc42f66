// SPDX-License-Identifier: Apache-2.0
#include "client/shown_records.hpp"

#include "recipes/cached/cached_record.hpp"
#include "recipes/idempotent_record.hpp"

#include <utility>

namespace dibs::detail {

std::vector<holder> shown(std::vector<core::holder_info> holders) {
    std::vector<holder> all;
    all.reserve(holders.size());
    for (auto& one : holders) {
        holder made;
        made.host = std::move(one.who.host);
        made.pid = one.who.pid;
        made.user = std::move(one.who.user);
        made.command = std::move(one.who.command);
        made.fence = one.fences.first;
        made.fence_last = one.fences.last;
        made.weight = one.weight;
        made.held_for = one.held_for;
        made.remaining = one.remaining;
        made.attached = one.attached == core::attachment::attached;
        made.self = one.self;
        all.push_back(std::move(made));
    }
    return all;
}

record shown(core::record_info from) {
    record made;
    made.key = std::move(from.key);
    made.fence = from.fence;
    made.capacity = from.part.capacity;
    made.holders = shown(std::move(from.holders));
    made.waiters = from.waiters;
    made.queued = from.queued;
    for (auto& one : from.queue) {
        queued_caller caller;
        caller.host = std::move(one.who.host);
        caller.pid = one.who.pid;
        caller.user = std::move(one.who.user);
        caller.command = std::move(one.who.command);
        caller.waiting_for = one.waiting_for;
        caller.self = one.self;
        made.queue.push_back(std::move(caller));
    }
    made.blocked_for = from.blocked_for;
    made.blocked_reason = std::move(from.blocked_reason);
    if (from.result) {
        made.kept.emplace();
        made.kept->value =
            recipes::without_answer(recipes::without_secrets(std::move(from.result->value)));
        made.kept->fence = from.result->fence;
        made.kept->is_mark = from.result->is_mark;
        made.kept->fresh = from.result->fresh;
        made.kept->age = from.result->age;
        made.kept->fresh_left = from.result->fresh_left;
        made.kept->keep_left = from.result->keep_left;
    }
    return made;
}

}  // namespace dibs::detail
