// SPDX-License-Identifier: Apache-2.0
// One hot key on the PostgreSQL store between two processes of four callers each: from the beginning
// of a release to the next grant in the other process, with no work and with 5 ms of it. Beside it a
// token that two processes pass on by NOTIFY, and round trips: of `SELECT 1`, and of one UPDATE with
// its commit, which the release and the next grant each have to wait for.
//
// usage: bench_postgres_handover URL [seconds per measurement]

#include "measure.hpp"
#include "raw_postgres.hpp"
#include "two_processes.hpp"

#include <dibs/dibs.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using dibs::bench::contend;
using dibs::bench::crossings;
using dibs::bench::grant;
using dibs::bench::in_two_processes;
using dibs::bench::median;
using dibs::bench::monotonic_ns;
using dibs::bench::quantile;
using dibs::bench::raw_postgres;
using dibs::bench::seconds;

/// Times of one statement, in microseconds.
std::vector<double> round_trips(raw_postgres& server, const std::string& name, seconds length) {
    std::vector<double> took;
    const auto until = monotonic_ns() + static_cast<std::int64_t>(length.count() * 1e9);
    while (monotonic_ns() < until) {
        const auto from = monotonic_ns();
        server.run(name, {});
        took.push_back(static_cast<double>(monotonic_ns() - from) / 1e3);
    }
    return took;
}

/// Times from NOTIFY to its arrival in the other process, in microseconds.
std::vector<double> pass_token(const std::string& url,
                               int process,
                               std::int64_t until,
                               std::chrono::milliseconds work) {
    raw_postgres ear(url);
    raw_postgres mouth(url);
    const std::string mine = process == 0 ? "token_0" : "token_1";
    const std::string theirs = process == 0 ? "token_1" : "token_0";
    ear.ask("LISTEN " + mine);
    const auto pass_on = [&] {
        mouth.ask("NOTIFY " + theirs + ", '" + std::to_string(monotonic_ns()) + "'");
    };
    if (process == 0) {
        // The other one listens by then, or nothing is measured.
        std::this_thread::sleep_for(300ms);
        pass_on();
    }
    std::vector<double> took;
    for (;;) {
        const auto sent = ear.notification(1000);
        if (sent.empty()) {
            break;  // the other one has ended
        }
        took.push_back(static_cast<double>(monotonic_ns() - std::stoll(sent)) / 1e3);
        if (monotonic_ns() >= until) {
            break;
        }
        if (work > 0ms) {
            std::this_thread::sleep_for(work);
        }
        pass_on();
    }
    return took;
}

void between_processes(const std::string& url,
                       seconds length,
                       std::chrono::milliseconds work,
                       double round_trip) {
    const auto so_long = static_cast<std::int64_t>(length.count() * 1e9);
    auto until = monotonic_ns() + so_long;
    const auto bare = in_two_processes<double>(
        [&](int process) { return pass_token(url, process, until, work); });
    raw_postgres server(url);
    const auto before = server.transactions();
    until = monotonic_ns() + so_long;
    auto grants =
        in_two_processes<grant>([&](int process) { return contend(url, process, until, work); });
    const auto transactions = server.transactions() - before;
    const auto crossed = crossings(grants);
    if (crossed.empty() || bare.empty()) {
        throw std::runtime_error("the key never crossed");
    }
    std::printf(
        "2 processes, %lld ms of work   NOTIFY %6.1f us (p99 %6.1f)   release to grant %6.1f us "
        "(p99 %7.1f), %4.2f round trips with a commit   %zu grants, %zu crossed, %.2f "
        "transactions/crossing\n",
        static_cast<long long>(work.count()),
        median(bare),
        quantile(bare, 0.99),
        median(crossed),
        quantile(crossed, 0.99),
        median(crossed) / round_trip,
        grants.size(),
        crossed.size(),
        static_cast<double>(transactions) / static_cast<double>(crossed.size()));
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_postgres_handover URL [seconds]\n");
        return 64;
    }
    const std::string url = words[1];
    const seconds length{count > 2 ? std::atof(words[2]) : 3.0};
    double round_trip = 0;
    {
        raw_postgres server(url);
        server.ask(
            "DROP TABLE IF EXISTS dibs_bench_trip; CREATE TABLE dibs_bench_trip (n bigint) WITH "
            "(fillfactor = 50); INSERT INTO dibs_bench_trip VALUES (0)");
        server.prepare("one", "SELECT 1");
        server.prepare("committed", "UPDATE dibs_bench_trip SET n = n + 1");
        const auto bare = median(round_trips(server, "one", length));
        round_trip = median(round_trips(server, "committed", length));
        std::printf(
            "round trips   SELECT 1 %6.1f us   UPDATE and commit %6.1f us\n", bare, round_trip);
        server.ask("DROP TABLE dibs_bench_trip");
    }
    // Two processes that are forked have no connections before.
    for (const auto work : {0ms, 5ms}) {
        between_processes(url, length, work, round_trip);
    }
}
