// SPDX-License-Identifier: Apache-2.0
// One hot key on the Redis store. Between two processes of four callers each: from the beginning of a
// release to the next grant in the other process, beside a token that the same two processes pass on
// by RPUSH and BLPOP; with no work and with 5 ms of it in either. The same callers in the order of
// their arrival: how evenly they get it. Within one process: 64 coroutines, and 64 threads beside a
// first-in-first-out hand-over of as many by a mutex and condition variables.
//
// usage: bench_redis_handover PORT [seconds per measurement]      a server on 127.0.0.1

#include "callers.hpp"
#include "measure.hpp"
#include "raw_redis.hpp"
#include "two_processes.hpp"

#include <dibs/dibs.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using dibs::bench::callers_many;
using dibs::bench::callers_per_process;
using dibs::bench::contend;
using dibs::bench::crossings;
using dibs::bench::grant;
using dibs::bench::in_two_processes;
using dibs::bench::monotonic_ns;
using dibs::bench::patiently;
using dibs::bench::raw_redis;
using dibs::bench::seconds;
using clock_type = std::chrono::steady_clock;

const dibs::acquire_options in_order{.ttl = 30s, .wait = 30s, .order = dibs::order::queue};

// --- two processes -------------------------------------------------------------------------------

/// Times from RPUSH to the end of BLPOP in the other process, in microseconds.
std::vector<double> pass_token(std::uint16_t port,
                               int process,
                               std::int64_t until,
                               std::chrono::milliseconds work) {
    raw_redis server(port);
    const std::string mine = process == 0 ? "token-0" : "token-1";
    const std::string theirs = process == 0 ? "token-1" : "token-0";
    const auto wait = raw_redis::command({"BLPOP", mine, "1"});
    std::vector<double> took;
    const auto push = [&] {
        server.expect(raw_redis::command({"RPUSH", theirs, std::to_string(monotonic_ns())}),
                      ":1\r\n");
    };
    if (process == 0) {
        push();
    }
    while (monotonic_ns() < until + 200'000'000) {
        const auto sent = server.last_text(wait);
        if (sent.empty()) {
            break;  // the other one has ended
        }
        took.push_back(static_cast<double>(monotonic_ns() - std::atoll(sent.c_str())) / 1e3);
        if (monotonic_ns() >= until) {
            break;
        }
        if (work > 0ms) {
            std::this_thread::sleep_for(work);
        }
        push();
    }
    return took;
}

void between_processes(std::uint16_t port, seconds length, std::chrono::milliseconds work) {
    const auto url = "redis://127.0.0.1:" + std::to_string(port);
    const auto so_long = static_cast<std::int64_t>(length.count() * 1e9);
    auto until = monotonic_ns() + so_long;
    const auto bare = in_two_processes<double>(
        [&](int process) { return pass_token(port, process, until, work); });
    raw_redis server(port);
    const auto before = server.commands();
    until = monotonic_ns() + so_long;
    auto grants =
        in_two_processes<grant>([&](int process) { return contend(url, process, until, work); });
    const auto commands = server.commands() - before;
    const auto crossed = crossings(grants);
    if (crossed.empty() || bare.empty()) {
        throw std::runtime_error("the key never crossed");
    }
    std::printf(
        "2 processes, %lld ms of work   RPUSH to BLPOP %6.1f us (p99 %6.1f)   release to "
        "grant %6.1f us (p99 %7.1f)   %5.2f x   %zu grants, %zu crossed, %.2f commands/grant, "
        "%.2f commands/crossing\n",
        static_cast<long long>(work.count()),
        dibs::bench::median(bare),
        dibs::bench::quantile(bare, 0.99),
        dibs::bench::median(crossed),
        dibs::bench::quantile(crossed, 0.99),
        dibs::bench::median(crossed) / dibs::bench::median(bare),
        grants.size(),
        crossed.size(),
        static_cast<double>(commands) / static_cast<double>(grants.size()),
        static_cast<double>(commands) / static_cast<double>(crossed.size()));
}

void fairness(std::uint16_t port, seconds length) {
    const auto url = "redis://127.0.0.1:" + std::to_string(port);
    const auto until = monotonic_ns() + static_cast<std::int64_t>(length.count() * 1e9);
    const auto grants = in_two_processes<grant>(
        [&](int process) { return contend(url, process, until, 0ms, in_order); });
    std::array<int, std::size_t{2} * callers_per_process> counts{};
    for (const auto& one : grants) {
        ++counts.at(static_cast<std::size_t>(one.process * callers_per_process + one.caller));
    }
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    std::printf("in order, 2 processes of %d   %zu grants in %.0f s, %d to %d per caller: %.3f\n",
                callers_per_process,
                grants.size(),
                length.count(),
                *least,
                *most,
                static_cast<double>(*most) / static_cast<double>(std::max(*least, 1)));
}

