// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process that locks one key as some program does, and is told what to do by lines:
//   acquire TTL_MS                -> granted | held
//   renew TTL_MS                  -> renewed | not_held
//   release                       -> released | not_held
//   contend ROUNDS TTL_MS FOLDER  -> done | lost: takes the key that many times and works under it
// Its first line is `ready`, or `missing` and what is not installed.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dibs::testing {

class peer_process {
  public:
    peer_process(std::vector<std::string> command, const std::string& modules) {
        int to[2];
        int from[2];
        if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
            throw std::runtime_error{"no pipe"};
        }
        std::vector<char*> raw;
        for (auto& word : command) {
            raw.push_back(word.data());
        }
        raw.push_back(nullptr);
        const auto parent = ::getpid();
        id_ = ::fork();
        if (id_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) {
                ::_exit(1);
            }
            ::dup2(to[0], 0);
            ::dup2(from[1], 1);
            ::setenv("NODE_PATH", modules.c_str(), 1);
            ::execvp(raw[0], raw.data());
            ::_exit(127);
        }
        ::close(to[0]);
        ::close(from[1]);
        to_ = to[1];
        from_ = from[0];
        if (id_ < 0) {
            throw std::runtime_error{"no process"};
        }
    }
    peer_process(const peer_process&) = delete;
    peer_process& operator=(const peer_process&) = delete;
    ~peer_process() {
        kill();
        ::close(to_);
        ::close(from_);
    }

    void tell(std::string line) {
        line += '\n';
        if (::write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
            throw std::runtime_error{"the peer is gone"};
        }
    }
    /// The next line; "(silent)" when none comes for a minute, "(ended)" when none will.
    std::string hear() {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
        for (;;) {
            if (const auto at = heard_.find('\n'); at != std::string::npos) {
                auto line = heard_.substr(0, at);
                heard_.erase(0, at + 1);
                return line;
            }
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                end - std::chrono::steady_clock::now());
            pollfd one{from_, POLLIN, 0};
            if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) <= 0) {
                return "(silent)";
            }
            char piece[256];
            const auto got = ::read(from_, piece, sizeof piece);
            if (got <= 0) {
                return "(ended)";
            }
            heard_.append(piece, static_cast<std::size_t>(got));
        }
    }
    std::string ask(const std::string& line) {
        tell(line);
        return hear();
    }
    void kill() {
        if (id_ > 0) {
            ::kill(id_, SIGKILL);
            ::waitpid(id_, nullptr, 0);
            id_ = -1;
        }
    }

  private:
    pid_t id_ = -1;
    int to_ = -1;
    int from_ = -1;
    std::string heard_;
};

}  // namespace dibs::testing
