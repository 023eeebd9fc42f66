// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/memory_disk.hpp"

#include "simulation/stores/recycled_memory.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace dibs::simulation {

namespace {

using handle = memory_disk::handle;

struct open_file {
    sqlite3_file base;
    handle* mine;
};

handle& of(sqlite3_file* file) {
    return *reinterpret_cast<open_file*>(file)->mine;
}

memory_disk* current = nullptr;

// --- a file --------------------------------------------------------------------------------------

int close_file(sqlite3_file* file) {
    auto& mine = of(file);
    memory_disk::unlock_all(mine);
    if (mine.disk != nullptr) {
        mine.disk->closed(mine);
    }
    delete &mine;
    return SQLITE_OK;
}

int read_file(sqlite3_file* file, void* into, int amount, sqlite3_int64 offset) {
    auto& mine = of(file);
    if (mine.dead) {
        return SQLITE_IOERR_READ;
    }
    const auto& bytes = mine.of->bytes;
    const auto from = static_cast<std::size_t>(offset);
    const auto wanted = static_cast<std::size_t>(amount);
    const auto there = from >= bytes.size() ? 0 : std::min(wanted, bytes.size() - from);
    if (there > 0) {
        std::memcpy(into, bytes.data() + from, there);
    }
    std::memset(static_cast<unsigned char*>(into) + there, 0, wanted - there);
    return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

void put_into(std::vector<unsigned char>& to, const memory_disk::write& what) {
    if (what.cuts) {
        to.resize(std::min(to.size(), what.at));
        return;
    }
    to.resize(std::max(to.size(), what.at + what.bytes.size()));
    std::copy(
        what.bytes.begin(), what.bytes.end(), to.begin() + static_cast<std::ptrdiff_t>(what.at));
}

int change(handle& mine, const memory_disk::write& what) {
    if (!mine.disk || !mine.disk->may_write(mine)) {
        return SQLITE_IOERR_WRITE;
    }
    put_into(mine.of->bytes, what);
    mine.of->unsynced.add(what);
    return SQLITE_OK;
}

int write_file(sqlite3_file* file, const void* from, int amount, sqlite3_int64 offset) {
    memory_disk::write what;
    what.at = static_cast<std::size_t>(offset);
    const auto* bytes = static_cast<const unsigned char*>(from);
    what.bytes = {bytes, static_cast<std::size_t>(amount)};
    return change(of(file), what);
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
    memory_disk::write what;
    what.at = static_cast<std::size_t>(size);
    what.cuts = true;
    return change(of(file), what);
}

int sync_file(sqlite3_file* file, int) {
    auto& mine = of(file);
    if (!mine.disk || !mine.disk->may_write(mine)) {
        return SQLITE_IOERR_FSYNC;
    }
    mine.of->unsynced.each([&](const auto& one) { put_into(mine.of->synced, one); });
    mine.of->unsynced.clear();
    return SQLITE_OK;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
    *size = static_cast<sqlite3_int64>(of(file).of->bytes.size());
    return of(file).dead ? SQLITE_IOERR_FSTAT : SQLITE_OK;
}

// Levels as SQLite has them: shared, reserved, pending (taken for exclusive here), exclusive.
int lock_file(sqlite3_file* file, int level) {
    auto& mine = of(file);
    auto& what = *mine.of;
    if (mine.dead) {
        return SQLITE_IOERR_LOCK;
    }
    if (mine.level >= level) {
        return SQLITE_OK;
    }
    if (level == SQLITE_LOCK_SHARED) {
        if (what.exclusive) {
            return SQLITE_BUSY;
        }
        ++what.shared_locks;
    } else if (level == SQLITE_LOCK_RESERVED) {
        if (what.reserved) {
            return SQLITE_BUSY;
        }
        what.reserved = true;
    } else {
        const bool reserved_by_others = what.reserved && mine.level < SQLITE_LOCK_RESERVED;
        if (what.exclusive || reserved_by_others || what.shared_locks > 1) {
            return SQLITE_BUSY;
        }
        what.reserved = true;
        what.exclusive = true;
    }
    mine.level = level;
    return SQLITE_OK;
}

void lower_to(handle& mine, int level) {
    auto& what = *mine.of;
    if (mine.level > SQLITE_LOCK_RESERVED && level <= SQLITE_LOCK_RESERVED) {
        what.exclusive = false;
    }
    if (mine.level >= SQLITE_LOCK_RESERVED && level < SQLITE_LOCK_RESERVED) {
        what.reserved = false;
    }
    if (mine.level >= SQLITE_LOCK_SHARED && level < SQLITE_LOCK_SHARED) {
        --what.shared_locks;
    }
    mine.level = std::min(mine.level, level);
}

int unlock_file(sqlite3_file* file, int level) {
    if (!of(file).dead) {
        lower_to(of(file), level);
    }
    return SQLITE_OK;
}

int is_reserved(sqlite3_file* file, int* answer) {
    *answer = of(file).of->reserved ? 1 : 0;
    return SQLITE_OK;
}

int control_file(sqlite3_file*, int, void*) {
    return SQLITE_NOTFOUND;
}
int sector_size(sqlite3_file*) {
    return 4096;
}
int characteristics(sqlite3_file*) {
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

// --- shared memory, for the write-ahead log ------------------------------------------------------

int map_memory(sqlite3_file* file, int region, int size, int extend, void volatile** at) {
    auto& mine = of(file);
    auto& all = mine.of->shared_memory;
    if (mine.dead) {
        return SQLITE_IOERR_SHMMAP;
    }
    if (!std::exchange(mine.uses_memory, true)) {
        ++mine.of->memory_users;
    }
    const auto index = static_cast<std::size_t>(region);
    *at = nullptr;
    if (index >= all.size() && extend == 0) {
        return SQLITE_OK;
    }
    while (index >= all.size()) {
        all.push_back(std::make_unique<unsigned char[]>(static_cast<std::size_t>(size)));
    }
    *at = all[index].get();
    return SQLITE_OK;
}

int lock_memory(sqlite3_file* file, int first, int count, int flags) {
    auto& mine = of(file);
    auto& locks = mine.of->memory_locks;
    if (mine.dead) {
        return SQLITE_IOERR_SHMLOCK;
    }
    const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
    const bool takes = (flags & SQLITE_SHM_LOCK) != 0;
    for (int at = first; takes && at < first + count; ++at) {
        const bool mine_too = (mine.shared_mask & (1U << at)) != 0;
        if (exclusive ? locks[at] != 0 : (locks[at] < 0 && !mine_too)) {
            return SQLITE_BUSY;
        }
    }
    for (int at = first; at < first + count; ++at) {
        const auto bit = 1U << at;
        auto& mask = exclusive ? mine.exclusive_mask : mine.shared_mask;
        if (takes == ((mask & bit) != 0)) {
            continue;
        }
        mask ^= bit;
        if (exclusive) {
            locks[at] = takes ? -1 : 0;
        } else {
            locks[at] += takes ? 1 : -1;
        }
    }
    return SQLITE_OK;
}

void barrier(sqlite3_file*) {}

int unmap_memory(sqlite3_file* file, int forget) {
    auto& mine = of(file);
    if (std::exchange(mine.uses_memory, false)) {
        --mine.of->memory_users;
    }
    if (forget != 0 && !mine.dead && mine.of->memory_users == 0) {
        mine.of->shared_memory.clear();
    }
    return SQLITE_OK;
}

const sqlite3_io_methods methods{2,
                                 &close_file,
                                 &read_file,
                                 &write_file,
                                 &truncate_file,
                                 &sync_file,
                                 &file_size,
                                 &lock_file,
                                 &unlock_file,
                                 &is_reserved,
                                 &control_file,
                                 &sector_size,
                                 &characteristics,
                                 &map_memory,
                                 &lock_memory,
                                 &barrier,
                                 &unmap_memory,
                                 nullptr,
                                 nullptr};

// --- the file system -----------------------------------------------------------------------------

int open_file_at(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out) {
    auto* made = reinterpret_cast<open_file*>(file);
    made->base.pMethods = nullptr;
    if (current == nullptr) {
        return SQLITE_CANTOPEN;
    }
    const bool make = (flags & SQLITE_OPEN_CREATE) != 0;
    auto found =
        path == nullptr ? std::make_shared<memory_disk::file>() : current->find(path, make);
    if (!found) {
        return SQLITE_CANTOPEN;
    }
    made->mine = new handle;
    made->mine->of = std::move(found);
    current->opened(*made->mine);
    made->base.pMethods = &methods;
    if (out != nullptr) {
        *out = flags;
    }
    return SQLITE_OK;
}

int delete_path(sqlite3_vfs*, const char* path, int) {
    if (current == nullptr || !current->exists(path)) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    current->remove(path);
    return SQLITE_OK;
}

int access_path(sqlite3_vfs*, const char* path, int, int* answer) {
    *answer = current != nullptr && current->exists(path) ? 1 : 0;
    return SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* path, int room, char* into) {
    sqlite3_snprintf(room, into, "%s", path);
    return SQLITE_OK;
}

int randomness(sqlite3_vfs*, int room, char* into) {
    std::memset(into, 7, static_cast<std::size_t>(room));
    return room;
}
int pause(sqlite3_vfs*, int length) {
    return length;
}
int day(sqlite3_vfs*, double* at) {
    *at = 2'460'000.0;
    return SQLITE_OK;
}
int last_error(sqlite3_vfs*, int, char*) {
    return 0;
}

/// For the whole process, before anything of SQLite is used: there is one thread, and nobody asks how
/// much memory is in use. Where that comes too late it is slower, and nothing else.
bool prepare_sqlite() {
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    sqlite3_config(SQLITE_CONFIG_MALLOC, &recycled_memory());
#endif
    return true;
}

sqlite3_vfs& disk_vfs() {
    static sqlite3_vfs made = [] {
        sqlite3_vfs all{};
        all.iVersion = 1;
        all.szOsFile = sizeof(open_file);
        all.mxPathname = 512;
        all.zName = memory_disk::name;
        all.xOpen = &open_file_at;
        all.xDelete = &delete_path;
        all.xAccess = &access_path;
        all.xFullPathname = &full_path;
        all.xRandomness = &randomness;
        all.xSleep = &pause;
        all.xCurrentTime = &day;
        all.xGetLastError = &last_error;
        return all;
    }();
    return made;
}

}  // namespace

void memory_disk::write_list::add(const write& what) {
    list_.push_back({what.at, bytes_.size(), what.bytes.size(), what.cuts});
    bytes_.insert(bytes_.end(), what.bytes.begin(), what.bytes.end());
}

void memory_disk::write_list::clear() noexcept {
    list_.clear();
    bytes_.clear();
}

memory_disk::memory_disk(random chosen_by) : random_(chosen_by) {
    static const bool prepared = prepare_sqlite();
    static_cast<void>(prepared);
    current = this;
    sqlite3_vfs_register(&disk_vfs(), 0);
}

memory_disk::~memory_disk() {
    for (auto* one : handles_) {
        one->dead = true;
        one->disk = nullptr;
    }
    if (current == this) {
        current = nullptr;
    }
}

std::shared_ptr<memory_disk::file> memory_disk::find(const std::string& path, bool make) {
    const auto at = files_.find(path);
    if (at != files_.end()) {
        return at->second;
    }
    return make ? files_.emplace(path, std::make_shared<file>()).first->second : nullptr;
}

void memory_disk::opened(handle& made) {
    made.disk = this;
    made.process = user_;
    handles_.push_back(&made);
}

void memory_disk::closed(handle& gone) {
    std::erase(handles_, &gone);
}

void memory_disk::unlock_all(handle& mine) {
    lower_to(mine, SQLITE_LOCK_NONE);
    auto& locks = mine.of->memory_locks;
    for (int at = 0; at < 8; ++at) {
        locks[at] -= (mine.shared_mask >> at) & 1U ? 1 : 0;
        locks[at] = (mine.exclusive_mask >> at) & 1U ? 0 : locks[at];
    }
    mine.shared_mask = 0;
    mine.exclusive_mask = 0;
}

void memory_disk::abandon(std::uint64_t process) {
    for (auto* one : handles_) {
        if (one->process == process && !std::exchange(one->dead, true)) {
            unlock_all(*one);
        }
    }
    if (dying_ == process) {
        dying_ = 0;
        told_ = {};
    }
}

void memory_disk::abandon_after(std::uint64_t process,
                                std::uint64_t writes,
                                std::function<void()> told) {
    dying_ = process;
    writes_left_ = writes;
    told_ = std::move(told);
}

bool memory_disk::may_write(handle& by) {
    if (by.dead) {
        return false;
    }
    if (dying_ != 0 && by.process == dying_ && writes_left_-- == 0) {
        const auto told = std::exchange(told_, {});
        abandon(by.process);
        told();
        return false;
    }
    return true;
}

void memory_disk::lose_power() {
    for (auto* one : handles_) {
        one->dead = true;
        unlock_all(*one);
    }
    for (auto& [path, one] : files_) {
        auto kept = one->synced;
        const auto share = static_cast<unsigned>(random_.below(1001));
        one->unsynced.each([&](const auto& late) {
            if (random_.chance(share)) {
                put_into(kept, late);
            }
        });
        auto anew = std::make_shared<file>();
        anew->bytes = kept;
        anew->synced = std::move(kept);
        one = std::move(anew);
    }
}

}  // namespace dibs::simulation
