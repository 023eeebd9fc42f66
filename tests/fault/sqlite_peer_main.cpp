// SPDX-License-Identifier: Apache-2.0
// A second process on the same file, told what to do line by line, so that a test can kill it for
// real.
//
//   dibs_sqlite_peer FILE [BOOT_ID]
//
//   acquire KEY TTL_MS attached|detached   -> granted FENCE | held | ...
//   renew KEY TTL_MS                       -> renewed FENCE | not_held
//   release KEY                            -> released | not_held
//   finish KEY VALUE                       -> finished | not_held
//   mark KEY VALUE                         -> granted FENCE (with a mark)
//   watch KEY                              -> ready, and "woken KEY" at any time after that
//   unwatch KEY                            -> unwatched
//   take KEY TTL_MS                        -> waits, if it is held; granted FENCE TRIES, by wakes
//   of a watch alone inherit                                -> PID of a child that has the liveness
//   descriptor contend ROUNDS KEYS LOG                -> contended; a line "key fence enter exit"
//   per grant in LOG quit

#include "core/holder_id.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/pumped_environment.hpp"
#include "support/verbs.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;

long long boot_micros() {
    std::timespec at{};
    ::clock_gettime(CLOCK_BOOTTIME, &at);
    return at.tv_sec * 1'000'000LL + at.tv_nsec / 1000;
}

std::uint64_t seed() {
    std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
}

class peer {
  public:
    peer(const std::string& path, const std::string& boot) : world_{seed()} {
        store::sqlite_options options;
        options.path = path;
        options.boot_id = boot;
        options.who = {"peer", ::getpid(), "tester", "dibs_sqlite_peer"};
        std::error_code error;
        std::string detail;
        store_ = store::open_sqlite_store(world_.view(), std::move(options), error, detail);
        if (!store_) {
            std::cerr << detail << '\n';
            std::exit(3);
        }
    }

    int serve() {
        std::thread reader{[this] {
            for (std::string line; std::getline(std::cin, line);) {
                world_.exec().post([this, line] { obey(line); });
            }
            world_.exec().post([this] { quit_ = true; });
        }};
        while (!world_.run_until([this] { return quit_; }, 1h)) {
        }
        store_->close();
        reader.detach();  // blocked in a read for as long as the other end is open
        std::cout.flush();
        std::_Exit(0);
    }

  private:
    static void say(const std::string& line) { std::cout << line << std::endl; }

    core::answer ask(core::verb what, core::nanoseconds within = 10s) {
        std::optional<core::answer> got;
        std::vector<core::entry> batch;
        batch.push_back({std::move(what), world_.now() + within});
        store_->execute(store::lane::others, std::move(batch), [&got](store::answers told) {
            got = std::move(told.front());
        });
        world_.run_until([&] { return got.has_value(); }, 30s);
        return got ? *got : core::answer{};
    }

    static std::string words(const core::answer& got) {
        switch (got.what) {
            case core::verdict::granted:
                return "granted " + std::to_string(got.fences.last);
            case core::verdict::held:
                return "held";
            case core::verdict::done:
                return "done " + (got.result ? got.result->value : std::string{});
            case core::verdict::renewed:
                return "renewed " + std::to_string(got.fences.last);
            case core::verdict::released:
                return "released";
            case core::verdict::finished:
                return "finished";
            case core::verdict::not_held:
                return "not_held";
            default:
                return "failed " + got.error.message() + ": " + got.detail;
        }
    }

    core::holder_id& holder(const std::string& key) {
        auto& id = holders_[key];
        if (id.empty()) {
            id = core::holder_id::draw(world_.view().random);
        }
        return id;
    }

