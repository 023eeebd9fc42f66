// SPDX-License-Identifier: Apache-2.0
// Two admins open the same product; its stock is 10. One sells 3, the other 2.
#include "cli/demo/actors.hpp"
#include "cli/demo/demos.hpp"
#include "cli/demo/stock.hpp"
#include "cli/output/speech.hpp"

#include <thread>

namespace dibs::cli {

namespace {

struct sale {
    const stock_table& product;
    const shared_blackboard& board;
    milliseconds think;  ///< filling in the form
};

/// Who sells how much.
struct admin {
    const char* name;
    int amount;
    bool first;  ///< writes first
};

constexpr admin admin_a{"admin-A", 3, true};
constexpr admin admin_b{"admin-B", 2, false};

void tell_read(const admin& who, const stock_seen& seen) {
    tell(who.name,
         "read stock = " + std::to_string(seen.stock) +
             (seen.version ? " (version " + std::to_string(*seen.version) + ")" : ""));
}

void tell_sold(const admin& who, int left) {
    tell(who.name,
         "sold " + std::to_string(who.amount) + " -> wrote stock = " + std::to_string(left));
}

/// A has read before B writes, and B has read before A does.
void meet(const sale& here, bool first) {
    (first ? here.board->first_has_it : here.board->second_has_it) = true;
    wait_for(first ? here.board->second_has_it : here.board->first_has_it);
}

void sell_plainly(const sale& here, stock_session& session, const admin& who) {
    int left = 0;
    session.read_and_write([&](const stock_seen& seen) {
        tell_read(who, seen);
        meet(here, who.first);
        if (!who.first) {
            wait_for(here.board->first_has_left);
        }
        std::this_thread::sleep_for(here.think);
        return left = seen.stock - who.amount;
    });
    tell_sold(who, left);
}

void sell_by_version(const sale& here, stock_session& session, const admin& who) {
    int attempt = 0;
    int left = 0;
    session.update_versioned([&](const stock_seen& seen) {
        if (attempt > 0) {
            tell(who.name, "version changed under me -> retry " + std::to_string(attempt));
        }
        tell_read(who, seen);
        if (attempt++ == 0) {
            meet(here, who.first);
            if (!who.first) {
                wait_for(here.board->first_has_left);
            }
        }
        std::this_thread::sleep_for(here.think);
        return left = seen.stock - who.amount;
    });
    tell_sold(who, left);
}

void sell_with_lock(const sale& here, stock_session& session, const admin& who) {
    if (!who.first) {
        wait_for(here.board->first_has_it);
        tell(who.name, "waits for " + here.product.locked());
    }
    int left = 0;
    session.with_lock([&](const stock_seen& seen) {
        tell_read(who, seen);
        if (who.first) {
            here.board->first_has_it = true;
        }
        std::this_thread::sleep_for(here.think);
        return left = seen.stock - who.amount;
    });
    tell_sold(who, left);
}

void sell_conditionally(const sale& here, stock_session& session, const admin& who) {
    meet(here, who.first);
    const auto got = session.take(who.amount);
    tell(who.name,
         "sold " + std::to_string(who.amount) + " -> stock is " + std::to_string(got.remaining));
    if (!who.first) {
        wait_for(here.board->first_has_left);
        const auto more = session.take(9);
        tell(who.name,
             std::string{"sold "} + (more.enough ? "9 more: " : "no 9 more: ") +
                 std::to_string(more.remaining) + " left");
    }
}

using way = void (*)(const sale&, stock_session&, const admin&);

/// Whether the stock is what it should be in the end, 8 or 5.
bool play_round(stock_table& product,
                milliseconds think,
                const std::string& title,
                way sell,
                int expected) {
    deliver("\n" + title + "\n");
    product.reset();
    const shared_blackboard board;
    const sale here{product, board, think};
    actor second([&] { sell(here, *product.open(), admin_b); });
    actor first([&] {
        sell(here, *product.open(), admin_a);
        here.board->first_has_left = true;
    });
    first.join();
    second.join();
    const int stock = product.stock();
    deliver("  final stock: " + std::to_string(stock) + " (should be 5)\n");
    return stock == expected;
}

std::unique_ptr<stock_table> product_of(const demo_scene& scene) {
#ifdef DIBS_WITH_POSTGRES
    if (!scene.data.empty()) {
        return stock_in_postgres(scene.data);
    }
#endif
    return stock_in_sqlite(scene.folder + "/product.db");
}

}  // namespace

int demo_concurrent_updates(const demo_scene& scene) {
    const auto think = scene.length(milliseconds{200}, milliseconds{20});
    const auto product = product_of(scene);
    deliver("Stock is 10. admin-A sells 3, admin-B sells 2, at the same time.\n");
    const bool lost = play_round(*product, think, "Read, think, write:", sell_plainly, 8);
    const bool by_version =
        play_round(*product, think, "With a version column:", sell_by_version, 5);
    const bool by_lock =
        play_round(*product, think, "With " + product->locked() + " locked:", sell_with_lock, 5);
    const bool by_condition = play_round(*product,
                                         think,
                                         "With a conditional update, which reads nothing first:",
                                         sell_conditionally,
                                         5);
    return verdict(lost && by_version && by_lock && by_condition);
}

}  // namespace dibs::cli
