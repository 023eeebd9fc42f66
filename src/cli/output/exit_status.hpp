// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exit statuses of the command that are not the child's own. The numbers of sysexits.h where
// one fits, so that supervisors can name them (systemd: SuccessExitStatus=TEMPFAIL).

namespace dibs::cli::exit_status {

inline constexpr int ok = 0;
inline constexpr int trouble = 1;         ///< doctor, check, a demo: not as it should be
inline constexpr int usage = 64;          ///< the command line is wrong
inline constexpr int differs = 65;        ///< the idempotency key was used for something else
inline constexpr int unavailable = 69;    ///< the store cannot be reached, or grants nothing now
inline constexpr int our_bug = 70;        ///< an invariant of the command itself broke
inline constexpr int system = 71;         ///< no descriptor, process or memory to be had
inline constexpr int input_output = 74;   ///< what was to be told could not be written
inline constexpr int held = 75;           ///< somebody else holds the key, or the wait is over
inline constexpr int refused = 77;        ///< no valid token and none to be had; work in doubt
inline constexpr int configuration = 78;  ///< settings, the store's file, or rights to it
inline constexpr int lost = 79;           ///< the lease ended while the child ran
inline constexpr int max_runtime = 124;   ///< as timeout(1)
inline constexpr int cannot_execute = 126;
inline constexpr int not_found = 127;
inline constexpr int signal_base = 128;

}  // namespace dibs::cli::exit_status
