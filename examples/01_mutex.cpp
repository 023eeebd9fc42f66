// SPDX-License-Identifier: Apache-2.0
// Do a job if nobody else is at it, and skip it otherwise.
//
//   01_mutex STORE-URL

#include <dibs/dibs.hpp>

#include <chrono>
#include <iostream>

using namespace std::chrono_literals;

namespace {

/// One worker. In the field each is a process of its own; here two share this one.
void run_job(dibs::client& client, const char* url, const char* name) {
    // Held for 10 s at a time, and renewed in the background until the end of the block.
    if (auto lease = client.try_acquire("nightly-report", {.ttl = 10s})) {
        std::cout << name << ": sending the report, fence " << lease->fence() << '\n';

        dibs::client other{url};
        if (!other.try_acquire("nightly-report")) {
            std::cout << "another worker: somebody is at it, nothing to do\n";
        }
    }  // given back here
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: 01_mutex STORE-URL\n";
        return 64;
    }
    try {
        dibs::client client{argv[1]};
        run_job(client, argv[1], "first worker");
        run_job(client, argv[1], "later worker");
    } catch (const dibs::error& trouble) {
        // That somebody else has the key is no error; this is: the store is away, an option is
        // wrong, ...
        std::cerr << trouble.what() << '\n';
        return 1;
    }
}
