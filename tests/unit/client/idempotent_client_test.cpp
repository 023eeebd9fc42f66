// SPDX-License-Identifier: Apache-2.0
// Idempotent work as its users get it: real threads and real time, on memory:.
#include <dibs/client.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace dibs {
namespace {

using namespace std::chrono_literals;
using outcome = idempotent_result::outcome;

std::string fresh_store() {
    static std::atomic<int> last{0};
    return "memory:idempotent-client-" + std::to_string(++last);
}

TEST(IdempotentClient, FiftyThreadsOfTwoClientsDoItOnce) {
    const auto url = fresh_store();
    client one{url};
    client two{url};
    std::atomic<int> charges{0};
    std::atomic<int> right{0};
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int at = 0; at < 50; ++at) {
        threads.emplace_back([&, at] {
            const auto told = (at % 2 == 0 ? one : two)
                                  .idempotent("order-4711",
                                              "five euros",
                                              [&] { return "paid " + std::to_string(++charges); },
                                              {.wait = 1min});
            right += told.answer == "paid 1" ? 1 : 0;
            done += told.how == outcome::done ? 1 : 0;
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(charges, 1);
    EXPECT_EQ(right, 50);
    EXPECT_EQ(done, 1);
}

TEST(IdempotentClient, AnotherPayloadIsRefusedAndTheWorkIsNotCalled) {
    client through{fresh_store()};
    EXPECT_EQ(through.idempotent("k", "a", [] { return std::string{"first"}; }).how, outcome::done);
    bool called = false;
    const auto work = [&] {
        called = true;
        return std::string{};
    };
    std::error_code error;
    EXPECT_EQ(through.idempotent("k", "b", work, {}, {}, error).how, outcome::in_flight);
    EXPECT_EQ(error, errc::fingerprint_differs);
    EXPECT_EQ(error, condition::invalid_argument);
    try {
        (void)through.idempotent("k", "b", work);
        FAIL();
    } catch (const dibs::error& fault) {
        EXPECT_EQ(fault.code(), errc::fingerprint_differs);
        EXPECT_NE(std::string(fault.what()).find("k"), std::string::npos);
    }
    EXPECT_FALSE(called);
    // Neither payload nor answer is told to those who list.
    EXPECT_EQ(through.inspect("k")->kept->value.find("first"), std::string::npos);
}

TEST(IdempotentClient, OneWhoDoesNotWaitIsToldThatItIsInFlight) {
    const auto url = fresh_store();
    client one{url};
    client two{url};
    const auto told = one.idempotent("k", "a", [&](const idempotent_call& call) {
        EXPECT_GT(call.fence, 0U);
        EXPECT_EQ(call.attempt, 1U);
        EXPECT_FALSE(call.lost.stop_requested());
        EXPECT_EQ(two.idempotent("k", "a", [] { return std::string{"twice"}; }).how,
                  outcome::in_flight);
        EXPECT_EQ(one.idempotent("k", "a", [] { return std::string{"twice"}; }).how,
                  outcome::in_flight);
        return std::string{"once"};
    });
    EXPECT_EQ(told.how, outcome::done);
    EXPECT_EQ(two.idempotent("k", "a", [] { return std::string{"twice"}; }).answer, "once");
}

TEST(IdempotentClient, WhatTheWorkThrowsComesThroughAndLeavesNothing) {
    client through{fresh_store()};
    EXPECT_THROW((void)through.idempotent(
                     "k", "a", []() -> std::string { throw std::out_of_range("no network"); }),
                 std::out_of_range);
    std::error_code error;
    EXPECT_THROW((void)through.idempotent(
                     "k",
                     "a",
                     []() -> std::string { throw dibs::error(errc::cancelled, "of the work"); },
                     {},
                     {},
                     error),
                 dibs::error);
    EXPECT_FALSE(through.inspect("k").value_or(record{}).kept);
    EXPECT_EQ(through.idempotent("k", "b", [] { return std::string{"done"}; }).how, outcome::done);
}

TEST(IdempotentClient, AFailureThatIsTheAnswerIsThrownAgain) {
    client through{fresh_store()};
    int calls = 0;
    const auto work = [&]() -> std::string {
        ++calls;
        throw kept_failure("card declined");
    };
    for (int time = 0; time < 3; ++time) {
        try {
            (void)through.idempotent("k", "a", work);
            FAIL();
        } catch (const kept_failure& fault) {
            EXPECT_STREQ(fault.what(), "card declined");
        }
    }
    EXPECT_EQ(calls, 1);
}

TEST(IdempotentClient, AtMostOnceKeepsWhateverIsThrown) {
    client through{fresh_store()};
    int calls = 0;
    const auto work = [&]() -> std::string {
        ++calls;
        throw std::runtime_error("the line went dead");
    };
    EXPECT_THROW((void)through.idempotent("k", "a", work, {.at_most_once = true}),
                 std::runtime_error);
    EXPECT_THROW((void)through.idempotent("k", "a", work, {.at_most_once = true}), kept_failure);
    EXPECT_EQ(calls, 1);
}

TEST(IdempotentClient, AnAnswerThatIsTooLongIsAFailureThatIsKept) {
    client through{fresh_store()};
    int calls = 0;
    const auto work = [&] {
        ++calls;
        return std::string(idempotent_answer_bytes_max + 1, 'x');
    };
    EXPECT_THROW((void)through.idempotent("k", "a", work), kept_failure);
    EXPECT_THROW((void)through.idempotent("k", "a", work), kept_failure);
    EXPECT_EQ(calls, 1);
    const std::string longest(idempotent_answer_bytes_max, 'x');
    EXPECT_EQ(through.idempotent("l", "a", [&] { return longest; }).answer, longest);
    EXPECT_EQ(through.idempotent("l", "a", [] { return std::string{}; }).answer, longest);
}

TEST(IdempotentClient, AWaitCanBeStopped) {
    const auto url = fresh_store();
    client one{url};
    client two{url};
    std::stop_source stop;
    const auto told = one.idempotent("k", "a", [&] {
        std::thread stopper([&] { stop.request_stop(); });
        std::error_code error;
        (void)two.idempotent(
            "k", "a", [] { return std::string{}; }, {.wait = forever}, stop.get_token(), error);
        EXPECT_EQ(error, errc::cancelled);
        stopper.join();
        return std::string{"once"};
    });
    EXPECT_EQ(told.answer, "once");
}

TEST(IdempotentClient, WrongOptionsAreRefused) {
    client through{fresh_store()};
    const auto refused = [&](std::string_view key, idempotent_options options) {
        std::error_code error;
        (void)through.idempotent(
            key, "a", [] { return std::string{}; }, options, {}, error);
        return error;
    };
    EXPECT_EQ(refused("", {}), errc::invalid_key);
    EXPECT_EQ(refused("k", {.ttl = 0ms}), errc::invalid_argument);
    EXPECT_EQ(refused("k", {.keep = 0ms}), errc::invalid_argument);
    EXPECT_FALSE(refused("k", {.keep = forever}));
}

}  // namespace
}  // namespace dibs
