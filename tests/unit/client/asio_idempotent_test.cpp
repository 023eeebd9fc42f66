// SPDX-License-Identifier: Apache-2.0
// Idempotent work in Asio's form, and in the callback form that is beneath it: real threads and real
// time, on memory:.

#include <dibs/asio.hpp>
#include <dibs/dibs.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
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
using outcome = idempotent_result::outcome;

std::string fresh_store() {
    static std::atomic<int> last{0};
    return "memory:asio-idempotent-" + std::to_string(++last);
}

asio::awaitable<std::string> slowly(std::chrono::milliseconds time, std::string answer) {
    asio::steady_timer timer{co_await asio::this_coro::executor};
    timer.expires_after(time);
    co_await timer.async_wait(asio::use_awaitable);
    co_return answer;
}

/// What a call told, once `io` has run it to its end.
struct told {
    std::exception_ptr fault;
    idempotent_result result;
    int times = 0;

    [[nodiscard]] auto take() {
        return [this](std::exception_ptr thrown, idempotent_result got) {
            fault = std::move(thrown);
            result = std::move(got);
            ++times;
        };
    }
    [[nodiscard]] std::error_code code() const {
        try {
            if (fault) {
                std::rethrow_exception(fault);
            }
        } catch (const dibs::error& why) {
            return why.code();
        } catch (...) {
            return make_error_code(errc::outcome_unknown);
        }
        return {};
    }
};

/// The callback form, waited for.
struct waiting_claim final : idempotent_handler {
    explicit waiting_claim(std::promise<std::pair<std::error_code, idempotent_claim>>& to)
        : to_(to) {}
    void complete(std::error_code error, idempotent_claim claim) override {
        to_.set_value({error, std::move(claim)});
    }
    std::promise<std::pair<std::error_code, idempotent_claim>>& to_;
};

struct waiting_release final : release_handler {
    explicit waiting_release(std::promise<std::pair<std::error_code, release_outcome>>& to)
        : to_(to) {}
    void complete(std::error_code error, release_outcome how) override {
        to_.set_value({error, how});
    }
    std::promise<std::pair<std::error_code, release_outcome>>& to_;
};

std::pair<std::error_code, idempotent_claim> claim(client& through,
                                                   const std::string& key,
                                                   const std::string& fingerprint,
                                                   const idempotent_options& options = {}) {
    std::promise<std::pair<std::error_code, idempotent_claim>> heard;
    start_idempotent(through, key, fingerprint, options, std::make_unique<waiting_claim>(heard));
    return heard.get_future().get();
}

template <typename Start>
std::pair<std::error_code, release_outcome> ended(Start start) {
    std::promise<std::pair<std::error_code, release_outcome>> heard;
    start(std::make_unique<waiting_release>(heard));
    return heard.get_future().get();
}

}  // namespace

TEST(AsioIdempotent, CoroutinesDoItOnceAndAllGetTheAnswer) {
    asio::io_context io;
    client through{fresh_store()};
    int charges = 0;
    std::vector<told> all(30);
    for (auto& one : all) {
        const auto work = [&](const idempotent_call& with) {
            EXPECT_GT(with.fence, 0U);
            EXPECT_EQ(with.attempt, 1U);
            return slowly(30ms, "paid " + std::to_string(++charges));
        };
        async_idempotent(through,
                         "order",
                         "five euros",
                         work,
                         {.wait = 1min},
                         asio::bind_executor(io, one.take()));
    }
    io.run();
    EXPECT_EQ(charges, 1);
    int done = 0;
    for (const auto& one : all) {
        EXPECT_EQ(one.times, 1);
        EXPECT_FALSE(one.fault) << one.code().message();
        EXPECT_EQ(one.result.answer, "paid 1");
        done += one.result.how == outcome::done ? 1 : 0;
    }
    EXPECT_EQ(done, 1);
}

TEST(AsioIdempotent, WorkMayBeAFunctionAndRunsOnTheExecutor) {
    asio::io_context io;
    client through{fresh_store()};
    std::thread::id ran_on;
    told first;
    const auto work = [&] {
        ran_on = std::this_thread::get_id();
        return std::string{"answer"};
    };
    async_idempotent(through, "k", "f", work, {}, asio::bind_executor(io, first.take()));
    EXPECT_EQ(first.times, 0) << "never inside the call";
    io.run();
    EXPECT_EQ(ran_on, std::this_thread::get_id());
    EXPECT_EQ(first.result.how, outcome::done);
    EXPECT_EQ(first.result.answer, "answer");
    const auto again = through.idempotent("k", "f", [] { return std::string{"another"}; });
    EXPECT_EQ(again.how, outcome::replayed) << "both forms are one";
    EXPECT_EQ(again.answer, "answer");
}

