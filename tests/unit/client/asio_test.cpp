// SPDX-License-Identifier: Apache-2.0
// The calls in Asio's form: callbacks, futures, coroutines, cancellation, and a client that goes
// first.

#include <dibs/asio.hpp>
#include <dibs/dibs.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace dibs {

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;

acquire_options waiting(std::chrono::milliseconds wait) {
    acquire_options options;
    options.wait = wait;
    return options;
}

}  // namespace

TEST(Asio, ACallbackRunsOnItsExecutor) {
    asio::io_context io;
    client through{"memory:"};
    std::optional<lease> granted;
    std::thread::id ran_on;
    async_try_acquire(
        through, "k", {}, asio::bind_executor(io, [&](error_code error, std::optional<lease> got) {
            EXPECT_FALSE(error);
            granted = std::move(got);
            ran_on = std::this_thread::get_id();
        }));
    EXPECT_FALSE(granted) << "never inside the call";
    io.run();
    ASSERT_TRUE(granted);
    EXPECT_TRUE(granted->held());
    EXPECT_EQ(ran_on, std::this_thread::get_id());

    io.restart();
    release_outcome outcome{release_outcome::not_held};
    async_release(std::move(*granted),
                  asio::bind_executor(io, [&](error_code error, release_outcome told) {
                      EXPECT_FALSE(error);
                      outcome = told;
                  }));
    io.run();
    EXPECT_EQ(outcome, release_outcome::released);
    EXPECT_TRUE(through.try_acquire("k"));
}

TEST(Asio, AFutureHasTheLease) {
    client through{"memory:"};
    auto granted = async_try_acquire(through, "k", {}, asio::use_future).get();
    ASSERT_TRUE(granted);
    EXPECT_FALSE(async_try_acquire(through, "k", {}, asio::use_future).get()) << "busy";
    EXPECT_EQ(async_release(std::move(*granted), asio::use_future).get(),
              release_outcome::released);
    EXPECT_EQ(async_release(lease{}, asio::use_future).get(), release_outcome::not_held);
}

TEST(Asio, SeveralKeysComeTogetherOrNotAtAll) {
    asio::io_context io;
    client through{"memory:"};
    auto all = async_acquire_all(through, {"b", "a"}, {}, asio::use_future).get();
    ASSERT_TRUE(all);
    EXPECT_EQ(all->size(), 2U);
    EXPECT_GT(all->fence("a"), 0U);
    EXPECT_FALSE(async_acquire_all(through, {"c", "a"}, {}, asio::use_future).get()) << "busy";
    EXPECT_THROW((void)async_acquire_all(through, {}, {}, asio::use_future).get(),
                 boost::system::system_error);

    asio::cancellation_signal stop;
    error_code ended;
    async_acquire_all(
        through,
        {"a", "c"},
        {.wait = forever},
        asio::bind_cancellation_slot(
            stop.slot(),
            asio::bind_executor(io, [&](error_code error, std::optional<lease_set> got) {
                EXPECT_FALSE(got);
                ended = error;
            })));
    stop.emit(asio::cancellation_type::total);
    io.run();
    EXPECT_TRUE(std::error_code{ended} == condition::cancelled);
    EXPECT_TRUE(through.try_acquire("c")) << "nothing is left behind";
    all.reset();
    EXPECT_TRUE(through.acquire("a", {.wait = std::chrono::minutes{1}}));
}

TEST(Asio, ALeaseGoesFromCoroutineToCoroutineAsText) {
    asio::io_context io;
    client from{"memory:"};
    bool done = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const acquire_options options;
            auto held = co_await async_try_acquire(from, "k", options, asio::use_awaitable);
            const auto fence = held->fence();
            const auto text = co_await async_hand_over(*held, asio::use_awaitable);
            EXPECT_FALSE(held->held());
            EXPECT_EQ(held->release(), release_outcome::not_held);
            EXPECT_FALSE(from.try_acquire("k")) << "it is on its way, not free";

            auto adopted = co_await async_adopt(from, text, options, asio::use_awaitable);
            EXPECT_GT(adopted.fence(), fence);
            held.reset();
            EXPECT_TRUE(adopted.held()) << "the old handle has nothing to do with it any more";

            const auto [again, none] = co_await async_adopt(
                from, text, options, asio::experimental::as_tuple(asio::use_awaitable));
            EXPECT_TRUE(std::error_code{again} == condition::lease_lost) << "once";
            EXPECT_FALSE(none.held());
            EXPECT_TRUE(adopted.held());
            done = true;
        },
        asio::detached);
    io.run();
    EXPECT_TRUE(done);
}

