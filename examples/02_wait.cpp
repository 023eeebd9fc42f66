// SPDX-License-Identifier: Apache-2.0
// Wait for a key, for a while or until asked to stop, and notice when the lease is lost.
//
//   02_wait STORE-URL

#include <dibs/dibs.hpp>

#include <chrono>
#include <iostream>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;

namespace {

/// Work in small steps, so that it can stop soon after the lease is lost.
bool work(const dibs::lease& lease) {
    const auto lost = lease.lost();
    for (int step = 0; step < 5; ++step) {
        if (lost.stop_requested()) {
            std::cout << "stopped: " << lease.lost_reason().message() << '\n';
            return false;
        }
        std::this_thread::sleep_for(10ms);
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: 02_wait STORE-URL\n";
        return 64;
    }
    try {
        dibs::client client{argv[1]};
        auto first = client.try_acquire("product:1", {.ttl = 10s});
        if (!first) {
            std::cout << "somebody has it\n";
            return 0;
        }

        // Waits up to five seconds, or until asked to stop. No exception leaves a thread: this form
        // tells its error.
        std::jthread second([&client](const std::stop_token& stop) {
            std::error_code error;
            if (auto lease = client.acquire("product:1", {.ttl = 10s, .wait = 5s}, stop, error)) {
                std::cout << "second: my turn, fence " << lease->fence() << '\n';
                work(*lease);
            } else {
                std::cout << "second: " << (error ? error.message() : "still held, giving up")
                          << '\n';
            }
        });

        std::cout << "first: fence " << first->fence() << '\n';
        work(*first);
        // A release tells whether the work was protected to its end.
        if (first->release() == dibs::release_outcome::not_held) {
            std::cout << "first: the lease was lost meanwhile\n";
        }
        second.join();  // its destructor would ask it to stop
    } catch (const dibs::error& trouble) {
        std::cerr << trouble.what() << '\n';
        return 1;
    }
}
