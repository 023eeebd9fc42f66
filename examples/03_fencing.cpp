// SPDX-License-Identifier: Apache-2.0
// A row that refuses a late writer: it remembers the largest fence it has seen. The lease alone
// cannot do that, since a process that was asleep does not know that its lease is over.
//
//   03_fencing STORE-URL

#include <dibs/dibs.hpp>

#include <sqlite3.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

using namespace std::chrono_literals;

namespace {

using database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

/// Sets the price unless somebody with a newer fence was here. False: refused.
bool set_price(sqlite3* data, int price, std::uint64_t fence) {
    // `<=` and not `<`: the same holder may write more than once.
    const auto sql = "UPDATE product SET price = " + std::to_string(price) +
                     ", fence = " + std::to_string(fence) +
                     " WHERE id = 1 AND fence <= " + std::to_string(fence);
    return sqlite3_exec(data, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK &&
           sqlite3_changes(data) == 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: 03_fencing STORE-URL\n";
        return 64;
    }
    sqlite3* opened = nullptr;
    sqlite3_open(":memory:", &opened);
    const database data(opened, &sqlite3_close);
    sqlite3_exec(
        opened,
        "CREATE TABLE product(id INTEGER PRIMARY KEY, price INTEGER, fence INTEGER NOT NULL);"
        "INSERT INTO product VALUES(1, 100, 0)",
        nullptr,
        nullptr,
        nullptr);
    try {
        dibs::client client{argv[1]};
        auto slow = client.try_acquire("product:1");
        if (!slow) {
            std::cout << "somebody has it\n";
            return 0;
        }
        const auto old_fence = slow->fence();
        // ... and here the slow writer falls asleep, and its lease ends. We end it by hand.
        (void)slow->release();

        auto quick = client.try_acquire("product:1");
        const bool written = quick && set_price(opened, 120, quick->fence());
        std::cout << "the new holder writes: " << (written ? "accepted" : "refused") << '\n';

        const bool stale = set_price(opened, 90, old_fence);
        std::cout << "the slow writer wakes and writes: " << (stale ? "accepted" : "refused")
                  << '\n';
        return written && !stale ? 0 : 1;
    } catch (const dibs::error& trouble) {
        std::cerr << trouble.what() << '\n';
        return 1;
    }
}
