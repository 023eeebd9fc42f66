// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program that a test runs: as an unprivileged user where it refuses to be root's, and never
// longer than the thread that started it.

#include "support/eventually.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace dibs::testing {

/// Whom to be where the test is root; nothing where it is not.
struct plain_user {
    uid_t user;
    gid_t group;
};

[[nodiscard]] inline std::optional<plain_user> plain_user_for_servers() {
    if (::geteuid() != 0) {
        return std::nullopt;
    }
    for (const char* name : {"postgres", "nobody"}) {
        if (const auto* found = ::getpwnam(name); found != nullptr) {
            return plain_user{found->pw_uid, found->pw_gid};
        }
    }
    throw std::runtime_error{"root has nobody to be instead"};
}

/// One that nobody listens on just now.
[[nodiscard]] inline int free_port() {
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    int port = 0;
    if (::bind(made, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
        ::getsockname(made, reinterpret_cast<sockaddr*>(&at), &size) == 0) {
        port = ntohs(at.sin_port);
    }
    ::close(made);
    return port;
}

class test_process {
  public:
    using words = std::vector<std::string>;

    test_process() = default;
    /// Its output goes to the end of `log`. `last_signal`: what it gets when its starter dies.
    test_process(const words& line,
                 const std::string& folder,
                 const std::string& log,
                 int last_signal = SIGKILL) {
        std::vector<char*> raw;
        for (const auto& word : line) {
            raw.push_back(const_cast<char*>(word.c_str()));
        }
        raw.push_back(nullptr);
        const auto user = plain_user_for_servers();
        const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        const auto parent = ::getpid();
        pid_ = ::fork();
        if (pid_ == 0) {
            const bool changed =
                !user || (::setgroups(0, nullptr) == 0 &&
                          ::setresgid(user->group, user->group, user->group) == 0 &&
                          ::setresuid(user->user, user->user, user->user) == 0);
            // After the change of the user, which takes the request back.
            ::prctl(PR_SET_PDEATHSIG, last_signal);
            if (!changed || ::getppid() != parent || ::chdir(folder.c_str()) != 0) {
                ::_exit(126);
            }
            ::dup2(out, STDOUT_FILENO);
            ::dup2(out, STDERR_FILENO);
            sigset_t none;
            ::sigemptyset(&none);
            ::sigprocmask(SIG_SETMASK, &none, nullptr);
            ::execvp(raw[0], raw.data());
            ::_exit(127);
        }
        const int error = errno;
        ::close(out);
        if (pid_ < 0) {
            throw std::system_error{error, std::generic_category(), line.front()};
        }
    }
    test_process(test_process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
    test_process& operator=(test_process&& other) noexcept {
        std::swap(pid_, other.pid_);
        return *this;
    }
    ~test_process() { end(SIGKILL); }

    [[nodiscard]] pid_t id() const noexcept { return pid_; }
    void signal(int number) const {
        if (pid_ > 0) {
            ::kill(pid_, number);
        }
    }
    [[nodiscard]] bool ended() {
        if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) {
            pid_ = -1;
        }
        return pid_ <= 0;
    }
    /// By that signal; by KILL when it takes longer than half a minute.
    void end(int number) {
        signal(number);
        signal(SIGCONT);
        if (pid_ > 0 && !eventually([&] { return ended(); }, std::chrono::seconds{30})) {
            signal(SIGKILL);
            ::waitpid(pid_, &status_, 0);
            pid_ = -1;
        }
    }
    /// Waits for its end. Its exit status, or 128 and the signal.
    [[nodiscard]] int join() {
        if (pid_ > 0) {
            ::waitpid(pid_, &status_, 0);
            pid_ = -1;
        }
        return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
    }

  private:
    pid_t pid_ = -1;
    int status_ = 0;
};

}  // namespace dibs::testing
