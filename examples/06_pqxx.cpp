// SPDX-License-Identifier: Apache-2.0
// The data layer from libpqxx: its functions are plain SQL, for any language and library.
//
//   dibs guard install --store DATABASE-URL
//   06_pqxx DATABASE-URL

#include <pqxx/pqxx>

#include <cstdint>
#include <iostream>
#include <string>

namespace {

/// False: a newer holder was here, and nothing was written.
bool set_price(pqxx::connection& data, int price, std::int64_t fence) {
    try {
        pqxx::work tx(data);
        tx.exec_params("SELECT dibs.claim($1, $2)", "product:1", fence);
        tx.exec_params("UPDATE price SET amount = $1 WHERE id = 1", price);
        tx.commit();
        return true;
    } catch (const pqxx::sql_error& refusal) {
        if (refusal.sqlstate() != "ZD001") {
            throw;
        }
        return false;
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: 06_pqxx DATABASE-URL\n";
        return 64;
    }
    try {
        pqxx::connection data(argv[1]);
        pqxx::nontransaction(data).exec(
            "CREATE TABLE price(id int PRIMARY KEY, amount int); INSERT INTO price VALUES(1, 100);"
            "SELECT dibs.protect('price')");
        std::cout << "fence 34 writes: " << (set_price(data, 120, 34) ? "accepted" : "refused")
                  << '\n';
        std::cout << "fence 33 writes: " << (set_price(data, 90, 33) ? "accepted" : "refused")
                  << '\n';
        return 0;
    } catch (const std::exception& trouble) {
        std::cerr << trouble.what() << '\n';
        return 1;
    }
}
