// SPDX-License-Identifier: Apache-2.0
#pragma once
// A real server of the test's own: on a free port of 127.0.0.1 and on a socket in a folder of its
// own, ended with the test. And a client to look into it, which shares no code with ours.

#include "support/eventually.hpp"
#include "support/server_clock.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_certificates.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dibs::testing {

/// What a server told, as text: "OK", "(nil)", "7", "[a b]", "ERR …".
using redis_reply = std::unique_ptr<redisReply, void (*)(void*)>;

[[nodiscard]] inline std::string text_of(const redisReply& told) {
    switch (told.type) {
        case REDIS_REPLY_INTEGER:
            return std::to_string(told.integer);
        case REDIS_REPLY_NIL:
            return "(nil)";
        case REDIS_REPLY_ARRAY: {
            std::string all = "[";
            for (std::size_t at = 0; at < told.elements; ++at) {
                all += (at == 0 ? "" : " ") + text_of(*told.element[at]);
            }
            return all + "]";
        }
        default:
            return {told.str, static_cast<std::size_t>(told.len)};
    }
}

class redis_server {
  public:
    using words = std::vector<std::string>;

    explicit redis_server(words more = {}, const server_clock* clock = nullptr)
        : more_(std::move(more)), clock_(clock) {
        for (int attempt = 0; attempt < 10; ++attempt) {
            port_ = free_port();
            if (start()) {
                return;
            }
        }
        throw std::runtime_error{"no redis-server came up: " + log()};
    }
    /// Speaks TLS at its port, and plainly at its socket.
    redis_server(const proof& own, words more, const server_clock* clock = nullptr)
        : redis_server(words_of(own, std::move(more)), clock) {}
    redis_server(const redis_server&) = delete;
    redis_server& operator=(const redis_server&) = delete;
    ~redis_server() { kill(); }

    [[nodiscard]] int port() const noexcept { return port_; }
    [[nodiscard]] std::string socket() const { return (folder_.path() / "socket").string(); }
    [[nodiscard]] std::string url(const std::string& options = "") const {
        return "redis://127.0.0.1:" + std::to_string(port_) + options;
    }
    [[nodiscard]] std::string folder() const { return folder_.path().string(); }

    /// At the same place. False: it did not come up.
    [[nodiscard]] bool start() {
        const auto line = command_line();
        std::vector<char*> raw;
        for (const auto& word : line) {
            raw.push_back(const_cast<char*>(word.c_str()));
        }
        raw.push_back(nullptr);
        const auto parent = ::getpid();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) {
                ::_exit(1);
            }
            sigset_t none;
            ::sigemptyset(&none);
            ::sigprocmask(SIG_SETMASK, &none, nullptr);
            ::execvp(raw[0], raw.data());
            ::_exit(127);
        }
        return eventually([&] { return answers() || ended(); }) && pid_ > 0;
    }
    void kill() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::kill(pid_, SIGCONT);
            ::waitpid(pid_, nullptr, 0);
            pid_ = -1;
        }
    }
    void freeze() const { ::kill(pid_, SIGSTOP); }
    void thaw() const { ::kill(pid_, SIGCONT); }

    /// One command over a connection of its own.
    std::string ask(const words& command) const {
        const std::unique_ptr<redisContext, void (*)(redisContext*)> talk{
            ::redisConnectUnix(socket().c_str()), ::redisFree};
        if (!talk || talk->err != 0) {
            return "no connection";
        }
        std::vector<const char*> parts;
        std::vector<std::size_t> sizes;
        for (const auto& word : command) {
            parts.push_back(word.data());
            sizes.push_back(word.size());
        }
        const redis_reply told{
            static_cast<redisReply*>(::redisCommandArgv(
                talk.get(), static_cast<int>(parts.size()), parts.data(), sizes.data())),
            ::freeReplyObject};
        return told ? text_of(*told) : std::string{"no answer: "} + talk->errstr;
    }

    [[nodiscard]] std::string log() const {
        std::ifstream file{folder_.path() / "log"};
        std::ostringstream all;
        all << file.rdbuf();
        return all.str();
    }

  private:
    /// Stands for the port, which is drawn later.
    static constexpr const char* own_port = "{port}";

    [[nodiscard]] words command_line() const {
        words line;
        if (clock_ != nullptr) {
            line = clock_->wrapper();
        }
        // Another server is tried by naming its program.
        const char* other = std::getenv("DIBS_TEST_REDIS_SERVER");
        for (const auto& word : words{other != nullptr ? other : "redis-server",
                                      "--port",
                                      std::to_string(port_),
                                      "--bind",
                                      "127.0.0.1",
                                      "--unixsocket",
                                      socket(),
                                      "--dir",
                                      folder(),
                                      "--logfile",
                                      folder() + "/log",
                                      "--save",
                                      "",
                                      "--daemonize",
                                      "no",
                                      "--enable-debug-command",
                                      "yes"}) {
            line.push_back(word);
        }
        for (const auto& word : more_) {
            line.push_back(word == own_port ? std::to_string(port_) : word);
        }
        return line;
    }
    [[nodiscard]] static words words_of(const proof& own, words more) {
        words all{"--port",
                  "0",
                  "--tls-port",
                  own_port,
                  "--tls-cert-file",
                  own.certificate,
                  "--tls-key-file",
                  own.key,
                  "--tls-auth-clients",
                  "no"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    [[nodiscard]] static int free_port() {
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
    [[nodiscard]] bool answers() const {
        const auto told = ask({"PING"});
        return told == "PONG" || told.starts_with("NOAUTH") || told.starts_with("LOADING");
    }
    [[nodiscard]] bool ended() {
        if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) {
            pid_ = -1;
        }
        return pid_ <= 0;
    }

    temporary_folder folder_;
    const words more_;
    const server_clock* const clock_;
    int port_ = 0;
    pid_t pid_ = -1;
};

}  // namespace dibs::testing
