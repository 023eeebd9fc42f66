// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/place.hpp"

#include "store/text_file.hpp"

#include <dibs/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

namespace dibs::store::sqlite {

namespace {

namespace fs = std::filesystem;

/// SQLite's own limit is 512, its log's suffix included.
constexpr std::size_t path_bytes_max = 500;

/// SQLite takes a file that has no room for a page for an empty one, and writes over it.
constexpr off_t smallest_database_bytes = 512;

constexpr long fuse = 0x65735546;

constexpr std::pair<long, std::string_view> foreign[] = {
    {0x6969, "NFS"},
    {0x517b, "SMB"},
    {static_cast<long>(0xff534d42), "CIFS"},
    {static_cast<long>(0xfe534d42), "SMB"},
    {0x01021997, "9p"},
    {0x5346414f, "AFS"},
    {0x6b414653, "AFS"},
    {0x0bd00bd0, "Lustre"},
    {0x00c36400, "Ceph"},
    {0x01161970, "GFS2"},
    {0x7461636f, "OCFS2"},
    {0x564c, "NCP"},
    {0x73757245, "Coda"},
    {0x47504653, "GPFS"},
    {static_cast<long>(0xaad7aaea), "PanFS"},
    {0x786f4256, "a VirtualBox folder"},
    {static_cast<long>(0xbacbacbc), "a VMware folder"},
    {0x6e667364, "NFS"},
    {0x19830326, "FhGFS"},
    {0x20030528, "OrangeFS"}};

// FUSE tells nothing of what is behind it. These lie on a disk of this host.
constexpr std::string_view local_fuse[] = {"fuseblk",
                                           "fuse.fuse-overlayfs",
                                           "fuse.mergerfs",
                                           "fuse.bindfs",
                                           "fuse.gocryptfs",
                                           "fuse.encfs"};

failure refuse_foreign(const std::string& existing, const std::string& path) {
    struct statfs system {};
    struct stat entry {};
    if (::statfs(existing.c_str(), &system) != 0 || ::stat(existing.c_str(), &entry) != 0) {
        return translate_errno(errno, shown_path(path) + ": cannot be looked at");
    }
    const long type = system.f_type;
    const auto name = type == fuse ? kind_of_mount(entry.st_dev) : std::string{};
    if (const auto kind = shared_between_hosts(type, name); !kind.empty()) {
        return {errc::unsupported,
                shown_path(path) + ": lies on " + std::string{kind} +
                    ", a file system that several hosts may write; SQLite's locks do not reach "
                    "across hosts. Put the file on a disk of this host, or use a store that is a "
                    "server"};
    }
    return {};
}

void sync_folder(const fs::path& folder) {
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened >= 0) {
        ::fsync(opened);
        ::close(opened);
    }
}

failure look_at_file(const std::string& path, bool& there) {
    struct stat entry {};
    there = ::stat(path.c_str(), &entry) == 0;
    if (!there && errno != ENOENT) {
        return translate_errno(errno, shown_path(path) + ": cannot be opened");
    }
    if (!there) {
        std::error_code none;
        const auto target = fs::read_symlink(path, none);
        return none ? failure{}
                    : failure{errc::store_unreachable,
                              shown_path(path) + ": a symbolic link to " +
                                  shown_path(target.string()) +
                                  ", which is not there; mount its disk, or remove the link"};
    }
    if (S_ISDIR(entry.st_mode)) {
        return translate_errno(EISDIR, shown_path(path) + ": cannot be opened");
    }
    if (!S_ISREG(entry.st_mode)) {
        return {errc::invalid_argument,
                shown_path(path) + ": not a regular file; name another path"};
    }
    if (entry.st_size > 0 && entry.st_size < smallest_database_bytes) {
        return not_a_database(path);
    }
    if (::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) != 0) {
        return translate_errno(errno, shown_path(path) + ": cannot be read and written");
    }
    return {};
}

/// A folder that is not there is not made: it is a misspelt path more often than a new place.
failure look_at_folder(const std::string& folder, const std::string& path) {
    struct stat entry {};
    const bool there = ::stat(folder.c_str(), &entry) == 0;
    if (!there && errno != ENOENT) {
        return translate_errno(errno, shown_path(folder) + ": the folder cannot be looked at");
    }
    if (!there) {
        return {errc::store_unreachable,
                shown_path(path) + ": there is no folder " + shown_path(folder) +
                    "; make it, or correct the path"};
    }
    return {};
}

}  // namespace

std::string kind_of_mount(dev_t device) {
    const auto wanted = std::to_string(major(device)) + ':' + std::to_string(minor(device));
    std::istringstream mounts{read_text_file("/proc/self/mountinfo").text};
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream fields{line};
        std::string id;
        std::string parent;
        std::string number;
        fields >> id >> parent >> number;
        const auto dash = line.find(" - ");
        if (number == wanted && dash != std::string::npos) {
            return line.substr(dash + 3, line.find(' ', dash + 3) - dash - 3);
        }
    }
    return {};
}

std::string_view shared_between_hosts(long type, std::string_view name) noexcept {
    if (type == fuse) {
        for (const auto local : local_fuse) {
            if (name == local) {
                return {};
            }
        }
        return "a FUSE file system that is not known to be local";
    }
    for (const auto& [number, kind] : foreign) {
        if (type == number) {
            return kind;
        }
    }
    return {};
}

std::optional<file_identity> identity_of(const std::string& path) noexcept {
    struct stat entry {};
    return ::stat(path.c_str(), &entry) == 0
               ? std::optional{file_identity{entry.st_dev, entry.st_ino}}
               : std::nullopt;
}

failure prepare_place(std::string& path, bool make) {
    if (path.empty() || path.find('\0') != std::string::npos) {
        return {errc::invalid_argument, "the store's path is empty or holds a NUL byte"};
    }
    if (path == ":memory:") {
        return {errc::invalid_argument,
                ":memory: is not a file; a store for tests within one process is `memory:`"};
    }
    if (path.back() == '/') {
        return translate_errno(EISDIR, shown_path(path) + ": cannot be opened");
    }
    std::error_code trouble;
    const auto from_root = fs::absolute(path, trouble);
    if (trouble) {
        return translate_errno(
            trouble.value(),
            shown_path(path) + ": cannot be opened, for the current folder cannot be found");
    }
    const auto whole = fs::weakly_canonical(from_root, trouble);
    if (trouble) {
        return translate_errno(trouble.value(), shown_path(path) + ": cannot be opened");
    }
    path = whole.string();
    if (path.size() > path_bytes_max) {
        return translate_errno(ENAMETOOLONG, shown_path(path) + ": cannot be opened");
    }
    bool there = false;
    if (auto wrong = look_at_file(path, there); wrong) {
        return wrong;
    }
    const auto folder = whole.parent_path();
    if (auto wrong = look_at_folder(folder.string(), path); wrong) {
        return wrong;
    }
    if (auto wrong = refuse_foreign(there ? path : folder.string(), path); wrong) {
        return wrong;
    }
    if (!there && !make) {
        return nothing_there(path);
    }
    if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
        return translate_errno(errno,
                               shown_path(folder.string()) + ": the folder cannot be written");
    }
    if (!there) {
        // Neither open and close (closing drops locks that another connection of this process may
        // have got on the file meanwhile) nor SQLite's own creation (readable by everybody).
        if (::mknod(path.c_str(), S_IFREG | 0600, 0) != 0 && errno != EEXIST) {
            return translate_errno(errno, shown_path(path) + ": the file cannot be made");
        }
        sync_folder(folder);
    }
    return {};
}

}  // namespace dibs::store::sqlite