// --- one process ---------------------------------------------------------------------------------

/// Fences must rise from each grant to the next.
class witness {
  public:
    void see(std::uint64_t fence) {
        if (fence <= last_.exchange(fence)) {
            throw std::runtime_error("a fence did not rise");
        }
        count_.fetch_add(1, std::memory_order_relaxed);
    }
    [[nodiscard]] std::int64_t count() const noexcept { return count_; }

  private:
    std::atomic<std::uint64_t> last_{0};
    std::atomic<std::int64_t> count_{0};
};

boost::asio::awaitable<void> hot_caller(dibs::client& client,
                                        clock_type::time_point until,
                                        witness& seen) {
    const auto options = patiently;
    const std::string key = "hot";
    while (clock_type::now() < until) {
        auto lease = co_await dibs::async_acquire(client, key, options, boost::asio::use_awaitable);
        if (!lease) {
            throw std::runtime_error("dibs was not granted its key");
        }
        seen.see(lease->fence());
        co_await dibs::async_release(std::move(*lease), boost::asio::use_awaitable);
    }
}

double hot_coroutines(dibs::client& client, seconds length) {
    boost::asio::io_context context(1);
    witness seen;
    const auto start = clock_type::now();
    const auto until = start + std::chrono::duration_cast<clock_type::duration>(length);
    for (int caller = 0; caller < callers_many; ++caller) {
        boost::asio::co_spawn(
            context, hot_caller(client, until, seen), [](std::exception_ptr fault) {
                if (fault) {
                    std::rethrow_exception(fault);
                }
            });
    }
    context.run();
    return static_cast<double>(seen.count()) / seconds(clock_type::now() - start).count();
}

double hot_threads(dibs::client& client, seconds length) {
    witness seen;
    const auto start = clock_type::now();
    {
        std::vector<std::jthread> callers;
        for (int caller = 0; caller < callers_many; ++caller) {
            callers.emplace_back([&] {
                while (clock_type::now() - start < length) {
                    auto lease = client.acquire("hot", patiently);
                    if (lease) {
                        seen.see(lease->fence());
                        (void)lease->release();
                    }
                }
            });
        }
    }
    return static_cast<double>(seen.count()) / seconds(clock_type::now() - start).count();
}

/// First come, first served.
class queue_lock {
  public:
    void lock() {
        std::unique_lock held{mutex_};
        if (!std::exchange(taken_, true)) {
            return;
        }
        waiter mine;
        line_.push_back(&mine);
        mine.woken.wait(held, [&] { return mine.turn; });
    }
    void unlock() {
        const std::lock_guard held{mutex_};
        if (line_.empty()) {
            taken_ = false;
            return;
        }
        line_.front()->turn = true;
        line_.front()->woken.notify_one();
        line_.pop_front();
    }

  private:
    struct waiter {
        std::condition_variable woken;
        bool turn = false;
    };
    std::mutex mutex_;
    bool taken_ = false;
    std::deque<waiter*> line_;
};

double bare_threads(seconds length) {
    queue_lock lock;
    std::int64_t count = 0;
    const auto start = clock_type::now();
    {
        std::vector<std::jthread> callers;
        for (int caller = 0; caller < callers_many; ++caller) {
            callers.emplace_back([&] {
                while (clock_type::now() - start < length) {
                    const std::lock_guard held{lock};
                    ++count;
                }
            });
        }
    }
    return static_cast<double>(count) / seconds(clock_type::now() - start).count();
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_redis_handover PORT [seconds]\n");
        return 64;
    }
    const auto port = static_cast<std::uint16_t>(std::atoi(words[1]));
    const seconds length{count > 2 ? std::atof(words[2]) : 3.0};
    for (const auto work : {0ms, 5ms}) {
        between_processes(port, length, work);
    }
    fairness(port, seconds{10});
    dibs::client client("redis://127.0.0.1:" + std::to_string(port));
    std::printf("64 coroutines, one key   %9.0f hand-overs/s\n", hot_coroutines(client, length));
    const auto bare = bare_threads(length);
    const auto own = hot_threads(client, length);
    std::printf(
        "64 threads, one key      %9.0f hand-overs/s   mutex and condition variables "
        "%9.0f   %4.2f x\n",
        own,
        bare,
        own / bare);
}