TEST(Asio, WhatCannotBeHandedOverOrAdoptedIsTold) {
    client through{"memory:"};
    const auto why = [](auto&& fails) {
        try {
            static_cast<void>(fails().get());
        } catch (const boost::system::system_error& thrown) {
            return std::error_code{thrown.code()};
        }
        return std::error_code{};
    };
    lease none;
    EXPECT_EQ(why([&] { return async_hand_over(none, asio::use_future); }), condition::lease_lost);
    auto held = *through.try_acquire("k");
    EXPECT_EQ(held.release(), release_outcome::released);
    EXPECT_EQ(why([&] { return async_hand_over(held, asio::use_future); }), condition::lease_lost);
    EXPECT_EQ(why([&] { return async_adopt(through, "dibs1:nonsense", {}, asio::use_future); }),
              condition::invalid_argument);

    auto kept = *through.try_acquire("k");
    const auto text = kept.hand_over();
    acquire_options too_long;
    too_long.ttl = 100h * 24 * 365;
    EXPECT_EQ(why([&] { return async_adopt(through, text, too_long, asio::use_future); }),
              condition::invalid_argument);
    EXPECT_TRUE(async_adopt(through, text, {}, asio::use_future).get().held());
}

TEST(Asio, CoroutinesTakeTurns) {
    asio::io_context io;
    client through{"memory:"};
    int inside = 0;
    int turns = 0;
    std::uint64_t last = 0;
    for (int number = 0; number < 10; ++number) {
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                const auto options = waiting(1min);
                for (int round = 0; round < 10; ++round) {
                    auto held = co_await async_acquire(through, "k", options, asio::use_awaitable);
                    EXPECT_TRUE(held && held->held());
                    EXPECT_GT(held->fence(), last);
                    last = held->fence();
                    EXPECT_EQ(++inside, 1);
                    co_await asio::post(asio::use_awaitable);
                    --inside;
                    ++turns;
                    co_await async_release(std::move(*held), asio::use_awaitable);
                }
            },
            asio::detached);
    }
    io.run();
    EXPECT_EQ(turns, 100);
}

TEST(Asio, ACoroutineGetsAnErrorAsAnException) {
    asio::io_context io;
    client through{"memory:"};
    std::error_code caught;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            try {
                const acquire_options options;
                co_await async_try_acquire(through, "", options, asio::use_awaitable);
            } catch (const boost::system::system_error& thrown) {
                caught = thrown.code();
            }
        },
        asio::detached);
    io.run();
    EXPECT_EQ(caught, make_error_code(errc::invalid_key));
    EXPECT_EQ(caught, condition::invalid_argument);
}

TEST(Asio, OptionsMayBeATemporaryInsideCoAwait) {
    asio::io_context io;
    client through{"memory:"};
    bool over = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            auto held =
                co_await async_acquire(through, "k", {.ttl = 10s, .wait = 1s}, asio::use_awaitable);
            over = held.has_value();
        },
        asio::detached);
    io.run();
    EXPECT_TRUE(over);
}

TEST(Asio, ASlotCancelsAWait) {
    asio::io_context io;
    client through{"memory:"};
    const auto held = through.try_acquire("k");
    asio::cancellation_signal signal;
    std::optional<error_code> told;
    async_acquire(
        through,
        "k",
        waiting(forever),
        asio::bind_cancellation_slot(
            signal.slot(),
            asio::bind_executor(io, [&](error_code error, const std::optional<lease>& got) {
                EXPECT_FALSE(got);
                told = error;
            })));
    asio::post(io, [&] { signal.emit(asio::cancellation_type::terminal); });
    io.run();
    ASSERT_TRUE(told);
    EXPECT_EQ(std::error_code(*told), make_error_code(errc::cancelled));
    signal.emit(asio::cancellation_type::terminal);  // the slot is empty by now
}