TEST(AsioIdempotent, ACoroutineAwaitsItAndCatchesWhatTheWorkThrows) {
    asio::io_context io;
    client through{fresh_store()};
    std::string seen;
    const auto declined = []() -> std::string { throw kept_failure("card declined"); };
    const auto broken = []() -> std::string { throw std::logic_error("no network"); };
    const auto good = [] { return std::string{"paid"}; };
    auto flow = [&]() -> asio::awaitable<void> {
        for (int at = 0; at < 2; ++at) {
            try {
                co_await async_idempotent(
                    through, "declined", "f", declined, {}, asio::use_awaitable);
            } catch (const kept_failure& fault) {
                seen += fault.what();
                seen += ';';
            }
        }
        try {
            co_await async_idempotent(through, "broken", "f", broken, {}, asio::use_awaitable);
        } catch (const std::logic_error& fault) {
            seen += fault.what();
            seen += ';';
        }
        const auto then =
            co_await async_idempotent(through, "broken", "f", good, {}, asio::use_awaitable);
        seen += then.answer;
    };
    auto ended = asio::co_spawn(io, flow(), asio::use_future);
    io.run();
    ended.get();
    EXPECT_EQ(seen, "card declined;card declined;no network;paid");
}

TEST(AsioIdempotent, WhatCannotBeClaimedIsToldAsOurError) {
    client through{fresh_store()};
    const auto work = [] { return std::string{"answer"}; };
    EXPECT_EQ(async_idempotent(through, "k", "f", work, {}, asio::use_future).get().answer,
              "answer");
    try {
        (void)async_idempotent(through, "k", "other", work, {}, asio::use_future).get();
        FAIL() << "another payload under the same key";
    } catch (const dibs::error& fault) {
        EXPECT_EQ(fault.code(), errc::fingerprint_differs);
        EXPECT_NE(std::string{fault.what()}.find("k"), std::string::npos);
    }
    EXPECT_THROW((void)async_idempotent(through, "", "f", work, {}, asio::use_future).get(),
                 dibs::error);
    EXPECT_THROW(
        (void)async_idempotent(through, "k2", "f", work, {.keep = 1ms}, asio::use_future).get(),
        dibs::error);
}

TEST(AsioIdempotent, WhoeverIsAtItIsToldAtOnceWithoutWaiting) {
    client through{fresh_store()};
    auto [error, mine] = claim(through, "k", "f");
    ASSERT_FALSE(error) << error.message();
    ASSERT_EQ(mine.how, idempotent_claim::outcome::to_do);
    const auto work = [] { return std::string{"never"}; };
    EXPECT_EQ(async_idempotent(through, "k", "f", work, {}, asio::use_future).get().how,
              outcome::in_flight);
    EXPECT_EQ(claim(through, "k", "f").second.how, idempotent_claim::outcome::in_flight);
    const auto kept = ended(
        [&](auto handler) { start_finish(std::move(mine.turn), "answer", std::move(handler)); });
    EXPECT_FALSE(kept.first) << kept.first.message();
    EXPECT_EQ(kept.second, release_outcome::released);
    EXPECT_FALSE(mine.turn);
    const auto again = claim(through, "k", "f").second;
    EXPECT_EQ(again.how, idempotent_claim::outcome::replayed);
    EXPECT_EQ(again.answer, "answer");
}

TEST(AsioIdempotent, AWaitIsCancelledAndTheWorkIsNotCalled) {
    asio::io_context io;
    client through{fresh_store()};
    auto mine = claim(through, "k", "f").second;
    ASSERT_TRUE(mine.turn);
    asio::cancellation_signal stop;
    bool called = false;
    told heard;
    const auto work = [&] {
        called = true;
        return std::string{};
    };
    async_idempotent(
        through,
        "k",
        "f",
        work,
        {.wait = forever},
        asio::bind_cancellation_slot(stop.slot(), asio::bind_executor(io, heard.take())));
    asio::steady_timer timer{io, 50ms};
    timer.async_wait([&](auto) { stop.emit(asio::cancellation_type::total); });
    io.run();
    EXPECT_EQ(heard.code(), condition::cancelled);
    EXPECT_FALSE(called);
    EXPECT_EQ(heard.times, 1);
}

