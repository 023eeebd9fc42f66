// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/diagnosis.hpp"

#include "store/sqlite/errors.hpp"
#include "store/sqlite/holders_folder.hpp"
#include "store/sqlite/place.hpp"
#include "store/sqlite/sql.hpp"
#include "store/sqlite/statement.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace dibs::store::sqlite {

namespace {

using grade = finding::grade;

constexpr std::uint64_t mebibyte = 1024 * 1024;
constexpr std::uint64_t space_short = 64 * mebibyte;
constexpr std::uint64_t space_gone = 4 * mebibyte;

/// 2024-01-01. A clock behind that was never set.
constexpr std::int64_t plausible_wall_us = 1'704'067'200'000'000;

/// How long a statement waits for a writer.
constexpr int busy_ms = 2'000;

std::string name_of_user(uid_t user) {
    std::array<char, 4096> room{};
    passwd entry{};
    passwd* found = nullptr;
    const bool known = ::getpwuid_r(user, &entry, room.data(), room.size(), &found) == 0 && found;
    return known ? found->pw_name : "user " + std::to_string(user);
}

std::string name_of_group(gid_t group) {
    std::array<char, 4096> room{};
    ::group entry{};
    ::group* found = nullptr;
    const bool known = ::getgrgid_r(group, &entry, room.data(), room.size(), &found) == 0 && found;
    return known ? found->gr_name : std::to_string(group);
}

std::string octal(mode_t mode) {
    std::string text;
    for (const unsigned shift : {6U, 3U, 0U}) {
        text += static_cast<char>('0' + ((mode >> shift) & 7U));
    }
    return text;
}

class examination {
  public:
    explicit examination(const patient& whom) : whom_(whom) {}

    std::vector<finding> run() {
        place();
        space();
        rights("file", whom_.path);
        rights("folder", std::filesystem::path(whom_.path).parent_path().string());
        companion("log", whom_.path + "-wal", S_IFREG);
        companion("log index", whom_.path + "-shm", S_IFREG);
        companion("holders folder", whom_.path + ".holders", S_IFDIR);
        if (connect()) {
            schema();
            integrity();
            journal();
            durability();
            records();
            processes();
            clocks();
        }
        time_namespace();
        return std::move(told_);
    }

  private:
    void tell(std::string subject, grade state, std::string what, std::string advice = {}) {
        told_.push_back({std::move(subject), state, std::move(what), std::move(advice)});
    }

    void place() {
        struct stat entry {};
        if (::stat(whom_.path.c_str(), &entry) != 0) {
            tell("file system",
                 grade::problem,
                 shown_path(whom_.path) + ": " + std::strerror(errno),
                 "the file was moved or removed while it was in use; end every process that uses "
                 "it");
            return;
        }
        const auto kind = kind_of_mount(entry.st_dev);
        if (kind == "tmpfs" || kind == "ramfs") {
            tell("file system",
                 grade::warning,
                 kind + ": lies in memory",
                 "results, holds and fences are lost at a reboot; put the file on a disk");
        } else if (kind == "overlay") {
            tell("file system",
                 grade::warning,
                 "overlay: the container's own layer",
                 "it is lost with the container and excludes nobody outside; mount a volume");
        } else {
            tell("file system", grade::ok, (kind.empty() ? "local" : kind) + ": of this host");
        }
    }

    void space() {
        struct statvfs system {};
        if (::statvfs(whom_.path.c_str(), &system) != 0) {
            tell("free space", grade::warning, std::strerror(errno), "look at the disk");
            return;
        }
        const std::uint64_t left = std::uint64_t{system.f_bavail} * system.f_frsize;
        const std::string what = std::to_string(left / mebibyte) + " MiB";
        const bool no_names = system.f_files > 0 && system.f_favail < 64;
        if (left < space_gone || no_names) {
            tell("free space",
                 grade::problem,
                 no_names ? "no inodes are left" : what,
                 "nothing can be acquired on a full disk; make room");
        } else if (left < space_short) {
            tell("free space", grade::warning, what, "make room before it is full");
        } else {
            tell("free space", grade::ok, what);
        }
    }

    void rights(const std::string& subject, const std::string& path) {
        struct stat entry {};
        if (::stat(path.c_str(), &entry) == 0) {  // otherwise told as the file system
            judge_rights(subject, path, entry);
        }
    }

    void judge_rights(const std::string& subject,
                      const std::string& path,
                      const struct stat& entry) {
        const auto what = described(path, entry);
        const bool sticky = S_ISDIR(entry.st_mode) && (entry.st_mode & S_ISVTX) != 0;
        const bool shared = (entry.st_mode & S_IWGRP) != 0 &&
                            ::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0;
        if ((entry.st_mode & S_IWOTH) != 0 && !sticky) {
            tell(subject,
                 grade::problem,
                 what,
                 "everybody may write it, so anybody can take or end leases; chmod o-w");
        } else if (entry.st_uid != ::geteuid() && !sticky && !shared) {
            tell(subject,
                 grade::warning,
                 what,
                 "it is another user's; use it as that user, or choose a store of your own");
        } else {
            tell(subject, grade::ok, what);
        }
    }

