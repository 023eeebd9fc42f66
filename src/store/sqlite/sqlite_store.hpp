// SPDX-License-Identifier: Apache-2.0
#pragma once
// The store in a file of this host: nothing to install, nothing to run. It excludes whoever opens
// the same file on this host; the file belongs to one user unless its rights are widened. Not for
// file systems shared between hosts, which are refused. What it guarantees and what its failures
// look like: docs/stores/sqlite.md.

#include "core/environment.hpp"
#include "core/verbs.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

namespace dibs::store {

struct sqlite_options {
    /// The file; its folder must be there. A relative path is resolved at once.
    std::string path;

    /// The file is made when it is not there. Without, that is store_unreachable.
    bool make = true;

    /// What a bare grant survives. Results, marks and holds survive power loss with either; see
    /// docs/stores/sqlite.md.
    enum class durability : std::uint8_t { normal, full } sync = durability::normal;

    /// Told to others who find a key held by this process.
    core::party who;

    /// Empty: the host's CLOCK_BOOTTIME, with the offset of a time namespace taken off, and
    /// CLOCK_REALTIME.
    std::function<core::store_now()> clock;

    /// Empty: the kernel's. Grants of another boot are dead.
    std::string boot_id;
};

/// Opens the store, or says why not: null, `error` set and `detail` naming path, what happened and
/// what to do. Errors: store_unreachable, store_refused, store_busy, store_damaged, newer_format,
/// permission_denied, unsupported, invalid_argument. Blocks for as long as the disk takes. A store
/// does not survive fork(): the child opens its own.
[[nodiscard]] std::unique_ptr<store> open_sqlite_store(core::environment env,
                                                       sqlite_options options,
                                                       std::error_code& error,
                                                       std::string& detail);

}  // namespace dibs::store
