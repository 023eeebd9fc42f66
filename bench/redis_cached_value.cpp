// SPDX-License-Identifier: Apache-2.0
// A value that many share. Fresh and read before: how often one core reads it. Run out: a thousand callers in ten
// processes that had it want the next one at once; how often it is fetched, how long after the end of the fetch the first
// caller of each process and all of them have it, beside a round trip of the same store and the same callers woken by
// hand (a byte in a pipe to each process, notify_all there), and which commands the server was sent. And the same over a
// line that takes 25 ms each way, where round trips are what counts and waking a thousand threads is not.
//
// usage: bench_redis_cached_value PORT [seconds]      a server on 127.0.0.1

#include "measure.hpp"
#include "raw_redis.hpp"
#include "support/relay.hpp"

#include <dibs/dibs.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using dibs::bench::median;
using dibs::bench::monotonic_ns;
using dibs::bench::quantile;
using dibs::bench::raw_redis;

constexpr int processes = 10;
constexpr int callers = 100;
/// A process waits for the first time, and again: it has its subscription then.
constexpr int rounds = 2;
constexpr auto provider_takes = 300ms;
constexpr std::chrono::milliseconds first_life = 3s;
constexpr auto one_way = 25ms;

void read_locally(const std::string& url, std::chrono::seconds length) {
    dibs::client client(url);
    const std::string token(200, 't');
    dibs::cached_value value{client, "bench:fresh", [&] { return dibs::fetched<>{token, 1h}; }};
    // As long as it is good, no other thread takes part.
    std::size_t bytes = value.get().size();
    std::uint64_t reads = 0;
    const auto cpu_before = dibs::bench::cpu_used();
    const auto end = monotonic_ns() + std::chrono::nanoseconds{length}.count();
    while (monotonic_ns() < end) {
        for (int at = 0; at < 1000; ++at) {
            bytes += value.get().size();
        }
        reads += 1000;
    }
    const auto spent = (dibs::bench::cpu_used() - cpu_before).count();
    std::printf("  reads of a fresh value of 200 bytes       %.0f per second of a core (%zu)\n",
                static_cast<double>(reads) / spent,
                bytes % 10);
}

/// What all processes see.
struct common {
    std::atomic<int> ready{0};
    std::atomic<int> round{0};
    std::atomic<int> got{0};
    std::atomic<int> fetches{0};
    std::atomic<int> waiting{0};
    std::atomic<std::int64_t> fetched_at{0};
    std::atomic<std::int64_t> served_at[processes * callers]{};
};

void wait_for(const std::atomic<int>& counter, int value) {
    while (counter < value) {
        std::this_thread::sleep_for(1ms);
    }
}

std::string value_of(int fetch) {
    return "t" + std::to_string(fetch);
}

void one_process(const std::string& url, int number, common& all) {
    dibs::client client(url);
    dibs::cached_value value{client, "bench:stampede", [&] {
                                 const int fetch = ++all.fetches;
                                 std::this_thread::sleep_for(provider_takes);
                                 all.fetched_at = monotonic_ns();
                                 return dibs::fetched<>{
                                     value_of(fetch),
                                     fetch < rounds ? first_life : std::chrono::milliseconds{1h}};
                             }};
    (void)value.get();
    std::vector<std::thread> threads;
    for (int at = 0; at < callers; ++at) {
        threads.emplace_back([&, at] {
            for (int round = 1; round <= rounds; ++round) {
                ++all.ready;
                while (all.round < round) {
                    std::this_thread::sleep_for(1ms);
                }
                const bool right = value.get() == value_of(round);
                all.served_at[number * callers + at] = right ? monotonic_ns() : 0;
                ++all.got;
                std::this_thread::sleep_for(1s);  // the core is for those who still wait
            }
        });
    }
    for (auto& one : threads) {
        one.join();
    }
}

void one_process_by_hand(int wake, int number, common& all) {
    std::mutex mutex;
    std::condition_variable come;
    bool is_there = false;
    std::vector<std::thread> threads;
    for (int at = 0; at < callers; ++at) {
        threads.emplace_back([&, at] {
            std::unique_lock lock(mutex);
            ++all.waiting;
            come.wait(lock, [&] { return is_there; });
            lock.unlock();
            all.served_at[number * callers + at] = monotonic_ns();
            ++all.got;
        });
    }
    char byte = 0;
    if (::read(wake, &byte, 1) == 1) {
        const std::lock_guard lock(mutex);
        is_there = true;
    }
    come.notify_all();
    for (auto& one : threads) {
        one.join();
    }
}

/// How often the server was sent each command; those of scripts count as well.
std::map<std::string, std::uint64_t> commands(raw_redis& server) {
    server.send(raw_redis::command({"INFO", "commandstats"}));
    std::string text;
    for (auto head = std::string::npos;
         head == std::string::npos || text.size() < head + 4 + std::stoul(text.substr(1, head - 1));
         head = text.find("\r\n")) {
        text += server.receive();
    }
    std::map<std::string, std::uint64_t> found;
    constexpr std::string_view start = "cmdstat_";
    for (auto at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
        const auto name = at + start.size();
        const auto colon = text.find(':', name);
        found[text.substr(name, colon - name)] = std::stoull(text.substr(colon + 7));
    }
    return found;
}

