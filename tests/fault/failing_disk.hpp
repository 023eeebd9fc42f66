// SPDX-License-Identifier: Apache-2.0
#pragma once
// SQLite's own file system, whose syncs and writes fail on demand. Its files differ from the real
// ones by their table of methods alone. One at a time.

#include <sqlite3.h>

#include <map>
#include <memory>

namespace dibs::testing {

class failing_disk {
  public:
    static constexpr auto name = "failing-disk";

    failing_disk() {
        broken = false;
        only_cache = false;
        writes_left = unlimited;
        auto* real = sqlite3_vfs_find(nullptr);
        vfs_ = *real;
        vfs_.zName = name;
        real_open() = real->xOpen;
        vfs_.xOpen = &failing_disk::open;
        sqlite3_vfs_register(&vfs_, 0);
    }
    ~failing_disk() { sqlite3_vfs_unregister(&vfs_); }
    failing_disk(const failing_disk&) = delete;
    failing_disk& operator=(const failing_disk&) = delete;

    static inline bool broken = false;      ///< syncs fail
    static inline bool only_cache = false;  ///< syncs do nothing, for tests without power loss

    static constexpr int unlimited = -1;
    static inline int writes_left = unlimited;  ///< then one fails because the disk is full

  private:
    using open_function = int (*)(sqlite3_vfs*, const char*, sqlite3_file*, int, int*);
    static open_function& real_open() {
        static open_function function = nullptr;
        return function;
    }
    struct methods {
        sqlite3_io_methods ours;
        const sqlite3_io_methods* real;
    };

    static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out) {
        const int code = real_open()(vfs, path, file, flags, out);
        if (code == SQLITE_OK && file->pMethods != nullptr) {
            static std::map<const sqlite3_io_methods*, std::unique_ptr<methods>> all;
            auto& made = all[file->pMethods];
            if (!made) {
                made = std::make_unique<methods>(methods{*file->pMethods, file->pMethods});
                made->ours.xSync = &failing_disk::sync;
                made->ours.xWrite = &failing_disk::write;
            }
            file->pMethods = &made->ours;
        }
        return code;
    }

    // `ours` is the first member.
    static const sqlite3_io_methods& real_of(sqlite3_file* file) {
        return *reinterpret_cast<const methods*>(file->pMethods)->real;
    }

    static int sync(sqlite3_file* file, int flags) {
        if (broken) {
            return SQLITE_IOERR_FSYNC;
        }
        return only_cache ? SQLITE_OK : real_of(file).xSync(file, flags);
    }

    static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
        if (writes_left == 0) {
            writes_left = unlimited;
            return SQLITE_FULL;
        }
        writes_left -= writes_left > 0 ? 1 : 0;
        return real_of(file).xWrite(file, bytes, size, at);
    }

    sqlite3_vfs vfs_{};
};

}  // namespace dibs::testing
