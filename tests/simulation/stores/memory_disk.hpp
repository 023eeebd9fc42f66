// SPDX-License-Identifier: Apache-2.0
#pragma once
// A disk in memory, as SQLite sees one (a VFS), that can be taken away from a process in the middle
// of a write, and that forgets at a power loss what was not synced, or part of it.
//
// Thread safety: none; one disk at a time.

#include "simulation/world/random.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct sqlite3_file;
struct sqlite3_vfs;

namespace dibs::simulation {

class memory_disk {
  public:
    explicit memory_disk(random chosen_by);
    ~memory_disk();
    memory_disk(const memory_disk&) = delete;
    memory_disk& operator=(const memory_disk&) = delete;

    /// Under which SQLite knows it.
    static constexpr const char* name = "dibs-simulated-disk";

    /// What is opened from now on belongs to this process.
    void used_by(std::uint64_t process) noexcept { user_ = process; }

    /// The process is gone: nothing of it reaches the disk any more, and its locks are free.
    void abandon(std::uint64_t process);

    /// The process is gone after so many further writes; `told` hears of it.
    void abandon_after(std::uint64_t process, std::uint64_t writes, std::function<void()> told);

    /// What was not synced is lost, some of it or all. Nobody may use the disk any more.
    void lose_power();

    // --- for the VFS -----------------------------------------------------------------------------

    /// A change of a file.
    struct write {
        std::size_t at = 0;
        std::span<const unsigned char> bytes{};
        bool cuts = false;  ///< the file ends at `at`
    };
    /// Changes in their order, with all their bytes in one place: a log has thousands of them.
    class write_list {
      public:
        void add(const write& what);
        void clear() noexcept;
        template <typename Told>
        void each(Told told) const {
            for (const auto& one : list_) {
                told(write{one.at, std::span{bytes_}.subspan(one.from, one.size), one.cuts});
            }
        }

      private:
        struct place {
            std::size_t at = 0;
            std::size_t from = 0;
            std::size_t size = 0;
            bool cuts = false;
        };
        std::vector<place> list_;
        std::vector<unsigned char> bytes_;
    };
    struct file {
        std::vector<unsigned char> bytes;
        std::vector<unsigned char> synced;
        write_list unsynced;
        int shared_locks = 0;
        bool reserved = false;
        bool exclusive = false;
        std::vector<std::unique_ptr<unsigned char[]>> shared_memory;
        int memory_locks[8] = {};  ///< -1: exclusive
        int memory_users = 0;
    };
    struct handle {
        memory_disk* disk = nullptr;
        std::shared_ptr<file> of;
        std::uint64_t process = 0;
        bool dead = false;
        int level = 0;
        unsigned shared_mask = 0;
        unsigned exclusive_mask = 0;
        bool uses_memory = false;
    };
    [[nodiscard]] bool may_write(handle& by);
    [[nodiscard]] std::shared_ptr<file> find(const std::string& path, bool make);
    void remove(const std::string& path) { files_.erase(path); }
    [[nodiscard]] bool exists(const std::string& path) const { return files_.contains(path); }
    void opened(handle& made);
    void closed(handle& gone);
    static void unlock_all(handle& of);

  private:
    random random_;
    std::map<std::string, std::shared_ptr<file>> files_;
    std::vector<handle*> handles_;
    std::uint64_t user_ = 0;
    std::uint64_t dying_ = 0;
    std::uint64_t writes_left_ = 0;
    std::function<void()> told_;
};

}  // namespace dibs::simulation