TEST(Asio, ATimerWinsAgainstAWait) {
    using namespace asio::experimental::awaitable_operators;
    asio::io_context io;
    client through{"memory:"};
    auto held = through.try_acquire("k");
    bool timer_won = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            asio::steady_timer timer(co_await asio::this_coro::executor, 10ms);
            const auto options = waiting(forever);
            auto first = co_await (async_acquire(through, "k", options, asio::use_awaitable) ||
                                   timer.async_wait(asio::use_awaitable));
            timer_won = first.index() == 1;
        },
        asio::detached);
    io.run();
    EXPECT_TRUE(timer_won);
    (void)held->release();
    EXPECT_TRUE(through.try_acquire("k")) << "the cancelled wait holds nothing";
}

TEST(Asio, AWaitWinsAgainstATimer) {
    using namespace asio::experimental::awaitable_operators;
    asio::io_context io;
    client through{"memory:"};
    bool wait_won = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            asio::steady_timer timer(co_await asio::this_coro::executor, 1min);
            const auto options = waiting(forever);
            auto first = co_await (async_acquire(through, "k", options, asio::use_awaitable) ||
                                   timer.async_wait(asio::use_awaitable));
            wait_won = first.index() == 0 && std::get<0>(first).has_value();
        },
        asio::detached);
    io.run();
    EXPECT_TRUE(wait_won);
}

TEST(Asio, ManyThreadsRunTheContext) {
    asio::thread_pool pool{4};
    client through{"memory:"};
    std::atomic<int> inside{0};
    std::atomic<int> turns{0};
    std::atomic<int> cancelled{0};
    for (int number = 0; number < 12; ++number) {
        // A strand each: one coroutine's cancellation and completion must not run at the same time.
        asio::co_spawn(
            asio::make_strand(pool),
            [&, number]() -> asio::awaitable<void> {
                using namespace asio::experimental::awaitable_operators;
                for (int round = 0; round < 20; ++round) {
                    asio::steady_timer timer(co_await asio::this_coro::executor);
                    timer.expires_after(number % 3 == 0 ? std::chrono::microseconds(200) : 1min);
                    const auto options = waiting(1min);
                    auto first =
                        co_await (async_acquire(through, "k", options, asio::use_awaitable) ||
                                  timer.async_wait(asio::use_awaitable));
                    if (first.index() == 1) {
                        ++cancelled;
                        continue;
                    }
                    auto held = std::move(std::get<0>(first));
                    EXPECT_TRUE(held);
                    EXPECT_EQ(++inside, 1);
                    --inside;
                    ++turns;
                    co_await async_release(std::move(*held), asio::use_awaitable);
                }
            },
            asio::detached);
    }
    pool.join();
    EXPECT_EQ(turns + cancelled, 240);
    EXPECT_GE(turns, 160) << "those without a timer that fires";
    EXPECT_TRUE(through.acquire("k", waiting(10s)));
}

// Two completions come home together; the first handler waits for the second.
TEST(Asio, AHandlerThatBlocksHoldsUpNoOther) {
    asio::io_context io;
    client through{"memory:"};
    std::promise<void> second_ran;
    auto to_wait_for = second_ran.get_future();
    std::atomic<bool> waited{false};
    std::atomic<int> calls{0};
    const auto handler = [&](error_code, std::optional<lease>) {
        if (calls++ == 0) {
            waited = to_wait_for.wait_for(30s) == std::future_status::ready;
        } else {
            second_ran.set_value();
        }
    };
    async_try_acquire(through, "a", {}, asio::bind_executor(io, handler));
    async_try_acquire(through, "b", {}, asio::bind_executor(io, handler));
    std::thread other{[&] { io.run(); }};
    io.run();
    other.join();
    EXPECT_EQ(calls, 2);
    EXPECT_TRUE(waited);
}

