// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/demo_database.hpp"
#include "cli/demo/stock.hpp"

#include <chrono>

namespace dibs::cli {

namespace {

using postgres::fields;

stock_seen seen_in(const fields& row) {
    stock_seen found;
    found.stock = std::stoi(row.at("stock").value());
    if (const auto version = row.find("version"); version != row.end()) {
        found.version = std::stoi(version->second.value());
    }
    return found;
}

class session final : public stock_session {
  public:
    explicit session(const demo_database& data)
        : own_(data.open()), product_{data.name("product"), "id", "1"} {}

    void read_and_write(const decision& decide) override {
        run("BEGIN");
        const auto seen =
            seen_in(run("SELECT stock FROM " + product_.table + " WHERE id = 1").rows.at(0));
        write(decide(seen));
        run("COMMIT");
    }
    void update_versioned(const decision& decide) override {
        (void)postgres::update_versioned(own_.raw(), product_, [&](const fields& row) {
            return fields{{"stock", std::to_string(decide(seen_in(row)))}};
        });
    }
    void with_lock(const decision& decide) override {
        (void)postgres::with_row_lock(
            own_.raw(), product_, std::chrono::seconds{30}, [&](const fields& row) {
                write(decide(seen_in(row)));
            });
    }
    stock_taken take(int amount) override {
        const auto got = postgres::take(own_.raw(), product_, "stock", amount);
        return {got.how == postgres::taken::outcome::taken, static_cast<int>(got.remaining)};
    }

  private:
    postgres::result run(const std::string& sql) { return postgres::execute(own_.raw(), sql); }
    void write(int stock) {
        run("UPDATE " + product_.table + " SET stock = " + std::to_string(stock) + " WHERE id = 1");
    }

    guard::session own_;
    postgres::row_name product_;
};

class table final : public stock_table {
  public:
    explicit table(const std::string& url) : data_(url) {
        data_.run("CREATE TABLE " + data_.name("product") +
                  "(id int PRIMARY KEY, stock int NOT NULL, version bigint NOT NULL)");
        data_.run("INSERT INTO " + data_.name("product") + " VALUES(1, 10, 1)");
    }
    void reset() override {
        data_.run("UPDATE " + data_.name("product") + " SET stock = 10, version = 1");
    }
    int stock() override {
        return std::stoi(data_.ask("SELECT stock FROM " + data_.name("product")));
    }
    std::unique_ptr<stock_session> open() const override {
        return std::make_unique<session>(data_);
    }
    std::string locked() const override { return "the row"; }

  private:
    demo_database data_;
};

}  // namespace

std::unique_ptr<stock_table> stock_in_postgres(const std::string& url) {
    return std::make_unique<table>(url);
}

}  // namespace dibs::cli
