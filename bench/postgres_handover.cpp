// SPDX-License-Identifier: Apache-2.0
// One hot key on the PostgreSQL store between two processes of four callers each: from the beginning
// of a release to the next grant in the other process, with no work and with 5 ms of it. Beside it a
// token that two processes pass on by NOTIFY, the same hand-over by hand between two threads that have
// nothing else to do (an UPDATE that notifies and does not wait for the disk, and one that does), and
// round trips: of `SELECT 1`, and of one UPDATE with its commit.
//
// usage: bench_postgres_handover URL [seconds per measurement]

#include "measure.hpp"
#include "raw_postgres.hpp"
#include "two_processes.hpp"

#include <dibs/dibs.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
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

/// What two processes pass on in turns: `give` with the present time to the one that listens there, `take`
/// when it has come.
struct turns {
    std::function<void(const std::string& to, const std::string& now)> give;
    std::function<void()> take;
};

/// Times from before it is given until it is taken in the other process, in microseconds.
std::vector<double> pass_on_in_turns(const std::string& url,
                                     int process,
                                     std::int64_t until,
                                     std::chrono::milliseconds work,
                                     const turns& how) {
    raw_postgres ear(url);
    const std::string mine = process == 0 ? "token_0" : "token_1";
    const std::string theirs = process == 0 ? "token_1" : "token_0";
    ear.ask("LISTEN " + mine);
    const auto pass_on = [&] { how.give(theirs, std::to_string(monotonic_ns())); };
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
        how.take();
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

std::vector<double> pass_token(const std::string& url,
                               int process,
                               std::int64_t until,
                               std::chrono::milliseconds work) {
    raw_postgres mouth(url);
    return pass_on_in_turns(url,
                            process,
                            until,
                            work,
                            {[&](const std::string& to, const std::string& now) {
                                 mouth.ask("NOTIFY " + to + ", '" + now + "'");
                             },
                             [] {}});
}

/// A row with holder, expiry and fence.
std::vector<double> pass_row(const std::string& url,
                             int process,
                             std::int64_t until,
                             std::chrono::milliseconds work) {
    raw_postgres giver(url);
    raw_postgres taker(url);
    giver.ask("SET synchronous_commit = off");
    giver.prepare(
        "give",
        "WITH given AS (UPDATE dibs_bench_row SET holder = '', expires = now() WHERE key = "
        "'hot' RETURNING key) SELECT pg_notify($1, $2) FROM given");
    taker.prepare("take",
                  "UPDATE dibs_bench_row SET holder = 'me', expires = clock_timestamp() + interval "
                  "'30 s', fence = fence + 1 WHERE key = 'hot' RETURNING fence");
    return pass_on_in_turns(url,
                            process,
                            until,
                            work,
                            {[&](const std::string& to, const std::string& now) {
                                 giver.run("give", {to, now});
                             },
                             [&] { taker.run("take", {}); }});
}

void between_processes(const std::string& url,
                       seconds length,
                       std::chrono::milliseconds work,
                       double round_trip) {
    const auto so_long = static_cast<std::int64_t>(length.count() * 1e9);
    auto until = monotonic_ns() + so_long;
    const auto bare = in_two_processes<double>(
        [&](int process) { return pass_token(url, process, until, work); });
    until = monotonic_ns() + so_long;
    const auto by_hand =
        in_two_processes<double>([&](int process) { return pass_row(url, process, until, work); });
    raw_postgres server(url);
    const auto before = server.transactions();
    until = monotonic_ns() + so_long;
    auto grants =
        in_two_processes<grant>([&](int process) { return contend(url, process, until, work); });
    const auto transactions = server.transactions() - before;
    const auto crossed = crossings(grants);
    if (crossed.empty() || bare.empty() || by_hand.empty()) {
        throw std::runtime_error("the key never crossed");
    }
    std::printf(
        "2 processes, %lld ms of work   NOTIFY %6.1f us (p99 %6.1f)   by hand %6.1f us, %4.2f "
        "round "
        "trips with a commit   release to grant %6.1f us "
        "(p99 %7.1f), %4.2f round trips with a commit   %zu grants, %zu crossed, %.2f "
        "transactions/crossing\n",
        static_cast<long long>(work.count()),
        median(bare),
        quantile(bare, 0.99),
        median(by_hand),
        median(by_hand) / round_trip,
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
        server.ask(
            "DROP TABLE IF EXISTS dibs_bench_row; CREATE TABLE dibs_bench_row (key text PRIMARY "
            "KEY, holder text NOT NULL, expires timestamptz NOT NULL, fence bigint NOT NULL) WITH "
            "(fillfactor = 50); INSERT INTO dibs_bench_row VALUES ('hot', '', now(), 0)");
    }
    // Two processes that are forked have no connections before.
    for (const auto work : {0ms, 5ms}) {
        between_processes(url, length, work, round_trip);
    }
    raw_postgres(url).ask("DROP TABLE dibs_bench_row");
}