// The memory store answers inside the call, so each turn of the loop makes the next one arrive.
TEST(Asio, ACoroutineThatNeverRestsLeavesTurnsToOthers) {
    asio::io_context io;
    client through{"memory:"};
    constexpr int rounds_max = 10'000;
    int rounds = 0;
    bool other_ran = false;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (; rounds < rounds_max && !other_ran; ++rounds) {
                auto held = co_await async_try_acquire(through, "k", {}, asio::use_awaitable);
                if (rounds == 0) {
                    asio::post(io, [&] { other_ran = true; });
                }
                co_await async_release(std::move(*held), asio::use_awaitable);
            }
        },
        asio::detached);
    io.run();
    EXPECT_TRUE(other_ran);
    EXPECT_LT(rounds, rounds_max);
}

TEST(Asio, AStoppedContextRunsNoMoreUntilItIsRestarted) {
    asio::io_context io;
    client through{"memory:"};
    int calls = 0;
    for (int number = 0; number < 3; ++number) {
        async_try_acquire(through,
                          "k" + std::to_string(number),
                          {},
                          asio::bind_executor(io, [&](error_code, std::optional<lease>) {
                              ++calls;
                              io.stop();
                          }));
    }
    for (int turn = 1; turn <= 3; ++turn) {
        io.run();
        EXPECT_EQ(calls, turn);
        io.restart();
    }
    io.run();
    EXPECT_EQ(calls, 3);
}

TEST(Asio, AHandlerThatThrowsTakesNoOtherWithIt) {
    asio::io_context io;
    client through{"memory:"};
    int calls = 0;
    for (int number = 0; number < 3; ++number) {
        async_try_acquire(through,
                          "k" + std::to_string(number),
                          {},
                          asio::bind_executor(io, [&](error_code, std::optional<lease>) {
                              ++calls;
                              throw std::runtime_error("the user's");
                          }));
    }
    for (int number = 0; number < 3; ++number) {
        EXPECT_THROW(io.run(), std::runtime_error);
    }
    EXPECT_EQ(io.run(), 0U);
    EXPECT_EQ(calls, 3);
}

TEST(Asio, AContextThatGoesTakesWhatWaitsForItAlong) {
    client through{"memory:"};
    const auto alive = std::make_shared<int>(0);
    {
        asio::io_context io;
        for (int number = 0; number < 3; ++number) {
            async_try_acquire(
                through,
                "k" + std::to_string(number),
                {},
                asio::bind_executor(io, [alive](error_code, std::optional<lease>) { FAIL(); }));
        }
    }
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_TRUE(through.try_acquire("k0")) << "its lease went with it, and was given back";
}

// The call is started, and answered, on another thread, which is still on its way out of there when
// the handler has run: ThreadSanitizer sees whether it touches the context then.
TEST(Asio, AContextMayGoAsSoonAsItsRunHasReturned) {
    client through{"memory:"};
    for (int round = 0; round < 200; ++round) {
        std::optional<std::thread> caller;
        bool ran = false;
        {
            asio::io_context io;
            std::optional stays{asio::make_work_guard(io)};
            caller.emplace([&] {
                async_try_acquire(through,
                                  "k",
                                  {},
                                  asio::bind_executor(io, [&](error_code, std::optional<lease>) {
                                      ran = true;
                                      stays.reset();
                                  }));
            });
            io.run();
        }
        EXPECT_TRUE(ran);
        caller->join();
    }
}

TEST(Asio, CallsEndWhenTheClientGoes) {
    asio::io_context io;
    auto through = std::make_unique<client>("memory:");
    const auto held = through->try_acquire("k");
    int closed = 0;
    for (int number = 0; number < 4; ++number) {
        async_acquire(
            *through,
            "k",
            waiting(forever),
            asio::bind_executor(io, [&](error_code error, const std::optional<lease>& got) {
                closed += std::error_code(error) == make_error_code(errc::closed) && !got ? 1 : 0;
            }));
    }
    through.reset();
    io.run();
    EXPECT_EQ(closed, 4);
}

TEST(Asio, ALeaseThatNobodyFetchesIsGivenBack) {
    client through{"memory:"};
    {
        asio::io_context io;
        async_try_acquire(
            through, "k", {}, asio::bind_executor(io, [](error_code, const std::optional<lease>&) {
                FAIL() << "the context never runs";
            }));
    }
    EXPECT_TRUE(through.acquire("k", waiting(10s)));
}

}  // namespace dibs
