// SPDX-License-Identifier: Apache-2.0
// Acquire (with fence) and release on the Redis store, beside a loop written by hand on the same
// server: SET NX PX without fence, and a script that compares and deletes, called by its hash. One
// blocking caller against one, and 64 callers against 64 on one pipelined connection, each of which
// goes on as soon as its own reply is there. A cycle is one acquire and one release. Each round
// measures the loop by hand and ours one after the other; the ratio is the median of the rounds'.
//
// usage: bench_redis_cycles PORT [rounds] [seconds per measurement] [1|64|threads]
//        a server on 127.0.0.1

#include "callers.hpp"
#include "measure.hpp"
#include "raw_redis.hpp"

#include <dibs/dibs.hpp>

#include <cstdio>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using dibs::bench::callers_many;
using dibs::bench::key_of_caller;
using dibs::bench::many_coroutines;
using dibs::bench::own_cycle;
using dibs::bench::raw_redis;
using dibs::bench::seconds;
using clock_type = std::chrono::steady_clock;

class raw_loop {
  public:
    explicit raw_loop(std::uint16_t port) : server_(port) {
        const auto name = server_.text(raw_redis::command({"SCRIPT", "LOAD", script}));
        for (int caller = 0; caller < callers_many; ++caller) {
            const auto key = "raw-" + std::to_string(caller);
            set_.push_back(raw_redis::command({"SET", key, token, "NX", "PX", "30000"}));
            unset_.push_back(raw_redis::command({"EVALSHA", name, "1", key, token}));
        }
    }

    double lone_caller(seconds length) {
        const auto start = clock_type::now();
        std::int64_t cycles = 0;
        for (; clock_type::now() - start < length; ++cycles) {
            server_.expect(set_[0], granted);
            server_.expect(unset_[0], deleted);
        }
        return static_cast<double>(cycles) / seconds(clock_type::now() - start).count();
    }

    double many_callers(seconds length) {
        struct asked {
            std::size_t caller;
            bool release;
        };
        std::deque<asked> under_way;
        std::string out;
        for (std::size_t caller = 0; caller < set_.size(); ++caller) {
            out += set_[caller];
            under_way.push_back({caller, false});
        }
        const auto start = clock_type::now();
        std::int64_t cycles = 0;
        std::string heard;
        while (!under_way.empty()) {
            server_.send(out);
            out.clear();
            heard += server_.receive();
            const bool goes_on = clock_type::now() - start < length;
            std::size_t at = 0;
            while (!under_way.empty()) {
                const auto one = under_way.front();
                const auto expected = one.release ? deleted : granted;
                if (heard.size() - at < expected.size()) {
                    break;
                }
                if (heard.compare(at, expected.size(), expected) != 0) {
                    throw std::runtime_error("the loop by hand was not granted its key");
                }
                at += expected.size();
                under_way.pop_front();
                cycles += one.release ? 1 : 0;
                if (!one.release || goes_on) {
                    out += one.release ? set_[one.caller] : unset_[one.caller];
                    under_way.push_back({one.caller, !one.release});
                }
            }
            heard.erase(0, at);
        }
        return static_cast<double>(cycles) / seconds(clock_type::now() - start).count();
    }

    raw_redis& server() noexcept { return server_; }

  private:
    static constexpr std::string_view token = "0123456789abcdef0123456789abcdef";
    static constexpr std::string_view script =
        "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 "
        "end";
    static constexpr std::string_view granted = "+OK\r\n";
    static constexpr std::string_view deleted = ":1\r\n";

    raw_redis server_;
    std::vector<std::string> set_;
    std::vector<std::string> unset_;
};

double lone_caller(dibs::client& client, seconds length) {
    const auto start = clock_type::now();
    std::int64_t cycles = 0;
    const auto key = key_of_caller(0);
    for (; clock_type::now() - start < length; ++cycles) {
        own_cycle(client, key);
    }
    return static_cast<double>(cycles) / seconds(clock_type::now() - start).count();
}

double many_threads(dibs::client& client, seconds length) {
    std::vector<std::int64_t> cycles(callers_many);
    const auto start = clock_type::now();
    {
        std::vector<std::jthread> callers;
        for (int caller = 0; caller < callers_many; ++caller) {
            callers.emplace_back([&, caller] {
                const auto key = key_of_caller(caller);
                while (clock_type::now() - start < length) {
                    own_cycle(client, key);
                    ++cycles[static_cast<std::size_t>(caller)];
                }
            });
        }
    }
    std::int64_t sum = 0;
    for (const auto one : cycles) {
        sum += one;
    }
    return static_cast<double>(sum) / seconds(clock_type::now() - start).count();
}

struct figures {
    std::vector<double> raw;
    std::vector<double> own;
    std::vector<double> raw_cpu;  ///< us per cycle
    std::vector<double> own_cpu;
    std::vector<double> commands;  ///< per cycle
};

void show(const char* name, const figures& found) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < found.raw.size(); ++round) {
        ratios.push_back(found.own[round] / found.raw[round]);
    }
    std::printf(
        "%-14s  by hand %8.0f cycles/s %5.1f us CPU   dibs %8.0f cycles/s %5.1f us CPU %5.2f "
        "commands/cycle   %4.2f x\n",
        name,
        dibs::bench::median(found.raw),
        dibs::bench::median(found.raw_cpu),
        dibs::bench::median(found.own),
        dibs::bench::median(found.own_cpu),
        dibs::bench::median(found.commands),
        dibs::bench::median(ratios));
}

template <typename Run>
double measure(seconds length, std::vector<double>& cpu, Run run) {
    const auto before = dibs::bench::cpu_used();
    const auto start = clock_type::now();
    const auto rate = run(length);
    const seconds took = clock_type::now() - start;
    cpu.push_back(1e6 * (dibs::bench::cpu_used() - before).count() / (rate * took.count()));
    return rate;
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_redis_cycles PORT [rounds] [seconds] [1|64|threads]\n");
        return 64;
    }
    const auto port = static_cast<std::uint16_t>(std::atoi(words[1]));
    const int rounds = count > 2 ? std::atoi(words[2]) : 5;
    const seconds length{count > 3 ? std::atof(words[3]) : 1.0};
    const std::string only = count > 4 ? words[4] : "";
    raw_loop raw(port);
    dibs::client client("redis://127.0.0.1:" + std::to_string(port));
    for (const std::string kind : {"1", "64", "threads"}) {
        if (!only.empty() && only != kind) {
            continue;
        }
        figures found;
        for (int round = 0; round < rounds; ++round) {
            found.raw.push_back(measure(length, found.raw_cpu, [&](seconds so_long) {
                return kind == "1" ? raw.lone_caller(so_long) : raw.many_callers(so_long);
            }));
            const auto before = raw.server().commands();
            const auto rate = measure(length, found.own_cpu, [&](seconds so_long) {
                return kind == "1"    ? lone_caller(client, so_long)
                       : kind == "64" ? many_coroutines(client, so_long)
                                      : many_threads(client, so_long);
            });
            found.own.push_back(rate);
            found.commands.push_back(static_cast<double>(raw.server().commands() - before) /
                                     (rate * length.count()));
        }
        show(kind == "1" ? "1 caller" : kind == "64" ? "64 coroutines" : "64 threads", found);
    }
}
