// SPDX-License-Identifier: Apache-2.0
// Two admins open the same product; its stock is 10. One sells 3, the other 2.
#include "cli/demo/actors.hpp"
#include "cli/demo/demo_database.hpp"
#include "cli/demo/demos.hpp"
#include "cli/speech.hpp"

#include <functional>
#include <thread>

namespace dibs::cli {

namespace {

using postgres::fields;

constexpr const char* admin_a = "admin-A";
constexpr const char* admin_b = "admin-B";

struct sale {
    const demo_database& data;
    const shared_blackboard& board;
    milliseconds think;  ///< filling in the form

    [[nodiscard]] postgres::row_name product() const { return {data.name("product"), "id", "1"}; }
};

int stock_in(const fields& row) {
    return std::stoi(row.at("stock").value());
}

void tell_read(const std::string& who, int stock, const fields& row) {
    const auto version = row.find("version");
    tell(who,
         "read stock = " + std::to_string(stock) +
             (version == row.end() ? "" : " (version " + version->second.value() + ")"));
}

std::string sold(int amount, int left) {
    return "sold " + std::to_string(amount) + " -> wrote stock = " + std::to_string(left);
}

/// A has read before B writes, and B has read before A does.
void meet(const sale& here, bool first) {
    (first ? here.board->first_has_it : here.board->second_has_it) = true;
    wait_for(first ? here.board->second_has_it : here.board->first_has_it);
}

void sell_plainly(const sale& here, const guard::session& session, bool first, int amount) {
    const auto who = first ? admin_a : admin_b;
    const auto table = here.product().table;
    (void)postgres::execute(session.raw(), "BEGIN");
    const auto row =
        postgres::execute(session.raw(), "SELECT stock FROM " + table + " WHERE id = 1").rows.at(0);
    tell_read(who, stock_in(row), row);
    meet(here, first);
    if (!first) {
        wait_for(here.board->first_has_left);
    }
    std::this_thread::sleep_for(here.think);
    const int left = stock_in(row) - amount;
    (void)postgres::execute(
        session.raw(), "UPDATE " + table + " SET stock = $1 WHERE id = 1", {std::to_string(left)});
    (void)postgres::execute(session.raw(), "COMMIT");
    tell(who, sold(amount, left));
}

void sell_by_version(const sale& here, const guard::session& session, bool first, int amount) {
    const auto who = first ? admin_a : admin_b;
    int attempt = 0;
    int left = 0;
    const auto change = [&](const fields& row) {
        if (attempt > 0) {
            tell(who, "version changed under me -> retry " + std::to_string(attempt));
        }
        tell_read(who, stock_in(row), row);
        if (attempt++ == 0) {
            meet(here, first);
            if (!first) {
                wait_for(here.board->first_has_left);
            }
        }
        std::this_thread::sleep_for(here.think);
        left = stock_in(row) - amount;
        return fields{{"stock", std::to_string(left)}};
    };
    (void)postgres::update_versioned(session.raw(), here.product(), change);
    tell(who, sold(amount, left));
}

void sell_with_row_lock(const sale& here, const guard::session& session, bool first, int amount) {
    const auto who = first ? admin_a : admin_b;
    if (!first) {
        wait_for(here.board->first_has_it);
        tell(who, "waits for the row");
    }
    int left = 0;
    const auto work = [&](const fields& row) {
        tell_read(who, stock_in(row), row);
        if (first) {
            here.board->first_has_it = true;
        }
        std::this_thread::sleep_for(here.think);
        left = stock_in(row) - amount;
        (void)postgres::execute(session.raw(),
                                "UPDATE " + here.product().table + " SET stock = $1 WHERE id = 1",
                                {std::to_string(left)});
    };
    (void)postgres::with_row_lock(session.raw(), here.product(), std::chrono::seconds{30}, work);
    tell(who, sold(amount, left));
}

void sell_conditionally(const sale& here, const guard::session& session, bool first, int amount) {
    const auto who = first ? admin_a : admin_b;
    meet(here, first);
    const auto got = postgres::take(session.raw(), here.product(), "stock", amount);
    tell(who, "sold " + std::to_string(amount) + " -> stock is " + std::to_string(got.remaining));
    if (!first) {
        wait_for(here.board->first_has_left);
        const auto more = postgres::take(session.raw(), here.product(), "stock", 9);
        tell(who,
             std::string{"sold "} +
                 (more.how == postgres::taken::outcome::too_little ? "no 9 more: " : "9 more: ") +
                 std::to_string(more.remaining) + " left");
    }
}

using way = void (*)(const sale&, const guard::session&, bool first, int amount);

/// Whether the stock is what it should be in the end, 8 or 5.
bool play_round(const demo_database& data,
                milliseconds think,
                const std::string& title,
                way sell,
                const std::string& expected) {
    deliver("\n" + title + "\n");
    data.run("UPDATE " + data.name("product") + " SET stock = 10, version = 1");
    const shared_blackboard board;
    const sale here{data, board, think};
    actor second([&] { sell(here, data.open(), false, 2); });
    actor first([&] {
        sell(here, data.open(), true, 3);
        here.board->first_has_left = true;
    });
    first.join();
    second.join();
    const auto stock = data.ask("SELECT stock FROM " + data.name("product"));
    deliver("  final stock: " + stock + " (should be 5)\n");
    return stock == expected;
}

}  // namespace

int demo_concurrent_updates(const demo_scene& scene) {
    const auto think = scene.length(milliseconds{200}, milliseconds{20});
    const demo_database data(scene.data);
    data.run("CREATE TABLE " + data.name("product") +
             "(id int PRIMARY KEY, stock int NOT NULL, version bigint NOT NULL)");
    data.run("INSERT INTO " + data.name("product") + " VALUES(1, 10, 1)");
    deliver("Stock is 10. admin-A sells 3, admin-B sells 2, at the same time.\n");
    const bool lost =
        play_round(data, think, "Read, think, write, in a transaction each:", sell_plainly, "8");
    const bool by_version = play_round(data, think, "With a version column:", sell_by_version, "5");
    const bool by_lock = play_round(data, think, "With the row locked:", sell_with_row_lock, "5");
    const bool by_condition = play_round(data,
                                         think,
                                         "With a conditional update, which reads nothing first:",
                                         sell_conditionally,
                                         "5");
    return verdict(lost && by_version && by_lock && by_condition);
}

}  // namespace dibs::cli
