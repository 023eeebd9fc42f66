// SPDX-License-Identifier: Apache-2.0
// What it costs to hold many leases on the SQLite store: CPU of the process while a client holds and
// renews them, as a share of one core.
//
// usage: bench_sqlite_renewals [leases] [seconds]

#include "many_leases.hpp"
#include "measure.hpp"

#include <dibs/dibs.hpp>

#include <cstdlib>

int main(int count, char** words) {
    const int number = count > 1 ? std::atoi(words[1]) : 100'000;
    const int length = count > 2 ? std::atoi(words[2]) : 60;
    const dibs::bench::scratch_folder folder;
    dibs::client client("sqlite:" + folder.file("renewals.db"));
    dibs::bench::hold_many(client, number, length);
}
