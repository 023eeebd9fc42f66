// SPDX-License-Identifier: Apache-2.0
// Goal: <dibs/postgres.hpp> keeps late and concurrent writers from the data, retries what may be
// retried, and tells apart what a caller has to. Method: real server, real threads.
#include "guarded_server.hpp"

#include <dibs/client.hpp>
#include <dibs/postgres.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dibs::testing {
namespace {

using namespace std::chrono_literals;
using postgres::fields;
using postgres::locked;
using postgres::request_result;
using postgres::row_name;
using postgres::taken;

template <typename Call>
std::error_code error_of(Call call) {
    try {
        call();
        return {};
    } catch (const error& trouble) {
        return trouble.code();
    }
}

class Library : public ::testing::Test {
  protected:
    Library() {
        EXPECT_EQ(server_.ask("CREATE TABLE product(id int PRIMARY KEY, stock int);"
                              "INSERT INTO product VALUES(1, 10);"
                              "SELECT dibs.versioned('product')"),
                  "");
    }
    std::string stock() { return server_.ask("SELECT stock FROM product WHERE id = 1"); }
    static int stock_of(const fields& row) { return std::stoi(row.at("stock").value()); }

    guarded_server server_;
    const row_name first_{"product", "id", "1"};
};

TEST_F(Library, FencedWritesAllOrNothing) {
    auto session = server_.connect();
    postgres::fenced(session.raw(), "k", 7, [&] {
        (void)postgres::execute(session.raw(), "UPDATE product SET stock = 9");
    });
    EXPECT_EQ(stock(), "9");
    bool called = false;
    EXPECT_EQ(error_of([&] { postgres::fenced(session.raw(), "k", 6, [&] { called = true; }); }),
              condition::fenced_off);
    EXPECT_FALSE(called);
    EXPECT_THROW(postgres::fenced(session.raw(),
                                  "k",
                                  8,
                                  [&] {
                                      (void)postgres::execute(session.raw(),
                                                              "UPDATE product SET stock = 1");
                                      throw std::runtime_error{"the work"};
                                  }),
                 std::runtime_error);
    EXPECT_EQ(stock(), "9");
    EXPECT_EQ(::PQtransactionStatus(session.raw()), PQTRANS_IDLE);
    postgres::fenced(session.raw(), "k", 7, [] {});
}

TEST_F(Library, FencedDoesNotWaitForEverForOneWhoStandsStill) {
    auto still = server_.connect();
    auto next = server_.connect();
    still.ask("BEGIN; SELECT dibs.claim('k', 7)");
    for (const auto wait : {0ms, 20ms}) {
        postgres::fence_options options;
        options.wait = wait;
        EXPECT_EQ(error_of([&] {
                      postgres::fenced(
                          next.raw(), "k", 8, [] { FAIL(); }, options);
                  }),
                  condition::retryable);
    }
    EXPECT_EQ(::PQtransactionStatus(next.raw()), PQTRANS_IDLE);
    still.ask("COMMIT");
    postgres::fenced(next.raw(), "k", 8, [&] { EXPECT_EQ(next.ask("SHOW lock_timeout"), "0"); });
}

TEST_F(Library, GoesByTheSchemaThatItIsTold) {
    guard::install(server_.url(), "other");
    auto session = server_.connect();
    postgres::fence_options fences;
    fences.schema = "other";
    postgres::fenced(
        session.raw(), "k", 9, [] {}, fences);
    EXPECT_EQ(server_.ask("SELECT fence FROM other.guard_key"), "9");
    postgres::request_options requests;
    requests.schema = "other";
    (void)postgres::idempotent(
        session.raw(), "r", "p", [] { return "x"; }, requests);
    EXPECT_EQ(server_.ask("SELECT count(*) FROM other.guard_request"), "1");
    fences.schema = "other; DROP TABLE product";
    EXPECT_EQ(error_of([&] {
                  postgres::fenced(
                      session.raw(), "k", 9, [] {}, fences);
              }),
              condition::invalid_argument);
}

TEST_F(Library, FencedGoesByTheLease) {
    client locks{"memory:guard"};
    auto session = server_.connect();
    auto early = locks.try_acquire("k");
    const auto old_fence = early->fence();
    (void)early->release();
    auto held = locks.try_acquire("k");
    postgres::fenced(session.raw(), *held, [] {});
    EXPECT_EQ(error_of([&] { postgres::fenced(session.raw(), "k", old_fence, [] {}); }),
              condition::fenced_off);
    (void)held->release();
    EXPECT_EQ(error_of([&] { postgres::fenced(session.raw(), *held, [] {}); }),
              condition::lease_lost);
}

TEST_F(Library, AStatementOfTheWorkThatFailedUnnoticedIsNoSuccess) {
    auto session = server_.connect();
    EXPECT_EQ(error_of([&] {
                  postgres::fenced(session.raw(), "k", 7, [&] {
                      (void)session.ask("UPDATE product SET stock = 9");
                      (void)session.ask("UPDATE nothing SET x = 1");
                  });
              }),
              condition::retryable);
    EXPECT_EQ(stock(), "10");
}

TEST_F(Library, TakesPartInTheCallersTransaction) {
    auto session = server_.connect();
    session.ask("BEGIN");
    postgres::fenced(session.raw(), "k", 7, [&] {
        (void)postgres::execute(session.raw(), "UPDATE product SET stock = 9");
    });
    EXPECT_EQ(stock(), "10");
    session.ask("ROLLBACK");
    EXPECT_EQ(stock(), "10");
    postgres::fenced(session.raw(), "k", 6, [] {});
}

TEST_F(Library, AConnectionLostAtTheCommitIsTold) {
    auto session = server_.connect();
    EXPECT_EQ(error_of([&] {
                  postgres::fenced(session.raw(), "k", 7, [&] {
                      server_.ask("SELECT pg_terminate_backend(" +
                                  std::to_string(session.server_process()) + ")");
                      ASSERT_TRUE(eventually([&] {
                          return server_.ask("SELECT count(*) FROM pg_stat_activity WHERE pid = " +
                                             std::to_string(session.server_process())) == "0";
                      }));
                  });
              }),
              condition::outcome_unknown);
    EXPECT_EQ(error_of([&] { postgres::fenced(session.raw(), "k", 7, [] {}); }),
              errc::store_unreachable);
}

TEST_F(Library, UpdateVersionedReadsAnewAfterAConflict) {
    auto session = server_.connect();
    int calls = 0;
    const auto done = postgres::update_versioned(session.raw(), first_, [&](const fields& now) {
        if (++calls == 1) {
            EXPECT_EQ(server_.ask("UPDATE product SET stock = stock - 3"), "1");
        }
        return fields{{"stock", std::to_string(stock_of(now) - 2)}};
    });
    ASSERT_TRUE(done);
    EXPECT_EQ(done->attempts, 2);
    EXPECT_EQ(done->version, 3);
    EXPECT_EQ(stock(), "5");
    EXPECT_FALSE(postgres::update_versioned(
        session.raw(), {"product", "id", "9"}, [](const fields&) { return fields{}; }));
    // Nothing to write.
    EXPECT_EQ(
        postgres::update_versioned(session.raw(), first_, [](const fields&) { return fields{}; })
            ->version,
        3);
}

TEST_F(Library, UpdateVersionedTriesAgainWhatTheServerCallsAConflict) {
    for (const int lock_after : {0, 1}) {
        ASSERT_EQ(server_.ask("UPDATE product SET stock = 10, version = version"), "1");
        auto session = server_.connect();
        auto other = server_.connect();
        ASSERT_EQ(session.ask("SET default_transaction_isolation = 'repeatable read'"), "");
        postgres::retry_options options;
        options.lock_after = lock_after;
        int calls = 0;
        std::thread first;
        const auto done = postgres::update_versioned(
            session.raw(),
            first_,
            [&](const fields& now) {
                if (++calls == 1) {
                    // Somebody has the row, and commits when this one waits for it.
                    EXPECT_EQ(other.ask("BEGIN; UPDATE product SET stock = stock - 3"), "1");
                    first = std::thread([&] {
                        EXPECT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
                        EXPECT_EQ(other.ask("COMMIT"), "");
                    });
                }
                return fields{{"stock", std::to_string(stock_of(now) - 2)}};
            },
            options);
        first.join();
        ASSERT_TRUE(done);
        EXPECT_EQ(done->attempts, 2);
        EXPECT_EQ(stock(), "5");
    }
    // In a transaction of the caller's the conflict is told: all of it has to be done again.
    auto session = server_.connect();
    ASSERT_EQ(session.ask("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM product"),
              "1");
    ASSERT_EQ(server_.ask("UPDATE product SET stock = 20"), "1");
    int calls = 0;
    EXPECT_EQ(error_of([&] {
                  (void)postgres::update_versioned(session.raw(), first_, [&](const fields&) {
                      ++calls;
                      return fields{{"stock", "1"}};
                  });
              }),
              condition::retryable);
    EXPECT_EQ(calls, 1);
    session.ask("ROLLBACK");
    // What the caller's own work met is the caller's.
    EXPECT_EQ(error_of([&] {
                  (void)postgres::update_versioned(
                      session.raw(), first_, [&](const fields&) -> fields {
                          ++calls;
                          (void)postgres::execute(
                              session.raw(),
                              "DO $$ BEGIN RAISE SQLSTATE '40001' USING MESSAGE = 'mine'; END $$");
                          return {};
                      });
              }),
              condition::retryable);
    EXPECT_EQ(calls, 2);
}

TEST_F(Library, AWaitMayBeAsLongAsAnybodyLikes) {
    auto session = server_.connect();
    const auto longest = std::chrono::milliseconds::max();
    EXPECT_EQ(postgres::with_row_lock(session.raw(), first_, longest, [](const fields&) {}),
              locked::done);
    EXPECT_TRUE(postgres::with_xact_lock(session.raw(), "k", longest, [] {}));
    postgres::fence_options options;
    options.wait = std::chrono::hours{24 * 100};
    postgres::fenced(
        session.raw(), "k", 7, [] {}, options);
}

TEST_F(Library, UpdateVersionedGivesUpOnlyAfterItsAttempts) {
    auto session = server_.connect();
    postgres::retry_options few;
    few.attempts = 3;
    few.lock_after = 0;
    int calls = 0;
    const auto always_late = [&](const fields& now) {
        ++calls;
        EXPECT_EQ(server_.ask("UPDATE product SET stock = stock + 0"), "1");
        return fields{{"stock", std::to_string(stock_of(now) - 2)}};
    };
    EXPECT_EQ(error_of([&] {
                  (void)postgres::update_versioned(session.raw(), first_, always_late, few);
              }),
              condition::retryable);
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(stock(), "10");
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(error_of([&] {
                  (void)postgres::update_versioned(
                      session.raw(), first_, always_late, few, stop.get_token());
              }),
              condition::cancelled);
}

// Case 179: each of many writers of one row gets through with few attempts.
TEST_F(Library, ManyWritersNeedFewAttemptsEach) {
    const int writers = 64;
    const int writes = 3;
    std::vector<std::thread> all;
    std::atomic<int> most{0};
    for (int writer = 0; writer < writers; ++writer) {
        all.emplace_back([&] {
            auto session = server_.connect();
            postgres::retry_options patient;
            patient.within = 10min;
            for (int at = 0; at < writes; ++at) {
                const auto done = postgres::update_versioned(
                    session.raw(),
                    first_,
                    [](const fields& now) {
                        return fields{{"stock", std::to_string(stock_of(now) + 1)}};
                    },
                    patient);
                int before = most;
                while (before < done->attempts &&
                       !most.compare_exchange_weak(before, done->attempts)) {
                }
            }
        });
    }
    for (auto& one : all) {
        one.join();
    }
    EXPECT_EQ(stock(), std::to_string(10 + writers * writes));
    EXPECT_LE(most, postgres::retry_options{}.lock_after + 1);
}

// Case 173: 200 purchases of one to three pieces of ten, in each way that there is.
TEST_F(Library, EveryWayOfBuyingSellsWhatIsThere) {
    using purchase = std::function<bool(PGconn*, int)>;
    postgres::retry_options patient;
    patient.attempts = 1000;
    patient.within = 10min;
    const auto write_rest = [](PGconn* line, int rest) {
        (void)postgres::execute(
            line, "UPDATE product SET stock = $1 WHERE id = 1", {std::to_string(rest)});
    };
    const std::vector<std::pair<std::string, purchase>> ways{
        {"version",
         [&](PGconn* line, int pieces) {
             bool sold = false;
             (void)postgres::update_versioned(
                 line,
                 first_,
                 [&](const fields& now) {
                     sold = stock_of(now) >= pieces;
                     return sold ? fields{{"stock", std::to_string(stock_of(now) - pieces)}}
                                 : fields{};
                 },
                 patient);
             return sold;
         }},
        {"row lock",
         [&](PGconn* line, int pieces) {
             bool sold = false;
             EXPECT_EQ(postgres::with_row_lock(line,
                                               first_,
                                               10min,
                                               [&](const fields& now) {
                                                   sold = stock_of(now) >= pieces;
                                                   if (sold) {
                                                       write_rest(line, stock_of(now) - pieces);
                                                   }
                                               }),
                       locked::done);
             return sold;
         }},
        {"take",
         [&](PGconn* line, int pieces) {
             return postgres::take(line, first_, "stock", pieces).how == taken::outcome::taken;
         }},
        {"name", [&](PGconn* line, int pieces) {
             bool sold = false;
             EXPECT_TRUE(postgres::with_xact_lock(line, "product:1", 10min, [&] {
                 const auto now = postgres::execute(line, "SELECT stock FROM product WHERE id = 1");
                 const int there = std::stoi(now.rows.at(0).at("stock").value());
                 sold = there >= pieces;
                 if (sold) {
                     write_rest(line, there - pieces);
                 }
             }));
             return sold;
         }}};
    for (const auto& [name, buy] : ways) {
        ASSERT_EQ(server_.ask("UPDATE product SET stock = 10"), "1");
        std::atomic<int> sold{0};
        std::vector<std::thread> buyers;
        for (int buyer = 0; buyer < 8; ++buyer) {
            buyers.emplace_back([&, &buy = buy] {
                auto session = server_.connect();
                for (int at = 0; at < 25; ++at) {
                    const int pieces = 1 + at % 3;
                    if (buy(session.raw(), pieces)) {
                        sold += pieces;
                    }
                }
            });
        }
        for (auto& buyer : buyers) {
            buyer.join();
        }
        // The last purchase of everybody is of one piece.
        EXPECT_EQ(sold, 10) << name;
        EXPECT_EQ(stock(), "0") << name;
    }
}

// Case 052: what went wrong is told, and not that something could not be given back after it.
TEST_F(Library, TheErrorOfTheWorkComesOutAndNothingStaysLocked) {
    auto session = server_.connect();
    const auto fails = [&] { (void)postgres::execute(session.raw(), "SELECT 1/0"); };
    const std::vector<std::function<void()>> calls{
        [&] { (void)postgres::with_xact_lock(session.raw(), "k", 1min, fails); },
        [&] {
            (void)postgres::with_row_lock(
                session.raw(), first_, 1min, [&](const fields&) { fails(); });
        },
        [&] { postgres::fenced(session.raw(), "k", 7, fails); },
        [&] {
            (void)postgres::idempotent(session.raw(), "r", "p", [&]() -> std::string {
                fails();
                return "";
            });
        },
        [&] {
            (void)postgres::update_versioned(session.raw(), first_, [&](const fields&) -> fields {
                fails();
                return {};
            });
        }};
    for (const auto& call : calls) {
        try {
            call();
            ADD_FAILURE() << "no error";
        } catch (const error& trouble) {
            EXPECT_NE(std::string{trouble.what()}.find("division by zero"), std::string::npos)
                << trouble.what();
        }
        EXPECT_EQ(::PQtransactionStatus(session.raw()), PQTRANS_IDLE);
        EXPECT_EQ(server_.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
        auto other = server_.connect();
        EXPECT_TRUE(postgres::with_xact_lock(other.raw(), "k", 0ms, [] {}));
        EXPECT_EQ(postgres::with_row_lock(other.raw(), first_, 0ms, [](const fields&) {}),
                  locked::done);
    }
    // In a transaction of the caller's the same, once that is rolled back.
    session.ask("BEGIN");
    EXPECT_TRUE(postgres::try_xact_lock(session.raw(), "k"));
    EXPECT_EQ(error_of(fails), condition::invalid_argument);
    session.ask("ROLLBACK");
    EXPECT_EQ(server_.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
}

// Case 179: a slow writer among fast ones is not overtaken for ever.
TEST_F(Library, ASlowWriterLocksTheRowAfterSomeConflicts) {
    std::atomic<bool> enough{false};
    std::atomic<int> counted{0};
    std::vector<std::thread> fast;
    for (int one = 0; one < 3; ++one) {
        fast.emplace_back([&] {
            auto session = server_.connect();
            while (!enough) {
                const auto done = error_of([&] {
                    (void)postgres::update_versioned(session.raw(), first_, [&](const fields& now) {
                        return fields{{"stock", std::to_string(stock_of(now) + 1)}};
                    });
                });
                if (!done) {
                    ++counted;
                }
            }
        });
    }
    auto session = server_.connect();
    int attempts = 0;
    const auto done = error_of([&] {
        attempts = postgres::update_versioned(session.raw(), first_, [&](const fields& now) {
                       const int before = counted;
                       // Long work: others write meanwhile, unless the row is locked.
                       (void)eventually([&] { return counted >= before + 2; }, 300ms);
                       return fields{{"stock", std::to_string(stock_of(now) + 1)}};
                   })->attempts;
    });
    enough = true;
    for (auto& one : fast) {
        one.join();
    }
    EXPECT_EQ(done, std::error_code{});
    EXPECT_EQ(attempts, 5);
    EXPECT_EQ(stock(), std::to_string(10 + counted + 1));
}

TEST_F(Library, WhatIsNoIntegerOrNoSingleRowIsLeftAlone) {
    ASSERT_EQ(
        server_.ask("CREATE TABLE num(id int, n numeric(10,2), kind text, version bigint NOT NULL "
                    "DEFAULT 1); INSERT INTO num VALUES(1, 10, 'a'), (2, 9.5, 'a')"),
        "2");
    auto session = server_.connect();
    const auto took = postgres::take(session.raw(), {"num", "id", "1"}, "n", 3);
    EXPECT_EQ(took.how, taken::outcome::taken);
    EXPECT_EQ(took.remaining, 7);
    const auto one_row = [](const fields&) { return fields{{"n", "1"}}; };
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
             [&] {
                 (void)postgres::take(session.raw(), {"num", "id", "2"}, "n", 3);
             },
             [&] {
                 (void)postgres::take(session.raw(), {"num", "kind", "a"}, "n", 3);
             },
             [&] {
                 (void)postgres::take(session.raw(), {"num", "kind", "a"}, "n", 8);
             },
             [&] {
                 (void)postgres::update_versioned(session.raw(), {"num", "kind", "a"}, one_row);
             },
             [&] {
                 (void)postgres::with_row_lock(
                     session.raw(), {"num", "kind", "a"}, 0ms, [](const fields&) { FAIL(); });
             }}) {
        EXPECT_EQ(error_of(call), condition::invalid_argument);
    }
    EXPECT_EQ(server_.ask("SELECT string_agg(n::text, ' ' ORDER BY id) FROM num"), "7.00 9.50");
}

TEST_F(Library, ARequestThatCannotBeKeptIsRefusedBeforeTheWork) {
    auto session = server_.connect();
    const auto refused = [&](const std::string& key, const std::string& payload) {
        try {
            (void)postgres::idempotent(session.raw(), key, payload, [] {
                ADD_FAILURE();
                return "";
            });
        } catch (const error& trouble) {
            EXPECT_EQ(trouble.code(), condition::invalid_argument);
            return std::string{trouble.what()};
        }
        return std::string{};
    };
    EXPECT_NE(refused(std::string(1025, 'k'), "p").find("1024"), std::string::npos);
    for (const std::string& bytes : std::vector<std::string>{std::string("a\0b", 3),
                                                             "\xff",
                                                             "\xc3",
                                                             "\xc0\x80",
                                                             "\xed\xa0\x80",
                                                             "\xf4\x90\x80\x80"}) {
        EXPECT_NE(refused("k", bytes).find("UTF-8"), std::string::npos);
    }
    EXPECT_EQ(
        postgres::idempotent(session.raw(), "k", "\xc3\xa9\xf0\x9f\x98\x80", [] { return "done"; })
            .answer,
        "done");
}

TEST_F(Library, RowLockTellsBusyFromNoRow) {
    auto first = server_.connect();
    auto second = server_.connect();
    const auto nothing = [](const fields&) { FAIL(); };
    EXPECT_EQ(postgres::with_row_lock(
                  first.raw(),
                  first_,
                  0ms,
                  [&](const fields& now) {
                      EXPECT_EQ(stock_of(now), 10);
                      EXPECT_EQ(postgres::with_row_lock(second.raw(), first_, 0ms, nothing),
                                locked::busy);
                      EXPECT_EQ(postgres::with_row_lock(second.raw(), first_, 20ms, nothing),
                                locked::busy);
                      EXPECT_EQ(first.ask("UPDATE product SET stock = 7"), "1");
                  }),
              locked::done);
    EXPECT_EQ(postgres::with_row_lock(second.raw(), {"public.product", "id", "9"}, 1s, nothing),
              locked::no_row);
    EXPECT_EQ(stock(), "7");
    EXPECT_EQ(second.ask("SHOW lock_timeout"), "0");
    EXPECT_EQ(
        error_of([&] {
            (void)postgres::with_row_lock(second.raw(), {"pro\"duct", "id", "1"}, 0ms, nothing);
        }),
        condition::invalid_argument);
}

TEST_F(Library, TakeTellsTooLittleFromNoRow) {
    auto session = server_.connect();
    const auto some = postgres::take(session.raw(), first_, "stock", 4);
    EXPECT_EQ(some.how, taken::outcome::taken);
    EXPECT_EQ(some.remaining, 6);
    const auto more = postgres::take(session.raw(), first_, "stock", 7);
    EXPECT_EQ(more.how, taken::outcome::too_little);
    EXPECT_EQ(more.remaining, 6);
    EXPECT_EQ(postgres::take(session.raw(), {"product", "id", "9"}, "stock", 1).how,
              taken::outcome::no_row);
    EXPECT_EQ(error_of([&] { (void)postgres::take(session.raw(), first_, "stock", -1); }),
              condition::invalid_argument);
}

TEST_F(Library, LocksByNameAreThoseOfTheSqlFunctions) {
    auto first = server_.connect();
    auto second = server_.connect();
    EXPECT_EQ(error_of([&] { (void)postgres::try_xact_lock(first.raw(), "a"); }),
              condition::invalid_argument);
    EXPECT_TRUE(postgres::with_xact_lock(first.raw(), "a", 0ms, [&] {
        EXPECT_EQ(second.ask("SELECT dibs.try_xact_lock('a')"), "f");
        EXPECT_FALSE(postgres::with_xact_lock(second.raw(), "a", 0ms, [] { FAIL(); }));
        EXPECT_FALSE(postgres::with_xact_lock(second.raw(), "a", 20ms, [] { FAIL(); }));
        EXPECT_FALSE(server_.has_waiting_session());
        EXPECT_TRUE(postgres::with_xact_lock(second.raw(), "b", 0ms, [] {}));
        (void)first.ask("UPDATE product SET stock = 3");
    }));
    EXPECT_EQ(stock(), "3");
    EXPECT_EQ(second.ask("SELECT dibs.try_xact_lock('a')"), "t");
}

TEST_F(Library, AWaiterForANameDoesNotHoldUpAConcurrentIndex) {
    auto holder = server_.connect();
    holder.ask("BEGIN; SELECT dibs.try_xact_lock('a')");
    std::atomic<bool> got{false};
    std::thread waiter([&] {
        auto session = server_.connect();
        got = postgres::with_xact_lock(session.raw(), "a", 30s, [] {});
    });
    EXPECT_EQ(server_.ask("CREATE INDEX CONCURRENTLY product_stock ON product(stock)"), "");
    EXPECT_FALSE(got);
    holder.ask("COMMIT");
    waiter.join();
    EXPECT_TRUE(got);
}

TEST_F(Library, IdempotentDoesTheWorkOnce) {
    auto session = server_.connect();
    auto other = server_.connect();
    int calls = 0;
    const auto work = [&] {
        ++calls;
        EXPECT_EQ(postgres::idempotent(other.raw(), "r1", "pay 5", [] { return ""; }).how,
                  request_result::outcome::in_flight);
        (void)postgres::execute(session.raw(), "UPDATE product SET stock = stock - 1");
        return std::string{"done"};
    };
    const auto first = postgres::idempotent(session.raw(), "r1", "pay 5", work);
    EXPECT_EQ(first.how, request_result::outcome::done);
    const auto again = postgres::idempotent(session.raw(), "r1", "pay 5", work);
    EXPECT_EQ(again.how, request_result::outcome::replayed);
    EXPECT_EQ(again.answer, "done");
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(stock(), "9");
    EXPECT_EQ(error_of([&] { (void)postgres::idempotent(session.raw(), "r1", "pay 6", work); }),
              condition::invalid_argument);
    EXPECT_THROW((void)postgres::idempotent(session.raw(),
                                            "r2",
                                            "pay 5",
                                            [&]() -> std::string {
                                                (void)session.ask("UPDATE product SET stock = 0");
                                                throw std::runtime_error{"the work"};
                                            }),
                 std::runtime_error);
    EXPECT_EQ(stock(), "9");
    EXPECT_EQ(postgres::idempotent(session.raw(), "r2", "pay 5", [] { return "x"; }).how,
              request_result::outcome::done);
}

TEST_F(Library, WithoutTheDataLayerItSaysHowToGetIt) {
    ASSERT_EQ(server_.ask("CREATE DATABASE bare"), "");
    auto session = server_.connect("bare");
    try {
        postgres::fenced(session.raw(), "k", 7, [] {});
        FAIL();
    } catch (const error& trouble) {
        EXPECT_EQ(trouble.code(), condition::unsupported);
        EXPECT_NE(std::string{trouble.what()}.find("dibs guard install"), std::string::npos);
    }
}

TEST_F(Library, WorksBehindAPoolerThatSwapsSessions) {
    if (!has_pgbouncer()) {
        GTEST_SKIP() << "PgBouncer is not installed";
    }
    pgbouncer pool(server_);
    std::vector<std::thread> writers;
    for (int writer = 0; writer < 4; ++writer) {
        writers.emplace_back([&, writer] {
            postgres_session session{pool.url()};
            for (int turn = 0; turn < 20; ++turn) {
                postgres::fenced(session.raw(), "w" + std::to_string(writer), 5, [&] {
                    (void)postgres::execute(session.raw(),
                                            "UPDATE product SET stock = stock + 1 WHERE id = 1");
                });
                EXPECT_EQ(session.ask("SELECT current_setting('dibs.fences', true)"), "");
            }
        });
    }
    for (auto& one : writers) {
        one.join();
    }
    EXPECT_EQ(stock(), "90");
}

}  // namespace
}  // namespace dibs::testing
