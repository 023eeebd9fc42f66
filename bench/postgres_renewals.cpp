// SPDX-License-Identifier: Apache-2.0
// What it costs to hold many leases on the PostgreSQL store: CPU of the process and of the server,
// memory of the process, and transactions, while a client holds and renews them.
//
// usage: bench_postgres_renewals URL [leases] [seconds]      a server on this machine

#include "many_leases.hpp"
#include "measure.hpp"
#include "raw_postgres.hpp"

#include <dibs/dibs.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_postgres_renewals URL [leases] [seconds]\n");
        return 64;
    }
    const int number = count > 2 ? std::atoi(words[2]) : 100'000;
    const int length = count > 3 ? std::atoi(words[3]) : 60;
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