    /// What lies beside the file must be as accessible as the file, or else some of its users work
    /// without: they are refused, or take the dead for alive.
    void companion(const std::string& subject, const std::string& path, mode_t kind) {
        struct stat entry {};
        struct stat file {};
        if (::lstat(path.c_str(), &entry) != 0 || ::stat(whom_.path.c_str(), &file) != 0) {
            const bool fresh = errno == ENOENT;
            tell(subject,
                 fresh ? grade::ok : grade::problem,
                 shown_path(path) + (fresh ? ": not made yet" : std::strerror(errno)),
                 fresh ? "" : "give this user the right to look at it");
            return;
        }
        const auto what = described(path, entry);
        if ((entry.st_mode & S_IFMT) != kind) {
            const bool folder = kind == S_IFDIR;
            tell(subject,
                 grade::problem,
                 what + (folder ? " is not a folder" : " is not a plain file"),
                 "nothing can be acquired; move it away, dibs makes its own");
            return;
        }
        const mode_t wanted =
            kind == S_IFDIR ? rights_of_folder(file.st_mode) : file.st_mode & 0666U;
        const bool by_group = (file.st_mode & S_IWGRP) != 0;
        const bool same_users =
            by_group ? entry.st_gid == file.st_gid : entry.st_uid == file.st_uid;
        if ((entry.st_mode & wanted) == wanted && same_users) {
            judge_rights(subject, path, entry);
            return;
        }
        tell(subject,
             grade::problem,
             what,
             "who may use the file (" + described(whom_.path, file) +
                 ") must be able to use this too: chown and chmod it to match" +
                 (kind == S_IFDIR ? "" : ", while no process uses the store"));
    }

    static std::string described(const std::string& path, const struct stat& entry) {
        return "of " + name_of_user(entry.st_uid) + ", group " + name_of_group(entry.st_gid) +
               ", mode " + octal(entry.st_mode) + ": " + shown_path(path);
    }

