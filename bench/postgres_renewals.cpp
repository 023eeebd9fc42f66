// SPDX-License-Identifier: Apache-2.0
// What it costs to hold many leases on the PostgreSQL store: CPU of the process and of the server,
// memory of the process, and transactions, while a client holds and renews them. Beside it what the
// server alone takes when as many narrow rows get a new expiry by hand, in batches as large and as often.
//
// usage: bench_postgres_renewals URL [leases] [seconds]      a server on this machine

#include "many_leases.hpp"
#include "measure.hpp"
#include "raw_postgres.hpp"

#include <dibs/dibs.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Each row has its turn every ten seconds, as a lease of 30 s has.
void renew_by_hand(dibs::bench::raw_postgres& server, int number, int length) {
    constexpr int batch = 280;
    constexpr std::chrono::seconds period{10};
    server.ask(
        "DROP TABLE IF EXISTS dibs_bench_lease; CREATE TABLE dibs_bench_lease (key text PRIMARY "
        "KEY, "
        "holder text NOT NULL, expires timestamptz NOT NULL, fence bigint NOT NULL) WITH "
        "(fillfactor "
        "= 50); INSERT INTO dibs_bench_lease SELECT 'lease-' || at, md5(at::text), now() + "
        "interval "
        "'1 h', at FROM generate_series(0, " +
        std::to_string(number - 1) + ") AS at");
    server.ask("VACUUM ANALYZE dibs_bench_lease");
    server.prepare(
        "renew",
        "UPDATE dibs_bench_lease AS l SET expires = clock_timestamp() + interval '1 h' FROM "
        "unnest($1::text[], $2::text[]) AS asked(key, holder) WHERE l.key = asked.key AND "
        "l.holder = asked.holder AND l.expires > clock_timestamp()");
    std::vector<std::vector<std::string>> batches;
    for (int from = 0; from < number; from += batch) {
        std::string keys;
        for (int at = from; at < std::min(from + batch, number); ++at) {
            keys += (keys.empty() ? "lease-" : ",lease-") + std::to_string(at);
        }
        keys = "{" + keys + "}";
        const auto holders =
            server.ask("SELECT array_agg(md5(substr(key, 7)) ORDER BY place) FROM unnest('" + keys +
                       "'::text[]) WITH ORDINALITY AS asked(key, place)");
        batches.push_back({keys, holders.at(0)});
    }
    const auto before = server.cpu_of_server();
    const auto start = std::chrono::steady_clock::now();
    const auto step = std::chrono::nanoseconds(period) / batches.size();
    std::size_t turn = 0;
    for (auto next = start; next < start + std::chrono::seconds{length}; next += step) {
        std::this_thread::sleep_until(next);
        server.run("renew", batches[turn++ % batches.size()]);
    }
    const auto cpu = server.cpu_of_server() - before;
    std::printf("by hand: %.2f %% of a core of the server for %.0f renewals/s\n",
                100 * cpu.count() / length,
                static_cast<double>(turn) * batch / length);
    server.ask("DROP TABLE dibs_bench_lease");
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_postgres_renewals URL [leases] [seconds]\n");
        return 64;
    }
    const int number = count > 2 ? std::atoi(words[2]) : 100'000;
    const int length = count > 3 ? std::atoi(words[3]) : 60;
    {
        dibs::bench::raw_postgres server(words[1]);
        renew_by_hand(server, number, length);
    }
    dibs::client client(words[1]);
    const auto bare = dibs::bench::memory_used();
    dibs::bench::raw_postgres server(words[1]);
    std::int64_t transactions = 0;
    dibs::bench::seconds cpu{};
    dibs::bench::hold_many(
        client,
        number,
        length,
        [&] {
            transactions = server.transactions();
            cpu = server.cpu_of_server();
        },
        [&] {
            cpu = server.cpu_of_server() - cpu;
            transactions = server.transactions() - transactions;
            std::printf("server: %.2f %% of a core, %.1f transactions/s; %.1f MiB for the leases\n",
                        100 * cpu.count() / length,
                        static_cast<double>(transactions) / length,
                        static_cast<double>(dibs::bench::memory_used() - bare) / (1 << 20));
        });
}
