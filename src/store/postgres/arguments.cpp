// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/arguments.hpp"

#include "core/key.hpp"

#include <algorithm>
#include <variant>

namespace dibs::store::postgres {

namespace {

using core::microseconds;

constexpr std::int64_t long_time = number_max / 4;

std::int64_t fence_as_number(core::fence_number fence) noexcept {
    return static_cast<std::int64_t>(
        std::min<core::fence_number>(fence, static_cast<core::fence_number>(number_max)));
}

asked described(const core::acquire& what) {
    asked one;
    one.verb = 1;
    one.holder = &what.holder;
    one.time = clamped(what.ttl);
    one.fences = std::max<std::int64_t>(what.fences, 1);
    one.floor = fence_as_number(what.floor);
    one.weight = what.part.weight;
    one.capacity = what.part.capacity;
    one.flags = what.attached == core::attachment::attached ? flag_attached : 0;
    one.seen = fence_as_number(what.seen);
    if (what.not_after) {
        one.not_after = what.not_after->time_since_epoch().count();
    }
    one.queue = clamped(what.queue);
    one.result = what.mark ? &*what.mark : nullptr;
    return one;
}

asked described(const core::renew& what) {
    asked one;
    one.verb = 2;
    one.holder = &what.holder;
    one.time = clamped(what.ttl);
    one.fences = what.fences;
    if (what.adopt) {
        one.adopter = &what.adopt->holder;
        one.flags = what.adopt->attached == core::attachment::attached ? flag_adopter_attached : 0;
    }
    return one;
}

asked described(const core::release& what) {
    asked one;
    one.verb = 3;
    one.holder = &what.holder;
    one.flags = what.late ? flag_late : 0;
    one.result = what.result ? &*what.result : nullptr;
    return one;
}

asked described(const core::revoke& what) {
    asked one;
    one.verb = 4;
    // No grant has a fence that does not fit.
    one.fences = what.fence > static_cast<core::fence_number>(number_max)
                     ? -1
                     : static_cast<std::int64_t>(what.fence);
    return one;
}

asked described(const core::block& what) {
    asked one;
    one.verb = 5;
    one.time = lasting(what.duration);
    one.reason = &what.reason;
    return one;
}

}  // namespace

bool is_simple(const core::verb& what) noexcept {
    if (const auto* taken = std::get_if<core::acquire>(&what)) {
        return !taken->mark && taken->queue == microseconds{0} && taken->part == core::share{};
    }
    if (const auto* prolonged = std::get_if<core::renew>(&what)) {
        return prolonged->fences == 0 && !prolonged->adopt;
    }
    const auto* ended = std::get_if<core::release>(&what);
    return ended != nullptr && !ended->result;
}

bool is_acquire(const core::entry& what) noexcept {
    return std::holds_alternative<core::acquire>(what.what);
}

std::int64_t clamped(microseconds time) noexcept {
    return std::min<std::int64_t>(time.count(), long_time);
}

std::int64_t lasting(microseconds time) noexcept {
    return time.count() >= long_time ? number_max : time.count();
}

std::string_view bytes_of(const core::holder_id& holder) noexcept {
    return {reinterpret_cast<const char*>(holder.bytes.data()), holder.bytes.size()};
}

asked described(const core::verb& what) {
    return std::visit([](const auto& one) { return described(one); }, what);
}

std::vector<asked> described(const std::vector<core::entry>& entries,
                             const std::vector<std::uint32_t>& which) {
    std::vector<asked> all;
    all.reserve(which.size());
    for (const auto at : which) {
        all.push_back(described(entries[at].what));
    }
    return all;
}

void keys(parameters& into,
          const std::vector<core::entry>& entries,
          const std::vector<std::uint32_t>& which,
          const caller& self) {
    into.array(parameters::kind::text, which.size());
    for (const auto at : which) {
        into.element(self.prefix + core::key_of(entries[at].what));
    }
}

void not_after(parameters& into, const std::vector<asked>& all) {
    into.array(parameters::kind::number, all.size());
    for (const auto& one : all) {
        if (one.not_after) {
            into.element(*one.not_after);
        } else {
            into.null_element();
        }
    }
}

}  // namespace dibs::store::postgres
