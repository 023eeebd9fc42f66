// SPDX-License-Identifier: Apache-2.0
// Several at once: permits of a semaphore, readers beside a writer, and several keys together.
//
//   09_permits STORE-URL

#include <dibs/dibs.hpp>

#include <chrono>
#include <iostream>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// A licence for three seats: at most three use it at a time, on all hosts together.
void use_seats(dibs::client& client) {
    std::vector<dibs::lease> seats;
    for (int number = 1; number <= 4; ++number) {
        if (auto seat = client.try_acquire("licence", {.mode = dibs::permits(1).of(3)})) {
            seats.push_back(std::move(*seat));
        } else {
            std::cout << "seats: " << seats.size() << " taken, no fourth one\n";
        }
    }
}

/// Many read the catalogue at once. Whoever replaces it wants it alone, and stands in the queue, so
/// that readers who come later wait for it.
void read_and_replace(dibs::client& client) {
    auto one = client.try_acquire("catalogue", {.mode = dibs::shared});
    auto another = client.try_acquire("catalogue", {.mode = dibs::shared});
    std::cout << "catalogue: " << (one && another ? "two read it" : "somebody replaces it")
              << ", a writer " << (client.try_acquire("catalogue") ? "is let in" : "must wait")
              << '\n';
    one.reset();
    another.reset();
    if (auto alone = client.acquire("catalogue", {.wait = 10s, .order = dibs::order::queue})) {
        std::cout << "catalogue: replaced, fence " << alone->fence() << '\n';
    }
}

/// Both accounts or none, whatever the order in which others name them.
void transfer(dibs::client& client) {
    if (auto both = client.acquire_all({"account:42", "account:17"}, {.ttl = 10s, .wait = 10s})) {
        std::cout << "transfer: fences " << both->fence("account:17") << " and "
                  << both->fence("account:42") << '\n';
        // Each row is guarded by the fence of its own account. `both->lost()` tells when to stop.
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: 09_permits STORE-URL\n";
        return 64;
    }
    try {
        dibs::client client{argv[1]};
        use_seats(client);
        read_and_replace(client);
        transfer(client);
    } catch (const dibs::error& trouble) {
        std::cerr << trouble.what() << '\n';
        return 1;
    }
}
