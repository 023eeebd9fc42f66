// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/stock.hpp"
#include "store/sqlite/plain_sql.hpp"

namespace dibs::cli {

namespace {

using store::sqlite::plain_file;
using store::sqlite::plain_sql;

class session final : public stock_session {
  public:
    explicit session(const std::string& file) : file_(file) {}

    void read_and_write(const decision& decide) override {
        write(decide({number("SELECT stock FROM product"), {}}));
    }
    void update_versioned(const decision& decide) override {
        for (bool done = false; !done;) {
            const auto seen = read();
            const auto stock = std::to_string(decide(seen));
            done = file_
                       .run("UPDATE product SET stock = " + stock +
                            ", version = version + 1 WHERE id = 1 AND version = " +
                            std::to_string(seen.version.value()))
                       .changed == 1;
        }
    }
    void with_lock(const decision& decide) override {
        file_.run("BEGIN IMMEDIATE");
        write(decide(read()));
        file_.run("COMMIT");
    }
    stock_taken take(int amount) override {
        const auto text = std::to_string(amount);
        const auto left = file_
                              .run("UPDATE product SET stock = stock - " + text +
                                   " WHERE id = 1 AND stock >= " + text + " RETURNING stock")
                              .value;
        return left.empty() ? stock_taken{false, number("SELECT stock FROM product")}
                            : stock_taken{true, std::stoi(left)};
    }

  private:
    int number(const std::string& sql) { return std::stoi(file_.run(sql).value); }
    stock_seen read() {
        // In one statement, so that both are of one moment.
        const auto both = file_.run("SELECT stock || ' ' || version FROM product").value;
        return {std::stoi(both), std::stoi(both.substr(both.find(' ')))};
    }
    void write(int stock) {
        file_.run("UPDATE product SET stock = " + std::to_string(stock) + " WHERE id = 1");
    }

    plain_file file_;
};

class table final : public stock_table {
  public:
    explicit table(std::string file) : file_(std::move(file)) {
        plain_sql(file_,
                  "CREATE TABLE product(id INTEGER PRIMARY KEY, stock INTEGER, version INTEGER);"
                  "INSERT INTO product VALUES(1, 10, 1)");
    }
    void reset() override { plain_sql(file_, "UPDATE product SET stock = 10, version = 1"); }
    int stock() override { return std::stoi(plain_sql(file_, "SELECT stock FROM product").value); }
    std::unique_ptr<stock_session> open() const override {
        return std::make_unique<session>(file_);
    }
    std::string locked() const override { return "the file"; }

  private:
    std::string file_;
};

}  // namespace

std::unique_ptr<stock_table> stock_in_sqlite(const std::string& file) {
    return std::make_unique<table>(file);
}

}  // namespace dibs::cli
