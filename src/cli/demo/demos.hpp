// SPDX-License-Identifier: Apache-2.0
#pragma once
// The demos, a file each.

#include "cli/demo/scene.hpp"

namespace dibs::cli {

// Each returns the exit status. Errors: failure and whatever its store throws.

/// The same nightly job in three processes, without a lock and with one.
int demo_duplicate_jobs(const demo_scene& scene);
/// Fifty requests that need a new token, without a cached value and with one.
int demo_token_stampede(const demo_scene& scene);
/// Work that is longer than the ttl, without renewal and with it.
int demo_watchdog(const demo_scene& scene);
/// A late holder that deletes the lock of the next one.
int demo_blind_release(const demo_scene& scene);
/// A holder that is killed, and whose lock has no expiry.
int demo_no_expiry(const demo_scene& scene);
/// A stopped holder whose late write a guarded row refuses.
int demo_fencing(const demo_scene& scene);
/// Two who sell from one stock: a lost update, and three ways without one.
int demo_concurrent_updates(const demo_scene& scene);
/// A lock that a replica did not know of when it took over.
int demo_failover(const demo_scene& scene);

}  // namespace dibs::cli
