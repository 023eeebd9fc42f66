// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/own_servers.hpp"

#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace dibs::cli {

namespace {

std::uint16_t free_port() {
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    const bool found = ::bind(made, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
                       ::getsockname(made, reinterpret_cast<sockaddr*>(&at), &size) == 0;
    ::close(made);
    if (!found) {
        throw failure(exit_status::trouble, "no free port on 127.0.0.1");
    }
    return ntohs(at.sin_port);
}

/// In the process that is to be the server.
void become_server(const std::vector<std::string>& options, const std::string& log) {
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ::dup2(file, STDOUT_FILENO);
    for (const char* program : {"redis-server", "valkey-server"}) {
        std::vector<char*> words{const_cast<char*>(program)};
        for (const auto& one : options) {
            words.push_back(const_cast<char*>(one.c_str()));
        }
        words.push_back(nullptr);
        ::execvp(program, words.data());
    }
    throw failure(exit_status::unavailable,
                  "this demo starts two servers of its own, and there is neither redis-server nor "
                  "valkey-server on the path; on Debian: apt install redis-server");
}

bool eventually(const std::function<bool()>& is_so) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (std::chrono::steady_clock::now() < until) {
        try {
            if (is_so()) {
                return true;
            }
        } catch (const failure&) {
            throw;
        } catch (const std::runtime_error&) {  // it is not up yet
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    return false;
}

}  // namespace

own_server::own_server(const std::string& folder) : port_(free_port()) {
    const auto port = std::to_string(port_);
    process_ = std::make_unique<actor>([&] {
        become_server({"--port",
                       port,
                       "--bind",
                       "127.0.0.1",
                       "--dir",
                       folder,
                       "--save",
                       "",
                       "--repl-diskless-sync-delay",
                       "0",
                       "--daemonize",
                       "no"},
                      folder + "/server-" + port + ".log");
    });
    line_ = std::make_unique<store::redis::plain_commands>(url());
    const bool up = eventually([&] {
        if (process_->has_ended()) {
            throw failure(exit_status::unavailable, "the demo's own server has ended");
        }
        return line_->ask({"PING"}) == "PONG";
    });
    if (!up) {
        throw failure(exit_status::unavailable, "the demo's own server does not answer");
    }
}

std::string own_server::url() const {
    return "redis://127.0.0.1:" + std::to_string(port_);
}

void own_server::follow(const own_server& primary) {
    static_cast<void>(line_->ask({"REPLICAOF", "127.0.0.1", std::to_string(primary.port_)}));
    const bool follows = eventually([&] {
        return line_->ask({"INFO", "replication"}).find("master_link_status:up") !=
               std::string::npos;
    });
    if (!follows) {
        throw failure(exit_status::unavailable, "the replica does not follow its primary");
    }
}

void own_server::stop() const {
    process_->stop();
}

void own_server::go_on() const {
    process_->go_on();
}

void own_server::kill() {
    process_->kill();
}

void own_server::cut_followers_off() {
    static_cast<void>(line_->ask({"CLIENT", "KILL", "TYPE", "replica"}));
}

void own_server::promote() {
    static_cast<void>(line_->ask({"REPLICAOF", "NO", "ONE"}));
}

}  // namespace dibs::cli
