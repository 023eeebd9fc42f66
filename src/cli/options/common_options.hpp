// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options that several commands have, in the same words.

#include "cli/options/option_table.hpp"
#include "cli/output/failure.hpp"

#include <dibs/options.hpp>

#include <chrono>

namespace dibs::cli::common {

inline constexpr option json{"json", 0, "", "for machines"};
inline constexpr option store{"store",
                              0,
                              "URL",
                              "the store (default: $DIBS_STORE, the settings, an SQLite file)"};
inline constexpr option quiet{"quiet", 'q', "", "tell nothing but errors"};
inline constexpr option help{"help", 'h', "", "this text"};

inline constexpr option queue_option{
    "queue",
    0,
    "",
    "wait in the order of arrival, among all processes that do so"};

/// Who does not wait cannot stand in a queue. Errors: usage_error.
inline void require_wait(bool queued, std::chrono::milliseconds wait) {
    if (queued && wait <= std::chrono::milliseconds::zero()) {
        throw usage_error("--queue needs --wait: it is the order among those who wait");
    }
}

inline constexpr option shared{
    "shared",
    0,
    "",
    "beside others that say so, too: as a reader, while a command\nwithout it is a writer"};
inline constexpr option permits{"permits",
                                0,
                                "N",
                                "the key has N permits, and this takes one: at most N at a "
                                "time;\nall who use the key must name "
                                "the same N"};
inline constexpr option take{"take", 0, "K", "with --permits: take K of them (default 1)"};

/// What those three say. Errors: usage_error.
[[nodiscard]] mode mode_given(const arguments& given);

// Of the commands that run another one under a lease.
inline constexpr option grace{
    "grace",
    0,
    "DURATION",
    "time between TERM and KILL when the command must stop\n(default 5s or a sixth of the ttl; at "
    "most a third)"};
inline constexpr option max_runtime{"max-runtime",
                                    0,
                                    "DURATION",
                                    "stop the command (status 124) after this time"};
inline constexpr option status_file{"status-file", 0, "FILE", "write what happened there, as JSON"};
inline constexpr option status_fd{"status-fd",
                                  0,
                                  "N",
                                  "the same, to a descriptor that the caller has opened;\nthe "
                                  "command does not get it"};

}  // namespace dibs::cli::common
