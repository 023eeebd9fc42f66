// SPDX-License-Identifier: Apache-2.0
#include "client/checked_options.hpp"

#include <algorithm>
#include <chrono>

namespace dibs::detail {

namespace {

using std::chrono::milliseconds;

/// More than this does not fit into nanoseconds beside a clock's reading.
constexpr milliseconds centuries = std::chrono::hours{24 * 365 * 100};

core::nanoseconds in_nanoseconds(milliseconds length) {
    return std::min(length, centuries);
}

std::string shown(milliseconds length) {
    return std::to_string(length.count()) + " ms";
}

std::string fault_of_mode(mode wanted, const store::capabilities& caps) {
    if (wanted.capacity() == 0) {
        return "mode is of a capacity of 0; nobody could ever hold the key";
    }
    if (wanted.weight() == 0 || wanted.weight() > wanted.capacity()) {
        return "mode is " + std::to_string(wanted.weight()) + " of " +
               std::to_string(wanted.capacity()) + " permits; it must take from 1 to " +
               std::to_string(wanted.capacity());
    }
    if (wanted.capacity() != 1 && !caps.shared) {
        return "mode is of permits or readers; this store has exclusive leases alone";
    }
    return {};
}

}  // namespace

std::string fault_of_ttl(milliseconds ttl, const store::capabilities& caps) {
    const auto least = std::chrono::ceil<milliseconds>(caps.ttl_min);
    const auto most = std::chrono::floor<milliseconds>(caps.ttl_max);
    return least <= ttl && ttl <= most ? std::string{}
                                       : "ttl is " + shown(ttl) + "; it must be from " +
                                             shown(least) + " to " + shown(most);
}

std::string fault_of_options(const acquire_options& options, const store::capabilities& caps) {
    if (auto fault = fault_of_ttl(options.ttl, caps); !fault.empty()) {
        return fault;
    }
    if (options.wait < milliseconds::zero()) {
        return "wait is " + shown(options.wait) + "; it must not be negative";
    }
    if (options.order == order::queue && !caps.queues) {
        return "order is queue; this store keeps none";
    }
    if (auto fault = fault_of_mode(options.mode, caps); !fault.empty()) {
        return fault;
    }
    if (options.timeout <= milliseconds::zero()) {
        return "timeout is " + shown(options.timeout) + "; it must be more than zero";
    }
    if (options.renew_every < milliseconds::zero() || options.renew_every > options.ttl / 2) {
        return "renew_every is " + shown(options.renew_every) + "; with a ttl of " +
               shown(options.ttl) + " it must be at most " + shown(options.ttl / 2) +
               ", or one lost renewal loses the lease (zero: a third of the ttl)";
    }
    if (options.max_hold < milliseconds::zero()) {
        return "max_hold is " + shown(options.max_hold) + "; it must not be negative";
    }
    if (options.notice < milliseconds::zero() || options.notice > options.ttl / 2) {
        return "notice is " + shown(options.notice) + "; with a ttl of " + shown(options.ttl) +
               " it must be from 0 ms to " + shown(options.ttl / 2);
    }
    if (options.fence_floor >> 62U != 0) {
        return "fence_floor is too large for a fence";
    }
    return {};
}

recipes::mutex_terms terms_of(const acquire_options& options) {
    recipes::mutex_terms terms;
    terms.lease.ttl = options.ttl;
    if (options.renew) {
        terms.lease.renew_every = options.renew_every > milliseconds::zero()
                                      ? std::chrono::nanoseconds(options.renew_every)
                                      : std::chrono::nanoseconds(options.ttl) / 3;
    }
    terms.lease.max_hold = in_nanoseconds(options.max_hold);
    terms.lease.notice = options.notice;
    terms.lease.attached = !options.detached;
    terms.wait = options.wait > centuries ? core::nanoseconds::max() : in_nanoseconds(options.wait);
    terms.timeout = in_nanoseconds(options.timeout);
    terms.fence_floor = options.fence_floor;
    terms.part = {options.mode.weight(), options.mode.capacity()};
    terms.queue = options.order == order::queue;
    return terms;
}

}  // namespace dibs::detail
