// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a store tells about a key: who holds it, who waits, which result is kept.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dibs {

/// A live holder of a key.
struct holder {
    std::string host;
    std::int64_t pid = 0;
    std::string user;
    std::string command;      ///< its command line, secrets blanked
    std::uint64_t fence = 0;  ///< the first fence of its grant; 0: a lock that another program made
    std::uint64_t fence_last =
        0;                     ///< the last one; differs from `fence` when it may hand the lease on
    std::uint32_t weight = 1;  ///< how many permits it has; 1 of a reader and of an exclusive lease
    std::chrono::microseconds held_for{};   ///< by the store's clock
    std::chrono::microseconds remaining{};  ///< until expiry, by the store's clock, unless renewed;
                                            ///< microseconds::max(): never
    bool attached = true;                   ///< its lease ends early when its process is gone
    bool self = false;                      ///< granted through this very client
};

/// One who stands in the queue of a key (`order::queue`).
struct queued_caller {
    std::string host;
    std::int64_t pid = 0;
    std::string user;
    std::string command;                      ///< its command line, secrets blanked
    std::chrono::microseconds waiting_for{};  ///< by the store's clock
    bool self = false;                        ///< a caller of this very client
};

/// A result that a record keeps.
struct result {
    std::string value;
    std::uint64_t fence = 0;  ///< of the grant that wrote it
    bool is_mark = false;     ///< written when the grant was given; its work has not been finished
    bool fresh = false;
    std::chrono::microseconds age{};
    std::chrono::microseconds fresh_left{};
    std::chrono::microseconds keep_left{};
};

/// One key.
struct record {
    std::string key;
    std::uint64_t fence = 0;  ///< the largest one granted so far
    std::vector<holder> holders;
    std::uint32_t capacity = 1;        ///< what its holders share it into: 1 for one alone,
                                       ///< mode::unlimited for readers
    std::uint32_t waiters = 0;         ///< processes that wait for it
    std::uint32_t queued = 0;          ///< callers in its queue
    std::vector<queued_caller> queue;  ///< the first hundred of them, in order
    std::optional<result> kept;
    std::chrono::microseconds blocked_for{};  ///< an operator's hold; zero: none
    std::string blocked_reason;
};

/// How often what happened, since the client was made.
struct statistics {
    std::uint64_t granted = 0;
    std::uint64_t busy = 0;  ///< tries and waits that ended with somebody else holding the key
    std::uint64_t released = 0;
    std::uint64_t renewed = 0;
    std::uint64_t renew_failed =
        0;  ///< renewals without a good answer; they are tried again until the deadline
    std::uint64_t lost = 0;
    std::uint64_t handed_on =
        0;  ///< leases passed to another caller of this process without asking the store
    std::uint64_t undone = 0;  ///< acquires in doubt that were undone in the background
};

/// What the store of a client can promise.
struct store_info {
    std::string name;      ///< "sqlite"
    std::string location;  ///< its URL, the password blanked
    std::string scope;     ///< whom it excludes
    std::chrono::milliseconds ttl_min{};
    std::chrono::milliseconds ttl_max{};
    bool notices_death = false;
    bool wakes_waiters = false;
    std::string fence_source;
};

}  // namespace dibs
