// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder beside the file, in which each process shows that it is alive and where it can be
// woken.
//
// `ID`, a FIFO: the process, and everybody who inherits the descriptor, keeps its write end open.
// While somebody does, a reader gets EAGAIN; when the last one is gone, it gets the end of the file
// and poll tells it at that very moment. The kernel closes descriptors of the dead, whatever killed
// them, in any pid namespace; a pid that comes again means nothing. A FIFO that is missing proves
// nothing.
//
// `ID.wake`, a datagram socket: a message is a key that may be free now; an empty one means any
// key.
//
// Thread safety: distinct members may be called at once from different threads, except where they
// say so.

#include "store/file_descriptor.hpp"
#include "store/sqlite/errors.hpp"
#include "store/sqlite/process_id.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace dibs::store::sqlite {

/// The rights of the folder that belongs to a file with these: who may use the one may use the
/// other.
[[nodiscard]] mode_t rights_of_folder(mode_t file) noexcept;

class holders_folder {
  public:
    /// `file`: the store's. Makes nothing yet.
    holders_folder(const std::string& file, process_id self);

    /// Makes this process's FIFO; idempotent. One thread at a time.
    [[nodiscard]] failure appear();

    /// The write end; -1 before `appear`. Any thread.
    [[nodiscard]] int lifeline() const noexcept {
        return lifeline_number_.load(std::memory_order_acquire);
    }

    /// Surely nobody holds that process's write end. One thread at a time.
    [[nodiscard]] bool gone(const process_id& process);

    /// A read end for poll, which reports POLLHUP at death. Empty when there is nothing to open.
    /// `dead`: it is gone already.
    [[nodiscard]] file_descriptor watch(const process_id& process, bool& dead) const;

    /// Makes this process's socket.
    [[nodiscard]] failure bind_wake(file_descriptor& bound);

    enum class reach { woken, gone, not_now };
    /// Any thread.
    [[nodiscard]] reach wake(const process_id& process, std::string_view key) const;

    /// Closes this process's write end; true when nobody else has one, or there never was one.
    [[nodiscard]] bool disappear();

    /// Removes the files of a process that is gone.
    void remove(const process_id& process) const noexcept;

    /// Removes files that a process left when it died before its row was written or after it was
    /// removed.
    void sweep(const std::function<bool(const process_id&)>& unknown);

  private:
    [[nodiscard]] int folder() const;
    [[nodiscard]] failure ensure_folder();

    const std::string file_;
    const std::string path_;
    const process_id self_;
    mutable std::mutex opening_;
    mutable std::atomic<int> folder_number_ = -1;
    mutable file_descriptor folder_;
    file_descriptor lifeline_;
    std::atomic<int> lifeline_number_ = -1;

    struct by_bytes {
        std::size_t operator()(const process_id& id) const noexcept;
    };
    std::unordered_map<process_id, file_descriptor, by_bytes> watched_;
};

}  // namespace dibs::store::sqlite
