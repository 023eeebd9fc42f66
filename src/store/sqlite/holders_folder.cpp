// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/holders_folder.hpp"

#include <dibs/error.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

namespace dibs::store::sqlite {

namespace {

/// How many read ends are kept open for the next question.
constexpr std::size_t watched_max = 32;

/// A half-made FIFO has this name, so that nobody takes it for one whose process is gone.
constexpr std::string_view half_made = ".new-";
constexpr std::time_t half_made_age_max = 3600;

constexpr std::string_view wake_suffix = ".wake";

/// Longer keys are woken by "any key".
constexpr std::size_t message_bytes_max = 4096;

enum class pulse { alive, gone, unclear };

pulse feel(int read_end) {
    char byte = 0;
    const auto got = ::read(read_end, &byte, 1);
    if (got == 0) {
        return pulse::gone;
    }
    return got > 0 || errno == EAGAIN ? pulse::alive : pulse::unclear;
}

/// The longest socket path is shorter than many folders' paths: those are reached through the
/// folder's descriptor.
bool address_of(int folder, const std::string& path, const std::string& name, sockaddr_un& made) {
    made = {};
    made.sun_family = AF_UNIX;
    std::string whole = path + '/' + name;
    if (whole.size() >= sizeof made.sun_path) {
        whole = "/proc/self/fd/" + std::to_string(folder) + '/' + name;
    }
    if (whole.size() >= sizeof made.sun_path) {
        return false;
    }
    std::memcpy(made.sun_path, whole.c_str(), whole.size() + 1);
    return true;
}

/// What root makes, or a member of a group that shares the file, belongs to whom the file belongs
/// to. Who may not give it away keeps it.
void give_to_owner_of(const struct stat& what, int folder, const char* name) {
    const bool theirs = ::geteuid() == 0 && what.st_uid != ::geteuid();
    if (theirs || what.st_gid != ::getegid()) {
        const uid_t user = theirs ? what.st_uid : static_cast<uid_t>(-1);
        (void)!::fchownat(folder, name, user, what.st_gid, AT_SYMLINK_NOFOLLOW);
    }
}

}  // namespace

mode_t rights_of_folder(mode_t file) noexcept {
    const mode_t readers = (file & 0444U) | 0400U;
    return (file & 0666U) | 0600U | (readers >> 2U);
}

std::size_t holders_folder::by_bytes::operator()(const process_id& id) const noexcept {
    std::size_t value = 0;
    std::memcpy(&value, id.bytes.data(), sizeof value);
    return value;
}

holders_folder::holders_folder(const std::string& file, process_id self)
    : file_(file), path_(file + ".holders"), self_(self) {}

int holders_folder::folder() const {
    if (const int known = folder_number_.load(std::memory_order_acquire); known >= 0) {
        return known;
    }
    const std::lock_guard guard{opening_};
    if (!folder_) {
        folder_ = file_descriptor{::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        folder_number_.store(folder_.get(), std::memory_order_release);
    }
    return folder_.get();
}

failure holders_folder::ensure_folder() {
    if (folder() >= 0) {
        return {};
    }
    // Whoever may use the file may use the folder.
    struct stat file {};
    const bool known = ::stat(file_.c_str(), &file) == 0;
    const mode_t mode = rights_of_folder(known ? file.st_mode : 0600U);
    if (::mkdir(path_.c_str(), 0700) == 0) {
        if (known) {
            give_to_owner_of(file, AT_FDCWD, path_.c_str());
        }
        ::chmod(path_.c_str(), mode);
    } else if (errno != EEXIST) {
        return translate_errno(errno, shown_path(path_) + ": the folder cannot be made");
    }
    if (folder() >= 0) {
        return {};
    }
    if (errno == ENOTDIR) {
        return {errc::store_damaged,
                shown_path(path_) +
                    ": not a folder; move it away, dibs needs this name for the signs of life of "
                    "its processes"};
    }
    return translate_errno(errno, shown_path(path_) + ": the folder cannot be opened");
}

failure holders_folder::appear() {
    if (lifeline_) {
        return {};
    }
    if (auto trouble = ensure_folder(); trouble) {
        return trouble;
    }
    const auto name = self_.text();
    const auto draft = std::string{half_made} + name;
    const std::string doing =
        shown_path(path_) + ": the sign of life of this process cannot be made";
    struct stat entry {};
    const mode_t mode = ::fstat(folder(), &entry) == 0 ? entry.st_mode & 0666U : 0600U;
    if (::mkfifoat(folder(), draft.c_str(), 0600) != 0) {
        return translate_errno(errno, doing);
    }
    // A writer cannot come before a reader without waiting.
    const file_descriptor reader{
        ::openat(folder(), draft.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    file_descriptor writer{::openat(folder(), draft.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)};
    give_to_owner_of(entry, folder(), draft.c_str());
    if (!reader || !writer || ::fchmodat(folder(), draft.c_str(), mode, 0) != 0 ||
        ::renameat(folder(), draft.c_str(), folder(), name.c_str()) != 0) {
        const int number = errno;
        ::unlinkat(folder(), draft.c_str(), 0);
        return translate_errno(number, doing);
    }
    lifeline_ = std::move(writer);
    lifeline_number_.store(lifeline_.get(), std::memory_order_release);
    return {};
}

bool holders_folder::gone(const process_id& process) {
    auto kept = watched_.find(process);
    if (kept == watched_.end()) {
        bool dead = false;
        auto opened = watch(process, dead);
        if (dead || !opened) {
            return dead;
        }
        if (watched_.size() >= watched_max) {
            watched_.erase(watched_.begin());
        }
        kept = watched_.emplace(process, std::move(opened)).first;
        return false;
    }
    if (feel(kept->second.get()) != pulse::gone) {
        return false;
    }
    watched_.erase(kept);
    return true;
}

file_descriptor holders_folder::watch(const process_id& process, bool& dead) const {
    dead = false;
    if (folder() < 0) {
        return {};
    }
    file_descriptor opened{
        ::openat(folder(), process.text().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)};
    struct stat entry {};
    if (!opened || ::fstat(opened.get(), &entry) != 0 || !S_ISFIFO(entry.st_mode)) {
        return {};
    }
    dead = feel(opened.get()) == pulse::gone;
    return opened;
}

failure holders_folder::bind_wake(file_descriptor& bound) {
    if (auto trouble = ensure_folder(); trouble) {
        return trouble;
    }
    const auto name = self_.text() + std::string{wake_suffix};
    const std::string doing = shown_path(path_) + ": the wake-up socket cannot be made";
    file_descriptor made{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    if (!address_of(folder(), path_, name, address)) {
        return translate_errno(ENAMETOOLONG, doing);
    }
    struct stat entry {};
    const mode_t mode = ::fstat(folder(), &entry) == 0 ? entry.st_mode & 0666U : 0600U;
    if (!made ||
        ::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return translate_errno(errno, doing);
    }
    give_to_owner_of(entry, folder(), name.c_str());
    if (::fchmodat(folder(), name.c_str(), mode, 0) != 0) {
        return translate_errno(errno, doing);
    }
    bound = std::move(made);
    return {};
}

holders_folder::reach holders_folder::wake(const process_id& process, std::string_view key) const {
    sockaddr_un address{};
    if (folder() < 0 ||
        !address_of(folder(), path_, process.text() + std::string{wake_suffix}, address)) {
        return reach::not_now;
    }
    const file_descriptor sender{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    const auto bytes = key.size() <= message_bytes_max ? key.size() : 0;
    if (::sendto(sender.get(),
                 key.data(),
                 bytes,
                 MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address),
                 sizeof address) >= 0) {
        return reach::woken;
    }
    return errno == ECONNREFUSED || errno == ENOENT ? reach::gone : reach::not_now;
}

bool holders_folder::disappear() {
    if (!lifeline_) {
        return true;
    }
    lifeline_number_.store(-1, std::memory_order_release);
    lifeline_.close();
    bool dead = false;
    const auto opened = watch(self_, dead);
    return dead;
}

void holders_folder::remove(const process_id& process) const noexcept {
    if (folder() >= 0) {
        const auto name = process.text();
        ::unlinkat(folder(), name.c_str(), 0);
        ::unlinkat(folder(), (name + std::string{wake_suffix}).c_str(), 0);
    }
}

void holders_folder::sweep(const std::function<bool(const process_id&)>& unknown) {
    if (folder() < 0) {
        return;
    }
    struct close_listing {
        void operator()(DIR* listing) const noexcept { ::closedir(listing); }
    };
    const std::unique_ptr<DIR, close_listing> listing{::opendir(path_.c_str())};
    while (const auto* entry = listing ? ::readdir(listing.get()) : nullptr) {
        std::string_view name{entry->d_name};
        if (name.starts_with(half_made)) {
            struct stat made {};
            if (::fstatat(folder(), entry->d_name, &made, AT_SYMLINK_NOFOLLOW) == 0 &&
                made.st_mtime + half_made_age_max < std::time(nullptr)) {
                ::unlinkat(folder(), entry->d_name, 0);
            }
            continue;
        }
        const bool socket = name.ends_with(wake_suffix);
        if (socket) {
            name.remove_suffix(wake_suffix.size());
        }
        const auto id = process_id::parse(name);
        if (!id || *id == self_) {
            continue;
        }
        // A process makes its FIFO before its row, so one without a row may be on its way; one
        // that nobody holds is not. A socket without a FIFO is its process's only if it answers.
        bool dead = false;
        const auto fifo = watch(*id, dead);
        dead = dead || (socket && !fifo && wake(*id, {}) == reach::gone);
        if (dead && unknown(*id)) {
            remove(*id);
        }
    }
}

}  // namespace dibs::store::sqlite
