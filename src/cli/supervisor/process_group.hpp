// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process group that is signalled without ever hitting a stranger.
//
// The danger: when the leader has been reaped and the last member is gone, the kernel may give the
// number to others. From Linux 6.9 on the signal goes through a pidfd of the leader, which names
// the group itself and not its number. Older kernels signal by number, and then only while the
// leader is there by its pidfd (the number cannot be given away before), or while a live process is
// found in that very group and session; what is left is the time between that look and the signal,
// in which the number would have to go once round.
//
// Nothing here allocates: the guard uses it after its fork.

#include <sys/types.h>

namespace dibs::cli {

class process_group {
  public:
    process_group() noexcept = default;
    /// Takes over `leader_descriptor`, a pidfd.
    process_group(pid_t id, pid_t session, int leader_descriptor) noexcept
        : id_(id), session_(session), leader_(leader_descriptor) {}

    [[nodiscard]] pid_t id() const noexcept { return id_; }
    [[nodiscard]] int leader_descriptor() const noexcept { return leader_; }

    /// Whether anybody was there to be signalled. Number 0 only asks; a zombie counts.
    bool signal(int number) const noexcept;

    /// For tests: as on a kernel before 6.9.
    bool signal_by_number(int number) const noexcept;

  private:
    [[nodiscard]] bool leader_runs() const noexcept;

    pid_t id_ = -1;
    pid_t session_ = -1;
    int leader_ = -1;
};

/// pidfd_open(2); -1 with errno. Close-on-exec.
[[nodiscard]] int open_pidfd(pid_t process) noexcept;

/// Whether a process that is not a zombie belongs to this group and session.
[[nodiscard]] bool group_has_member(pid_t group, pid_t session) noexcept;

}  // namespace dibs::cli
