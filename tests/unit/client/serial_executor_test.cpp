// SPDX-License-Identifier: Apache-2.0
// Tasks run one at a time and in order, on whoever's thread, and none is ever left behind.

#include "client/host/serial_executor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace dibs::detail {

TEST(SerialExecutor, AnIdleOneRunsTheTaskInsidePost) {
    serial_executor exec{[] {}};
    std::thread::id ran_on;
    exec.post([&] { ran_on = std::this_thread::get_id(); });
    EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(SerialExecutor, ATaskIsNeverRunInsideAnother) {
    serial_executor exec{[] {}};
    std::vector<int> order;
    exec.post([&] {
        exec.post([&] {
            exec.post([&] { order.push_back(4); });
            order.push_back(3);
        });
        order.push_back(1);
        exec.post([&] { order.push_back(5); });
        order.push_back(2);
    });
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 5, 4}));
}

TEST(SerialExecutor, KnowsWhoIsInsideATask) {
    serial_executor exec{[] {}};
    EXPECT_FALSE(exec.runs_here());
    bool inside = false;
    bool elsewhere = true;
    exec.post([&] {
        inside = exec.runs_here();
        std::thread([&] { elsewhere = exec.runs_here(); }).join();
    });
    EXPECT_TRUE(inside);
    EXPECT_FALSE(elsewhere);
    EXPECT_FALSE(exec.runs_here());
}

TEST(SerialExecutor, WhatATaskOwnsMayPostWhenItGoes) {
    serial_executor exec{[] {}};
    struct poster {
        serial_executor& exec;
        bool& told;
        ~poster() {
            exec.post([&told = told] { told = true; });
        }
    };
    bool told = false;
    auto owned = std::make_unique<poster>(exec, told);
    exec.post([owned = std::move(owned)] {});
    EXPECT_TRUE(told);
}

TEST(SerialExecutor, RunsTasksOfManyThreadsOneAtATimeAndInTheirOrder) {
    constexpr int threads = 4;
    constexpr int tasks = 5'000;
    std::atomic<int> handed_over{0};
    std::atomic<bool> over{false};
    serial_executor exec{[&] { handed_over.fetch_add(1); }};
    std::vector<int> next(threads, 0);  // no lock: the executor is one
    int in_order = 0;
    std::thread helper([&] {
        while (!over) {
            exec.run_handed_over();
            std::this_thread::yield();
        }
        exec.run_handed_over();
    });
    std::vector<std::thread> posters;
    for (int name = 0; name < threads; ++name) {
        posters.emplace_back([&, name] {
            for (int number = 0; number < tasks; ++number) {
                exec.post([&, name, number] {
                    in_order += next[static_cast<std::size_t>(name)]++ == number ? 1 : 0;
                });
            }
        });
    }
    for (auto& one : posters) {
        one.join();
    }
    exec.keep_everything();
    over = true;
    helper.join();
    std::atomic<bool> last{false};
    exec.post([&] { last = true; });
    EXPECT_TRUE(last) << "nothing is stuck";
    EXPECT_EQ(in_order, threads * tasks);
}

TEST(SerialExecutor, ABusyCallerPassesTheRestOn) {
    int handed_over = 0;
    serial_executor exec{[&] { ++handed_over; }};
    int ran = 0;
    core::unique_function<void()> again;
    struct chain {
        serial_executor& exec;
        int& ran;
        int left;
        void operator()() const {
            ++ran;
            if (left > 0) {
                exec.post(chain{exec, ran, left - 1});
            }
        }
    };
    exec.post(chain{exec, ran, 999});
    EXPECT_EQ(handed_over, 1);
    EXPECT_LT(ran, 1000);
    exec.post([] {});
    EXPECT_LT(ran, 1000) << "it is the other thread's to go on";
    exec.run_handed_over();
    EXPECT_EQ(ran, 1000);
    exec.run_handed_over();
    EXPECT_EQ(handed_over, 1);
}

TEST(SerialExecutor, ATaskOfAnotherExecutorPassesItsOwnOn) {
    // It may hold a lock that our tasks take: stores of one space wake each other's watchers with
    // the space locked.
    bool handed_over = false;
    serial_executor one{[] {}};
    serial_executor other{[&] { handed_over = true; }};
    bool ran = false;
    bool ran_inside = true;
    one.post([&] {
        other.post([&] { ran = true; });
        ran_inside = ran;
    });
    EXPECT_FALSE(ran_inside);
    EXPECT_TRUE(handed_over);
    other.run_handed_over();
    EXPECT_TRUE(ran);
}

TEST(SerialExecutor, WhatIsLeftRunsWhenAskedFor) {
    serial_executor exec{[] {}};
    std::string order;
    exec.leave([&] { order += 'a'; });
    exec.leave([&] { order += 'b'; });
    EXPECT_EQ(order, "") << "the caller has other work to do";
    exec.run_left();
    EXPECT_EQ(order, "ab");
    exec.run_left();
    EXPECT_EQ(order, "ab");
}

TEST(SerialExecutor, WhoeverPostsNextRunsWhatIsLeftFirst) {
    serial_executor exec{[] {}};
    std::string order;
    exec.leave([&] { order += 'a'; });
    exec.post([&] { order += 'b'; });
    EXPECT_EQ(order, "ab");
}

TEST(SerialExecutor, ABusyOneRunsWhatIsLeftByItself) {
    serial_executor exec{[] {}};
    std::string order;
    exec.post([&] {
        exec.leave([&] { order += 'b'; });
        exec.run_left();
        order += 'a';
    });
    EXPECT_EQ(order, "ab") << "never inside another task";
}

TEST(SerialExecutor, KeepsEverythingOnceNobodyTakesOver) {
    bool handed_over = false;
    serial_executor exec{[&] { handed_over = true; }};
    exec.keep_everything();
    int ran = 0;
    exec.post([&] {
        for (int number = 0; number < 10; ++number) {
            exec.post([&] {
                ++ran;
                for (int more = 0; more < 100; ++more) {
                    exec.post([&] { ++ran; });
                }
            });
        }
    });
    EXPECT_EQ(ran, 1010);
    EXPECT_FALSE(handed_over);
}

/// Whoever runs the last task is inside for a while longer: the executor must not go before that.
TEST(SerialExecutor, IsQuietOnceTheLastRunnerHasLeft) {
    struct held_up {
        std::atomic<bool>& entered;
        std::atomic<bool>& may_go;
        ~held_up() {
            entered = true;
            while (!may_go) {
                std::this_thread::yield();
            }
        }
    };
    std::atomic<bool> entered{false};
    std::atomic<bool> may_go{false};
    std::atomic<bool> quiet{false};
    serial_executor exec{[] {}};
    std::thread runner([&] { exec.post([&] { const held_up here{entered, may_go}; }); });
    while (!entered) {
        std::this_thread::yield();
    }
    std::thread waits([&] {
        exec.await_quiet();
        quiet = true;
    });
    for (int looks = 0; looks < 1000; ++looks) {
        std::this_thread::yield();
        EXPECT_FALSE(quiet);
    }
    may_go = true;
    waits.join();
    EXPECT_TRUE(quiet);
    runner.join();
}

}  // namespace dibs::detail
