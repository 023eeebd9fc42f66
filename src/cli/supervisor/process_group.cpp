// SPDX-License-Identifier: Apache-2.0
#include "cli/supervisor/process_group.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace dibs::cli {

namespace {

constexpr unsigned signal_whole_group = 4;  // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9

long parse_number(const char*& at) noexcept {
    while (*at == ' ') {
        ++at;
    }
    long value = 0;
    while (*at >= '0' && *at <= '9') {
        value = value * 10 + (*at++ - '0');
    }
    return value;
}

/// Reads /proc/PID/stat: "pid (name) state ppid pgrp session …". The name may hold anything, so
/// count from its last parenthesis.
bool is_live_member(int proc, const char* pid, pid_t group, pid_t session) noexcept {
    std::array<char, 32> path{};
    const auto length = std::strlen(pid);
    if (length + 6 > path.size()) {
        return false;
    }
    std::memcpy(path.data(), pid, length);
    std::memcpy(path.data() + length, "/stat", 6);
    const int file = ::openat(proc, path.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    std::array<char, 512> text{};
    const auto got = ::read(file, text.data(), text.size() - 1);
    ::close(file);
    if (got <= 0) {
        return false;
    }
    const char* at = std::strrchr(text.data(), ')');
    if (at == nullptr || at[1] != ' ' || at[2] == '\0') {
        return false;
    }
    const char state = at[2];
    at += 3;
    (void)parse_number(at);
    const long found_group = parse_number(at);
    const long found_session = parse_number(at);
    return state != 'Z' && state != 'X' && found_group == group && found_session == session;
}

}  // namespace

int open_pidfd(pid_t process) noexcept {
    return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
}

bool group_has_member(pid_t group, pid_t session) noexcept {
    const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0) {
        return false;
    }
    struct entry {
        std::uint64_t inode;
        std::int64_t offset;
        std::uint16_t length;
        unsigned char type;
        char name[1];
    };
    alignas(entry) std::array<char, 4096> buffer{};
    bool found = false;
    long got = 0;
    while (!found && (got = ::syscall(SYS_getdents64, proc, buffer.data(), buffer.size())) > 0) {
        for (long at = 0; at < got && !found;) {
            const auto* shown = reinterpret_cast<const entry*>(buffer.data() + at);
            if (shown->name[0] >= '1' && shown->name[0] <= '9') {
                found = is_live_member(proc, shown->name, group, session);
            }
            at += shown->length;
        }
    }
    ::close(proc);
    return found;
}

bool process_group::leader_runs() const noexcept {
    pollfd ended{leader_, POLLIN, 0};
    return leader_ >= 0 && ::poll(&ended, 1, 0) == 0;
}

bool process_group::signal_by_number(int number) const noexcept {
    if (id_ <= 1 || (!leader_runs() && !group_has_member(id_, session_))) {
        return false;
    }
    return ::kill(-id_, number) == 0 || errno == EPERM;
}

bool process_group::signal(int number) const noexcept {
    if (id_ <= 1) {
        return false;
    }
    if (leader_ >= 0) {
        if (::syscall(SYS_pidfd_send_signal, leader_, number, nullptr, signal_whole_group) == 0) {
            return true;
        }
        if (errno == ESRCH) {
            return false;
        }
        if (errno == EPERM) {
            return true;
        }
    }
    return signal_by_number(number);
}

}  // namespace dibs::cli
