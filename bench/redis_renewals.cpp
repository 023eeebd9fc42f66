// SPDX-License-Identifier: Apache-2.0
// What it costs to hold many leases on the Redis store: CPU and memory of the process, and commands
// to the server, while a client holds and renews them.
//
// usage: bench_redis_renewals PORT [leases] [seconds]      a server on 127.0.0.1

#include "many_leases.hpp"
#include "measure.hpp"
#include "raw_redis.hpp"

#include <dibs/dibs.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_redis_renewals PORT [leases] [seconds]\n");
        return 64;
    }
    const auto port = static_cast<std::uint16_t>(std::atoi(words[1]));
    const int number = count > 2 ? std::atoi(words[2]) : 100'000;
    const int length = count > 3 ? std::atoi(words[3]) : 60;
    dibs::bench::raw_redis server(port);
    dibs::client client("redis://127.0.0.1:" + std::to_string(port));
    const auto bare = dibs::bench::memory_used();
    std::int64_t before = 0;
    dibs::bench::hold_many(
        client,
        number,
        length,
        [&] { before = server.commands(); },
        [&] {
            std::printf("%.1f commands/s, %.1f MiB for the leases\n",
                        static_cast<double>(server.commands() - before) / length,
                        static_cast<double>(dibs::bench::memory_used() - bare) / (1 << 20));
        });
}