common& shared_memory() {
    auto* const memory =
        ::mmap(nullptr, sizeof(common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::runtime_error("no shared memory");
    }
    return *new (memory) common;  // goes with the process
}

/// In milliseconds; and in round trips of the line, where one takes so long.
void tell_delays(const char* what, const common& all, double round_trip_ms = 0.0) {
    std::vector<double> later;
    std::vector<double> firsts;
    for (int process = 0; process < processes; ++process) {
        const auto begin = static_cast<std::ptrdiff_t>(later.size());
        for (int caller = 0; caller < callers; ++caller) {
            const auto at = all.served_at[process * callers + caller].load();
            later.push_back(static_cast<double>(at - all.fetched_at) / 1e6);
        }
        firsts.push_back(*std::min_element(later.begin() + begin, later.end()));
    }
    std::printf(
        "  %s  %.2f ms median, %.2f the last; first of a process %.2f median, %.2f the last\n",
        what,
        median(later),
        quantile(later, 1.0),
        median(firsts),
        quantile(firsts, 1.0));
    if (round_trip_ms > 0.0) {
        std::printf("  in round trips of %.1f ms                %.2f median, %.2f the last\n",
                    round_trip_ms,
                    median(later) / round_trip_ms,
                    quantile(later, 1.0) / round_trip_ms);
    }
}

void wake_by_hand() {
    auto& all = shared_memory();
    std::vector<int> wakes;
    std::vector<pid_t> children;
    for (int number = 0; number < processes; ++number) {
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) {
            throw std::runtime_error("no pipe");
        }
        const pid_t child = ::fork();
        if (child == 0) {
            one_process_by_hand(ends[0], number, all);
            ::_exit(0);
        }
        ::close(ends[0]);
        wakes.push_back(ends[1]);
        children.push_back(child);
    }
    wait_for(all.waiting, processes * callers);
    std::this_thread::sleep_for(500ms);
    all.fetched_at = monotonic_ns();
    for (const int one : wakes) {
        if (::write(one, "!", 1) != 1) {
            throw std::runtime_error("a process is gone");
        }
    }
    wait_for(all.got, processes * callers);
    for (const auto child : children) {
        ::waitpid(child, nullptr, 0);
    }
    for (const int one : wakes) {
        ::close(one);
    }
    tell_delays("to all of them, by hand                 ", all);
}

/// Of acquires of one key after the other: the median, and of ten the slowest but one, in milliseconds.
std::pair<double, double> round_trip(const std::string& url, int times) {
    dibs::client client(url);
    std::vector<double> lengths;
    std::vector<std::optional<dibs::lease>> held;
    for (int at = 0; at < times; ++at) {
        const auto key = "bench:round-trip:" + std::to_string(at);
        const auto began = monotonic_ns();
        held.push_back(client.try_acquire(key));
        lengths.push_back(static_cast<double>(monotonic_ns() - began) / 1e6);
    }
    return {median(lengths), quantile(lengths, 0.9)};
}

void tell_commands(const std::map<std::string, std::uint64_t>& before,
                   const std::map<std::string, std::uint64_t>& after) {
    std::uint64_t sent = 0;
    std::string each;
    // What scripts call is no command of the client's.
    for (const auto* name : {"evalsha", "eval", "subscribe", "unsubscribe", "hello", "client"}) {
        const auto count = (after.contains(name) ? after.at(name) : 0) -
                           (before.contains(name) ? before.at(name) : 0);
        if (count > 0) {
            sent += count;
            each += " " + std::string(name) + " " + std::to_string(count);
        }
    }
    std::printf("  commands of a process                     %.1f (of all:%s)\n",
                static_cast<double>(sent) / processes,
                each.c_str());
}

void stampede(std::uint16_t port, const std::string& url, double round_trip_ms = 0.0) {
    auto& all = shared_memory();
    {
        dibs::client client(url);
        dibs::cached_value value{client, "bench:stampede", [] {
                                     return dibs::fetched<>{value_of(0), first_life};
                                 }};
        value.forget();
        (void)value.get();
    }
    raw_redis server(port);
    std::vector<pid_t> children;
    for (int number = 0; number < processes; ++number) {
        const pid_t child = ::fork();
        if (child == 0) {
            one_process(url, number, all);
            ::_exit(0);
        }
        children.push_back(child);
    }
    for (int round = 1; round <= rounds; ++round) {
        wait_for(all.ready, round * processes * callers);
        std::this_thread::sleep_for(first_life);  // the value has run out
        const auto before = commands(server);
        all.round = round;
        wait_for(all.got, round * processes * callers);
        std::printf("  %d callers in %d processes on one that ran out, %s: %d fetches\n",
                    processes * callers,
                    processes,
                    round == 1 ? "for the first time" : "again",
                    all.fetches - round + 1);
        tell_delays("from the end of the fetch to all of them", all, round_trip_ms);
        tell_commands(before, commands(server));
    }
    for (const auto child : children) {
        ::waitpid(child, nullptr, 0);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: bench_redis_cached_value PORT [seconds]\n");
        return 64;
    }
    try {
        const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
        const std::string url = "redis://127.0.0.1:" + std::string(argv[1]);
        const std::chrono::seconds length{argc > 2 ? std::atoi(argv[2]) : 2};
        read_locally(url, length);
        stampede(port, url);
        std::printf("  over a line of %lld ms each way:\n",
                    static_cast<long long>(std::chrono::milliseconds{one_way}.count()));
        {
            dibs::testing::relay line{argv[1]};
            line.requests({.delay = one_way});
            line.replies({.delay = one_way});
            stampede(port, line.url(), round_trip(line.url(), 20).first);
        }
        wake_by_hand();
        const auto [usual, slow] = round_trip(url, 500);
        std::printf(
            "  one round trip (an acquire)               %.2f ms median, %.2f p90\n", usual, slow);
    } catch (const std::exception& trouble) {
        std::fprintf(stderr, "%s\n", trouble.what());
        return 1;
    }
}