    void obey(const std::string& line) {
        std::istringstream in{line};
        std::string what;
        std::string key;
        long long ttl_ms = 0;
        in >> what >> key;
        if (what == "acquire") {
            std::string how;
            in >> ttl_ms >> how;
            auto asked = acquire_of(key, holder(key), core::milliseconds{ttl_ms});
            if (how == "detached") {
                asked.attached = core::attachment::detached;
            }
            say(words(ask(asked)));
        } else if (what == "mark") {
            std::string value;
            in >> value;
            auto asked = acquire_of(key, holder(key), 60s);
            asked.mark = result_of(value, core::result_to_keep::forever, 1h);
            say(words(ask(asked)));
        } else if (what == "renew") {
            in >> ttl_ms;
            say(words(ask(renew_of(key, holder(key), core::milliseconds{ttl_ms}))));
        } else if (what == "release") {
            say(words(ask(release_of(key, holder(key)))));
            holders_.erase(key);
        } else if (what == "finish") {
            std::string value;
            in >> value;
            say(words(ask(finish_of(key, holder(key), result_of(value, 1h, 1h)))));
            holders_.erase(key);
        } else if (what == "watch") {
            watch(key);
        } else if (what == "unwatch") {
            store_->unwatch(watched_[key]);
            // Whoever asks afterwards finds it done.
            ask(renew_of("unwatch", core::holder_id::draw(world_.view().random)));
            say("unwatched");
        } else if (what == "take") {
            in >> ttl_ms;
            take(key, core::milliseconds{ttl_ms});
        } else if (what == "inherit") {
            inherit();
        } else if (what == "contend") {
            int keys = 0;
            std::string log;
            in >> keys >> log;
            contend(std::atoi(key.c_str()), keys, log);
            say("contended");
        } else if (what == "quit") {
            quit_ = true;
        }
    }

    void watch(const std::string& key) {
        watched_[key] = store_->watch(
            key,
            [](std::error_code error) { say(error ? "not_ready " + error.message() : "ready"); },
            [key](auto) { say("woken " + key); });
    }

    /// As the client waits, but with no timer behind it: what is not woken never asks again.
    void take(const std::string& key, core::milliseconds ttl) {
        bool ready = false;
        int wakes = 0;
        const auto id = store_->watch(
            key, [&](std::error_code) { ready = true; }, [&](auto) { ++wakes; });
        world_.run_until([&] { return ready; }, 30s);
        for (int attempts = 1;; ++attempts) {
            const auto seen = wakes;
            const auto got = ask(acquire_of(key, holder(key), ttl));
            if (got.what == core::verdict::granted) {
                store_->unwatch(id);
                say(words(got) + " " + std::to_string(attempts));
                return;
            }
            if (attempts == 1) {
                say("waits");
            }
            if (!world_.run_until([&] { return wakes != seen; }, 60s)) {
                store_->unwatch(id);
                say("never woken");
                return;
            }
        }
    }

    void inherit() {
        const int lifeline = store_->liveness_descriptor();
        const pid_t child = ::fork();
        if (child == 0) {
            ::fcntl(lifeline, F_SETFD, 0);
            ::execlp("sleep", "sleep", "600", static_cast<char*>(nullptr));
            ::_exit(127);
        }
        say(std::to_string(child));
    }

    void contend(int rounds, int keys, const std::string& log) {
        std::ofstream out{log, std::ios::app};
        std::mt19937 dice{static_cast<unsigned>(::getpid())};
        for (int granted = 0; granted < rounds;) {
            const auto key = "key" + std::to_string(dice() % static_cast<unsigned>(keys));
            holders_.erase(key);
            const auto got = ask(acquire_of(key, holder(key), 30s), 30s);
            if (got.what == core::verdict::granted) {
                const auto enter = boot_micros();
                ++granted;
                while (boot_micros() < enter + 50) {
                }
                const auto exit = boot_micros();
                ask(release_of(key, holder(key)), 30s);
                out << key << ' ' << got.fences.last << ' ' << enter << ' ' << exit << '\n';
            } else if (got.what != core::verdict::held) {
                out << "error 0 0 0 " << words(got) << '\n';
                ++granted;
            }
        }
    }

    pumped_environment world_;
    std::unique_ptr<store::store> store_;
    std::map<std::string, core::holder_id> holders_;
    std::map<std::string, store::watch_id> watched_;
    bool quit_ = false;
};

}  // namespace

}  // namespace dibs::testing

int main(int count, char** arguments) {
    if (count < 2) {
        return 2;
    }
    if (const char* user = std::getenv("DIBS_PEER_USER")) {
        std::istringstream numbers{user};
        uid_t id = 0;
        gid_t group = 0;
        gid_t further = 0;
        numbers >> id >> group >> further;
        if (!numbers || ::setgroups(1, &further) != 0 || ::setgid(group) != 0 ||
            ::setuid(id) != 0) {
            return 3;
        }
    }
    dibs::testing::peer one{arguments[1], count > 2 ? arguments[2] : ""};
    return one.serve();
}
