// SPDX-License-Identifier: Apache-2.0
// Data in PostgreSQL that refuses late writers, loses no update, and does a request once.
//
//   dibs guard install --store DATABASE-URL
//   05_postgres DATABASE-URL

#include <dibs/dibs.hpp>
#include <dibs/postgres.hpp>

#include <libpq-fe.h>

#include <iostream>
#include <memory>
#include <string>

namespace pg = dibs::postgres;

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: 05_postgres DATABASE-URL\n";
        return 64;
    }
    const std::unique_ptr<PGconn, decltype(&PQfinish)> opened{PQconnectdb(argv[1]), &PQfinish};
    PGconn* data = opened.get();
    try {
        pg::execute(data, "CREATE TABLE product(id int PRIMARY KEY, stock int)");
        pg::execute(data, "INSERT INTO product VALUES(1, 10)");
        pg::execute(data, "SELECT dibs.versioned('product')");
        const pg::row_name product{"product", "id", "1"};

        // Never below zero, whoever else sells.
        const auto sold = pg::take(data, product, "stock", 11);
        std::cout << "sold 11: "
                  << (sold.how == pg::taken::outcome::too_little ? "too little, " : "yes, ")
                  << sold.remaining << " left\n";

        // Read, decide, write; again when somebody else was first.
        const auto changed = pg::update_versioned(data, product, [](const pg::fields& now) {
            return pg::fields{{"stock", std::to_string(std::stoi(*now.at("stock")) - 3)}};
        });
        std::cout << "sold 3: version " << changed->version << '\n';

        // Once, however often the request comes.
        for (int time = 1; time <= 2; ++time) {
            const auto told = pg::idempotent(data, "order-4711", "2 pieces", [&] {
                (void)pg::take(data, product, "stock", 2);
                return std::string{"sold"};
            });
            std::cout << "order 4711: " << told.answer
                      << (told.how == pg::request_result::outcome::replayed ? ", as before\n"
                                                                            : "\n");
        }

        // The one who comes too late is refused.
        pg::execute(data, "SELECT dibs.protect('product')");
        dibs::client locks{"memory:shop"};
        auto slow = locks.try_acquire("product:1");
        const auto old_fence = slow->fence();
        (void)slow->release();  // ... it fell asleep, and its lease ended
        auto quick = locks.try_acquire("product:1");
        pg::fenced(data, *quick, [&] { pg::execute(data, "UPDATE product SET stock = 4"); });
        std::cout << "the new holder writes: accepted\n";
        try {
            pg::fenced(data, "product:1", old_fence, [&] {
                pg::execute(data, "UPDATE product SET stock = 9");
            });
            std::cout << "the slow writer: accepted\n";
        } catch (const dibs::error& trouble) {
            std::cout << "the slow writer: "
                      << (trouble.code() == dibs::condition::fenced_off ? "refused" : "failed")
                      << '\n';
        }
        return 0;
    } catch (const dibs::error& trouble) {
        std::cerr << trouble.what() << '\n';
        return 1;
    }
}
