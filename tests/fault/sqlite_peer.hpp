// SPDX-License-Identifier: Apache-2.0
#pragma once
// A second process on the same file (sqlite_peer_main.cpp), and the test's own store. Thread
// safety: none.

#include "store/sqlite/sqlite_store.hpp"
#include "support/places.hpp"
#include "support/pumped_environment.hpp"
#include "support/verbs.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace dibs::testing {

class sqlite_peer {
  public:
    /// Who it becomes, which takes root.
    struct user {
        uid_t id;
        gid_t group;
        gid_t further_group;
    };

    sqlite_peer(const std::string& file, const user& who)
        : sqlite_peer{file,
                      {},
                      "DIBS_PEER_USER=" + std::to_string(who.id) + ' ' + std::to_string(who.group) +
                          ' ' + std::to_string(who.further_group)} {}

    explicit sqlite_peer(const std::string& file,
                         const std::string& boot = {},
                         std::string variable = {}) {
        std::array<int, 2> in{};
        std::array<int, 2> out{};
        if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
            throw std::runtime_error{"pipe"};
        }
        posix_spawn_file_actions_t plan;
        ::posix_spawn_file_actions_init(&plan);
        ::posix_spawn_file_actions_adddup2(&plan, in[0], 0);
        ::posix_spawn_file_actions_adddup2(&plan, out[1], 1);
        std::string program = tests::places::sqlite_peer;
        std::string path = file;
        std::string boot_id = boot;
        std::array<char*, 4> words{
            program.data(), path.data(), boot.empty() ? nullptr : boot_id.data(), nullptr};
        std::array<char*, 2> variables{variable.data(), nullptr};
        const int failed = ::posix_spawn(&pid_,
                                         program.c_str(),
                                         &plan,
                                         nullptr,
                                         words.data(),
                                         variable.empty() ? environ : variables.data());
        ::posix_spawn_file_actions_destroy(&plan);
        ::close(in[0]);
        ::close(out[1]);
        to_ = in[1];
        from_ = out[0];
        if (failed != 0) {
            throw std::runtime_error{"cannot start " + program};
        }
    }
    sqlite_peer(const sqlite_peer&) = delete;
    sqlite_peer& operator=(const sqlite_peer&) = delete;
    ~sqlite_peer() {
        ::close(to_);
        if (pid_ > 0) {
            kill(SIGKILL);
        }
        ::close(from_);
    }

    void say(const std::string& line) {
        const auto whole = line + '\n';
        ASSERT_EQ(::write(to_, whole.data(), whole.size()), static_cast<ssize_t>(whole.size()));
    }

    /// The next line; empty when none came in time.
    std::string hear(std::chrono::milliseconds within = std::chrono::seconds{20}) {
        const auto end = std::chrono::steady_clock::now() + within;
        for (;;) {
            if (const auto stop = heard_.find('\n'); stop != std::string::npos) {
                auto line = heard_.substr(0, stop);
                heard_.erase(0, stop + 1);
                return line;
            }
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                end - std::chrono::steady_clock::now());
            pollfd waiting{from_, POLLIN, 0};
            if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) {
                return {};
            }
            std::array<char, 4096> bytes;
            const auto got = ::read(from_, bytes.data(), bytes.size());
            if (got <= 0) {
                return {};
            }
            heard_.append(bytes.data(), static_cast<std::size_t>(got));
        }
    }

    std::string ask(const std::string& line) {
        say(line);
        return hear();
    }

    /// By this process's own child's id, and reaped.
    void kill(int signal) {
        ::kill(pid_, signal);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

    /// Lets it end by itself.
    void quit() {
        say("quit");
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  private:
    pid_t pid_ = -1;
    int to_ = -1;
    int from_ = -1;
    std::string heard_;
};

/// The number after the first word: "granted 17 2" -> 17.
inline std::uint64_t number_in(const std::string& line) {
    const auto space = line.find(' ');
    return space == std::string::npos ? 0 : std::strtoull(line.c_str() + space, nullptr, 10);
}

class sqlite_here {
  public:
    explicit sqlite_here(const std::string& file, const std::string& boot = {})
        : world_{std::random_device{}()} {
        store::sqlite_options options;
        options.path = file;
        options.boot_id = boot;
        options.who = {"here", ::getpid(), "tester", "test"};
        store_ = store::open_sqlite_store(world_.view(), std::move(options), error, detail);
    }
    ~sqlite_here() {
        if (store_) {
            store_->close();
        }
    }

    [[nodiscard]] bool opened() const noexcept { return store_ != nullptr; }
    store::store& operator*() { return *store_; }
    store::store* operator->() { return store_.get(); }
    pumped_environment& world() { return world_; }

    core::answer ask(core::verb what, core::nanoseconds within = std::chrono::seconds{10}) {
        std::optional<core::answer> got;
        std::vector<core::entry> batch;
        batch.push_back({std::move(what), world_.now() + within});
        store_->execute(store::lane::others, std::move(batch), [&got](store::answers told) {
            got = std::move(told.front());
        });
        EXPECT_TRUE(world_.run_until([&] { return got.has_value(); }, std::chrono::seconds{60}));
        return got.value_or(core::answer{});
    }

    core::page list() {
        std::optional<core::page> got;
        store_->list("", "", 1000, [&got](core::page told) { got = std::move(told); });
        EXPECT_TRUE(world_.run_until([&] { return got.has_value(); }, std::chrono::seconds{60}));
        return got.value_or(core::page{});
    }

    std::error_code error;
    std::string detail;

  private:
    pumped_environment world_;
    std::unique_ptr<store::store> store_;
};

}  // namespace dibs::testing