TEST(AsioIdempotent, ACancelledCoroutineIsGivenUpAndDoneByTheNext) {
    asio::io_context io;
    client through{fresh_store()};
    asio::cancellation_signal stop;
    told heard;
    const auto work = [](const idempotent_call&) { return slowly(1min, "never"); };
    async_idempotent(
        through,
        "k",
        "f",
        work,
        {},
        asio::bind_cancellation_slot(stop.slot(), asio::bind_executor(io, heard.take())));
    asio::steady_timer timer{io, 50ms};
    timer.async_wait([&](auto) { stop.emit(asio::cancellation_type::total); });
    io.run();
    EXPECT_TRUE(heard.fault);
    const auto next = through.idempotent(
        "k", "f", [](const idempotent_call& with) { return std::to_string(with.attempt); });
    EXPECT_EQ(next.how, outcome::done);
    EXPECT_EQ(next.answer, "1") << "nothing is kept of the first one";
}

TEST(AsioIdempotent, WorkThatIsDoneIsKeptAlthoughItsCallerHasCancelled) {
    asio::io_context io;
    client through{fresh_store()};
    asio::cancellation_signal stop;
    told heard;
    const auto work = [&] {
        stop.emit(asio::cancellation_type::total);
        return std::string{"paid"};
    };
    async_idempotent(
        through,
        "k",
        "f",
        work,
        {},
        asio::bind_cancellation_slot(stop.slot(), asio::bind_executor(io, heard.take())));
    io.run();
    EXPECT_FALSE(heard.fault) << heard.code().message();
    EXPECT_EQ(heard.result.answer, "paid");
    EXPECT_EQ(claim(through, "k", "f").second.how, idempotent_claim::outcome::replayed);
}

TEST(AsioIdempotent, ATurnThatIsDroppedCountsAsBegun) {
    client through{fresh_store()};
    for (const bool at_most_once : {false, true}) {
        const std::string key = at_most_once ? "once" : "again";
        { ASSERT_TRUE(claim(through, key, "f", {.at_most_once = at_most_once}).second.turn); }
        std::error_code error;
        std::optional<idempotent_claim> next;
        for (int at = 0; at < 200; ++at) {  // it is given back in the background
            auto told = claim(through, key, "f", {.at_most_once = at_most_once});
            error = told.first;
            next = std::move(told.second);
            if (error || next->how != idempotent_claim::outcome::in_flight) {
                break;
            }
            std::this_thread::sleep_for(10ms);
        }
        if (at_most_once) {
            EXPECT_EQ(error, errc::work_in_doubt);
        } else {
            ASSERT_FALSE(error) << error.message();
            ASSERT_TRUE(next->turn);
            EXPECT_EQ(next->turn.call().attempt, 2U);
        }
    }
}

TEST(AsioIdempotent, AFailureIsKeptAndOneThatIsGivenUpIsNot) {
    client through{fresh_store()};
    auto first = claim(through, "k", "f").second;
    EXPECT_EQ(ended([&](auto handler) {
                  start_give_up(std::move(first.turn), std::move(handler));
              }).second,
              release_outcome::released);
    auto second = claim(through, "k", "f").second;
    ASSERT_TRUE(second.turn);
    EXPECT_EQ(second.turn.call().attempt, 1U);
    EXPECT_EQ(ended([&](auto handler) {
                  start_fail(std::move(second.turn), "card declined", std::move(handler));
              }).second,
              release_outcome::released);
    const auto third = claim(through, "k", "f").second;
    EXPECT_EQ(third.how, idempotent_claim::outcome::failed);
    EXPECT_EQ(third.answer, "card declined");
    EXPECT_EQ(ended([&](auto handler) {
                  start_finish(idempotent_turn{}, "nothing", std::move(handler));
              }).second,
              release_outcome::not_held);
}

TEST(AsioIdempotent, AnAnswerThatIsTooLongIsAFailure) {
    client through{fresh_store()};
    const auto work = [] { return std::string(idempotent_answer_bytes_max + 1, 'x'); };
    EXPECT_THROW((void)async_idempotent(through, "k", "f", work, {}, asio::use_future).get(),
                 dibs::error);
    EXPECT_EQ(claim(through, "k", "f").second.how, idempotent_claim::outcome::failed);
}

TEST(AsioIdempotent, CallsEndWhenTheClientGoes) {
    asio::io_context io;
    told heard;
    std::optional<client> through{fresh_store()};
    auto mine = claim(*through, "k", "f").second;
    ASSERT_TRUE(mine.turn);
    const auto work = [] { return std::string{}; };
    async_idempotent(
        *through, "k", "f", work, {.wait = forever}, asio::bind_executor(io, heard.take()));
    asio::steady_timer timer{io, 50ms};
    timer.async_wait([&](auto) { through.reset(); });
    io.run();
    EXPECT_EQ(heard.code(), errc::closed);
    const auto late = ended(
        [&](auto handler) { start_finish(std::move(mine.turn), "answer", std::move(handler)); });
    EXPECT_EQ(late.first, errc::closed);
}

}  // namespace dibs
