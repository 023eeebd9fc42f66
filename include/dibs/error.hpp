// SPDX-License-Identifier: Apache-2.0
#pragma once
// What can go wrong, and what a caller can do about it. Compare with the conditions; the codes are
// for people, logs and metrics. That somebody else holds a key is not an error: it is an empty
// optional.

#include <string>
#include <system_error>

namespace dibs {

/// What went wrong.
enum class errc {
    // Surely not applied; the same call may be tried again.
    store_busy = 1,     ///< the store could not take the operation for now, nor before its deadline
    store_unreachable,  ///< no connection, or the file cannot be opened
    store_refused,      ///< the store answered, and refused (full, read-only)
    timed_out,          ///< the call's deadline passed before anything was sent
    not_ready,          ///< the store grants nothing for now; it told when to ask again

    // May have been applied.
    outcome_unknown,  ///< sent, and no answer that tells

    // The lease is no longer held.
    lease_expired,      ///< its deadline passed without a renewal
    lease_taken,        ///< another holder was granted the key
    lease_gone,         ///< the store no longer knows the lease
    lease_revoked,      ///< an operator ended it
    holder_was_asleep,  ///< the process did not run while the deadline passed
    max_hold_reached,   ///< the lease was held for as long as its options allow
    not_held,           ///< the handle holds nothing: released, moved from, or handed over
    store_replaced,     ///< the store's file or its log was moved, removed or replaced

    // Neither now nor later in this form.
    fenced_off,        ///< the guarded resource has seen a newer fence
    cancelled,         ///< the caller asked to stop; nothing is held
    invalid_argument,  ///< a value is out of its range; nothing was sent
    invalid_key,  ///< the key is empty, invisible, too long, not UTF-8 or holds control characters
    invalid_url,  ///< the store's URL cannot be understood
    capacity_differs,   ///< holders or waiters of the key use another capacity
    unsupported,        ///< this store cannot do that
    newer_format,       ///< the record was written by a newer release
    store_damaged,      ///< the file is not a dibs store, or cannot be read
    permission_denied,  ///< the operating system or the store denies access
    closed,             ///< the client was closed

    // Of cached values.
    value_unavailable,  ///< no valid value, and the last fetch failed: it is tried again later
    value_refused,      ///< no valid value, and none to be had until somebody sees to it

    // Of idempotent calls.
    fingerprint_differs,  ///< the key was used for something else
    work_in_doubt,        ///< begun before, not told how it ended, and may be done once only
};

/// What the caller can do. `error == condition::retryable` asks for the kind of an error.
enum class condition {
    retryable = 1,     ///< surely not applied: try again, at once or later
    outcome_unknown,   ///< may have been applied: find out before repeating
    lease_lost,        ///< stop the work; a new acquire is a new lease
    fenced_off,        ///< stop the work; somebody newer is at it
    cancelled,         ///< the caller's own wish
    unsupported,       ///< choose another store or option
    invalid_argument,  ///< mend the call or the settings
};

[[nodiscard]] const std::error_category& error_category() noexcept;
[[nodiscard]] const std::error_category& condition_category() noexcept;

[[nodiscard]] std::error_code make_error_code(errc code) noexcept;
[[nodiscard]] std::error_condition make_error_condition(condition what_to_do) noexcept;

/// What the throwing forms throw. `what()` names the key, the store (its password blanked), what
/// happened and what to do next.
class error : public std::system_error {
  public:
    using std::system_error::system_error;
};

}  // namespace dibs

template <>
struct std::is_error_code_enum<dibs::errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<dibs::condition> : std::true_type {};