    bool connect() {
        sqlite3* made = nullptr;
        const int code = sqlite3_open_v2(whom_.path.c_str(), &made, SQLITE_OPEN_READWRITE, nullptr);
        db_.reset(made);
        if (code != SQLITE_OK) {
            tell("schema",
                 grade::problem,
                 translate(made, code, shown_path(whom_.path)).detail,
                 "no lease can be had before it is mended");
            return false;
        }
        sqlite3_busy_timeout(made, busy_ms);
        // The last one to go would fold the log into the file.
        sqlite3_db_config(made, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
        return true;
    }

    /// The first column of the first row.
    std::optional<std::string> ask(std::string_view query) {
        statement asked;
        trouble_ = asked.prepare(db_.get(), query);
        trouble_ = trouble_ == SQLITE_OK ? asked.step() : trouble_;
        if (is_busy()) {
            sqlite3_busy_timeout(db_.get(), 0);  // waited for once is enough
        }
        if (trouble_ != SQLITE_ROW) {
            return std::nullopt;
        }
        return std::string(asked.text(0));
    }

    [[nodiscard]] bool is_busy() const {
        return (trouble_ & 0xff) == SQLITE_BUSY || (trouble_ & 0xff) == SQLITE_LOCKED;
    }

    /// What the last question was answered with; the connection's own words are about a later step.
    void unreadable(std::string subject) {
        const bool busy = is_busy();
        const std::string why =
            trouble_ == SQLITE_DONE ? "there is nothing" : sqlite3_errstr(trouble_);
        tell(std::move(subject),
             busy ? grade::warning : grade::problem,
             "cannot be read: " + why,
             busy ? "another process keeps the file locked; look for one that holds a long "
                    "transaction on it"
                  : "restore the file from a backup, or move it away so that a new one is made");
    }

    void schema() {
        const auto version = ask("PRAGMA user_version");
        if (!version) {
            unreadable("schema");
        } else if (*version == std::to_string(sql::schema_version)) {
            tell("schema", grade::ok, "version " + *version);
        } else {
            tell("schema",
                 grade::problem,
                 "version " + *version + ", this release knows " +
                     std::to_string(sql::schema_version),
                 "use the newer release everywhere");
        }
    }

    void integrity() {
        const auto found = ask("PRAGMA quick_check(1)");
        if (!found) {
            unreadable("integrity");
        } else if (*found == "ok") {
            tell("integrity", grade::ok, "no damage found");
        } else {
            tell("integrity",
                 grade::problem,
                 *found,
                 "restore the file from a backup, or move it away so that a new one is made");
        }
    }

    void journal() {
        const auto mode = ask("PRAGMA journal_mode");
        if (!mode) {
            unreadable("journal mode");
        } else if (*mode == "wal") {
            tell("journal mode", grade::ok, "wal");
        } else {
            tell("journal mode",
                 grade::problem,
                 *mode,
                 "another program changed it; the next dibs that opens the file changes it back");
        }
    }

    void durability() {
        tell("synchronous",
             grade::ok,
             whom_.full ? "full: a grant survives power loss"
                        : "normal: results, marks and holds survive power loss; a grant need not, "
                          "and its boot's leases end then anyway");
    }

    void records() {
        const auto records = ask("SELECT count(*) FROM record");
        const auto waiters = ask("SELECT count(*) FROM waiter");
        if (records && waiters) {
            tell("records", grade::ok, *records + ", and " + *waiters + " waiters");
        } else {
            unreadable("records");
        }
    }

    void processes() {
        holders_folder folder(whom_.path, whom_.self);
        statement all;
        trouble_ = all.prepare(db_.get(),
                               "SELECT process.id, process.pid FROM process JOIN boot ON "
                               "boot.number = process.boot WHERE process.gone IS NULL AND "
                               "boot.id = ?1");
        if (trouble_ != SQLITE_OK) {
            unreadable("processes");
            return;
        }
        all.bind(1, std::string_view{whom_.boot_id});
        std::size_t alive = 0;
        std::size_t unclear = 0;
        std::string dead;
        while ((trouble_ = all.step()) == SQLITE_ROW) {
            process_id id;
            const auto bytes = all.text(0);
            if (bytes.size() != id.bytes.size()) {
                continue;
            }
            std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
            bool gone = false;
            const auto sign = folder.watch(id, gone);
            if (gone) {
                dead += (dead.empty() ? "pid " : ", pid ") + std::to_string(all.integer(1));
            } else if (sign) {
                ++alive;
            } else {
                ++unclear;
            }
        }
        if (trouble_ != SQLITE_DONE) {
            unreadable("processes");
            return;
        }
        const auto count = std::to_string(alive) + " alive";
        if (unclear > 0) {
            tell("processes",
                 grade::warning,
                 count + ", " + std::to_string(unclear) + " whose sign of life cannot be read",
                 "somebody removed files from " + shown_path(whom_.path) +
                     ".holders, or they are another user's; the leases of these processes end by "
                     "expiry alone");
        } else if (!dead.empty()) {
            tell("processes",
                 grade::warning,
                 count + "; look dead: " + dead,
                 "nothing is to be done: their attached leases count as ended, and the rows go "
                 "when the store is used");
        } else {
            tell("processes", grade::ok, count);
        }
    }

    void clocks() {
        const auto wall = whom_.now.wall.time_since_epoch().count();
        const auto largest = ask(sql::largest_fence);
        if (!largest) {
            unreadable("clock");
        } else if (wall < plausible_wall_us) {
            tell("clock",
                 grade::problem,
                 "the wall clock was never set",
                 "set it: fences of records that the store has forgotten rise by it alone");
        } else if (const auto ahead = std::stoll(*largest, nullptr, 16) - wall; ahead > 0) {
            tell("clock",
                 grade::warning,
                 "the wall clock is " + std::to_string(ahead / 1'000'000 + 1) +
                     " s behind the largest fence",
                 "it was set back, or a floor is ahead of it; fences go on rising by counting. "
                 "Look after the time synchronisation");
        } else {
            tell("clock", grade::ok, "the wall clock is ahead of every fence");
        }
        tell("boot", grade::ok, whom_.boot_id);
    }

    void time_namespace() {
        std::array<char, 64> own{};
        std::array<char, 64> children{};
        const auto read = ::readlink("/proc/self/ns/time", own.data(), own.size() - 1);
        (void)!::readlink("/proc/self/ns/time_for_children", children.data(), children.size() - 1);
        if (read > 0 && std::strcmp(own.data(), children.data()) != 0) {
            tell("time namespace",
                 grade::problem,
                 "this process is in another one than its children will be",
                 "start it inside the namespace");
        } else {
            tell("time namespace", grade::ok, read > 0 ? own.data() : "not known to this kernel");
        }
    }

    const patient& whom_;
    std::vector<finding> told_;
    int trouble_ = SQLITE_OK;  // of the last question
    struct close {
        void operator()(sqlite3* opened) const noexcept { sqlite3_close_v2(opened); }
    };
    std::unique_ptr<sqlite3, close> db_;
};

}  // namespace

std::vector<finding> diagnose(const patient& whom) {
    return examination(whom).run();
}

}  // namespace dibs::store::sqlite
