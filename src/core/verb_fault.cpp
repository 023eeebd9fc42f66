// SPDX-License-Identifier: Apache-2.0
#include "core/verb_fault.hpp"

namespace dibs::core {

namespace {

constexpr microseconds none{0};

bool unkeepable(const boxed<result_to_keep>& result) noexcept {
    return result && (result->fresh < none || result->keep < none);
}

std::string_view found_in(const acquire& asked) noexcept {
    if (asked.holder.empty()) {
        return "no holder id";
    }
    if (asked.ttl <= none) {
        return "the ttl is not positive";
    }
    if (asked.queue < none) {
        return "nobody can stand in a queue for less than no time";
    }
    if (asked.part.weight == 0 || asked.part.weight > asked.part.capacity) {
        return "the weight is not between 1 and the capacity";
    }
    return unkeepable(asked.mark) ? "a mark cannot be kept for less than no time" : "";
}

std::string_view found_in(const renew& asked) noexcept {
    if (asked.ttl <= none) {
        return "the ttl is not positive";
    }
    return asked.adopt && asked.adopt->holder.empty() ? "no holder id to adopt the lease" : "";
}

std::string_view found_in(const release& asked) noexcept {
    return unkeepable(asked.result) ? "a result cannot be kept for less than no time" : "";
}

std::string_view found_in(const revoke& /*asked*/) noexcept {
    return "";
}

std::string_view found_in(const block& asked) noexcept {
    return asked.duration < none ? "a hold cannot last for less than no time" : "";
}

}  // namespace

std::string_view fault_of(const verb& what) noexcept {
    return std::visit([](const auto& asked) { return found_in(asked); }, what);
}

}  // namespace dibs::core
