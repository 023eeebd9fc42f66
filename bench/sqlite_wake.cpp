// SPDX-License-Identifier: Apache-2.0
// How long a waiter in another process needs from the release to its lease, on the SQLite store.
//
// usage: bench_sqlite_wake [rounds]

#include "measure.hpp"

#include <dibs/dibs.hpp>

#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;

/// The waiter: takes the key again and again, tells when it got it.
int wait_for_key(const char* url, int rounds, int held, int got) {
    dibs::client client(url);
    for (int round = 0; round < rounds; ++round) {
        char token = 0;
        if (::read(held, &token, 1) != 1) {
            return 1;
        }
        auto lease = client.acquire("key", {.ttl = 30s, .wait = 30s});
        const auto at = dibs::bench::monotonic_ns();
        if (!lease || lease->release() != dibs::release_outcome::released ||
            ::write(got, &at, sizeof at) != static_cast<ssize_t>(sizeof at)) {
            return 1;
        }
    }
    return 0;
}

void measure(const std::string& synchronous, int rounds) {
    const dibs::bench::scratch_folder folder;
    const auto url = "sqlite:" + folder.file("wake.db") + "?synchronous=" + synchronous;
    std::array<int, 2> held{};
    std::array<int, 2> got{};
    if (::pipe(held.data()) != 0 || ::pipe(got.data()) != 0) {
        throw std::runtime_error("no pipe");
    }
    const auto child = ::fork();
    if (child == 0) {
        ::_exit(wait_for_key(url.c_str(), rounds, held[0], got[1]));
    }
    dibs::client client(url);
    std::vector<double> milliseconds;
    for (int round = 0; round < rounds; ++round) {
        auto lease = client.acquire("key", {.ttl = 30s, .wait = 30s});
        const char token = 'h';
        if (!lease || ::write(held[1], &token, 1) != 1) {
            throw std::runtime_error("the waiter has gone");
        }
        // Until it is registered; how long that takes is not measured.
        while (client.inspect("key")->waiters == 0) {
            std::this_thread::sleep_for(1ms);
        }
        std::this_thread::sleep_for(2ms);
        const auto released = dibs::bench::monotonic_ns();
        (void)lease->release();
        std::int64_t at = 0;
        if (::read(got[0], &at, sizeof at) != static_cast<ssize_t>(sizeof at)) {
            throw std::runtime_error("the waiter has gone");
        }
        milliseconds.push_back(static_cast<double>(at - released) / 1e6);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf(
        "synchronous=%-6s  release to lease in another process: median %.3f ms, p99 %.3f ms, worst "
        "%.3f ms\n",
        synchronous.c_str(),
        dibs::bench::median(milliseconds),
        dibs::bench::quantile(milliseconds, 0.99),
        dibs::bench::quantile(milliseconds, 1.0));
}

}  // namespace

int main(int count, char** words) {
    const int rounds = count > 1 ? std::atoi(words[1]) : 200;
    for (const auto* synchronous : {"normal", "full"}) {
        measure(synchronous, rounds);
    }
}
