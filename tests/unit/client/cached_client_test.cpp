// SPDX-License-Identifier: Apache-2.0
// A cached value as its users get it: real threads and real time, on memory:.
#include <dibs/cached_value.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dibs {
namespace {

using namespace std::chrono_literals;

std::string fresh_store() {
    static std::atomic<int> last{0};
    return "memory:cached-client-" + std::to_string(++last);
}

struct point {
    int x = 0;
    int y = 0;
};

}  // namespace

template <>
struct cached_codec<point> {
    static std::string encode(const point& from) {
        return std::to_string(from.x) + "," + std::to_string(from.y);
    }
    static point decode(std::string_view text) {
        const auto comma = text.find(',');
        return {std::stoi(std::string(text.substr(0, comma))),
                std::stoi(std::string(text.substr(comma + 1)))};
    }
};

namespace {

TEST(CachedClient, FiftyThreadsOfTwoClientsCauseOneFetch) {
    const auto url = fresh_store();
    client one{url};
    client two{url};
    std::atomic<int> fetches{0};
    const auto fetch = [&] {
        std::this_thread::sleep_for(50ms);
        return fetched<>{"token-" + std::to_string(++fetches), 1min};
    };
    cached_value first{one, "oauth", fetch};
    cached_value second{two, "oauth", fetch};
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int at = 0; at < 50; ++at) {
        threads.emplace_back(
            [&, at] { right += (at % 2 == 0 ? first : second).get() == "token-1" ? 1 : 0; });
    }
    for (auto& one_of_them : threads) {
        one_of_them.join();
    }
    EXPECT_EQ(right, 50);
    EXPECT_EQ(fetches, 1);

    // Each of them is told that it is of no use; that is one fetch, too.
    threads.clear();
    right = 0;
    for (int at = 0; at < 50; ++at) {
        threads.emplace_back([&, at] {
            auto& through = at % 2 == 0 ? first : second;
            through.reject("token-1");
            right += through.get() == "token-2" ? 1 : 0;
        });
    }
    for (auto& one_of_them : threads) {
        one_of_them.join();
    }
    EXPECT_EQ(right, 50);
    EXPECT_EQ(fetches, 2);
}

TEST(CachedClient, AFetchIsGivenWhatTheOneBeforeLeft) {
    client through{fresh_store()};
    std::vector<std::string> presented;
    cached_value token{through,
                       "oauth",
                       [&](const fetch_context& with) {
                           presented.emplace_back(with.successor);
                           EXPECT_GT(with.fence, 0U);
                           const auto number = std::to_string(presented.size());
                           return fetched<>{"t" + number, 1h, "c" + number};
                       },
                       cached_options{}.keys(std::string(64, 'a'))};
    EXPECT_EQ(token.get(), "t1");
    token.reject("t1");
    EXPECT_EQ(token.get(), "t2");
    token.reject("t1");
    EXPECT_EQ(token.get(), "t2") << "an old one says nothing of the new one";
    EXPECT_EQ(presented, (std::vector<std::string>{"", "c1"}));
    token.forget();
    EXPECT_EQ(token.get(), "t3");
    EXPECT_EQ(presented.back(), "");
}

TEST(CachedClient, FailuresAreToldWithWhatToDo) {
    client through{fresh_store()};
    cached_value limited{through, "limited", []() -> fetched<> {
                             throw fetch_failure("429 too many requests").retry_after(10min);
                         }};
    std::error_code error;
    EXPECT_FALSE(limited.get({}, {}, error));
    EXPECT_EQ(error, errc::value_unavailable);
    EXPECT_EQ(error, condition::retryable);
    try {
        (void)limited.get();
        ADD_FAILURE() << "no error";
    } catch (const dibs::error& told) {
        const std::string text = told.what();
        EXPECT_NE(text.find("limited"), std::string::npos) << text;
        EXPECT_NE(text.find("429 too many requests"), std::string::npos) << text;
        EXPECT_NE(text.find("min"), std::string::npos) << text;
    }
    cached_value refused{
        through, "refused", []() -> fetched<> { throw fetch_failure("invalid_grant").refused(); }};
    EXPECT_FALSE(refused.get({}, {}, error));
    EXPECT_EQ(error, errc::value_refused);
    cached_value strange{through, "strange", []() -> fetched<> { throw 3; }};
    EXPECT_FALSE(strange.get({}, {}, error));
    EXPECT_EQ(error, errc::value_unavailable);
}

TEST(CachedClient, ACredentialThatMayBeUsedUpIsNotPresentedAgain) {
    using ended = std::function<void()>;
    const std::vector<std::pair<ended, bool>> all{
        {[] { throw fetch_failure("no connection"); }, true},
        {[] { throw fetch_failure("no answer").in_doubt(); }, false},
        {[] { throw std::runtime_error("something broke"); }, false},
        {[] { throw 3; }, false}};
    for (const auto& [fails, is_presented_again] : all) {
        client through{fresh_store()};
        int fetches = 0;
        cached_value rotating{through, "oauth", [&, fails = fails] {
                                  if (++fetches == 2) {
                                      fails();
                                  }
                                  return fetched<>{"t" + std::to_string(fetches), 1h, "c"};
                              }};
        const auto first = rotating.get();
        rotating.reject(first);
        std::error_code error;
        EXPECT_FALSE(rotating.get({}, {}, error));
        EXPECT_EQ(error, is_presented_again ? errc::value_unavailable : errc::value_refused);
        EXPECT_EQ(fetches, 2);
    }
}

TEST(CachedClient, ValuesNeedNotBeText) {
    client through{fresh_store()};
    cached_value where{through, "where", [] { return fetched<point>{{3, 4}, forever}; }};
    const point found = where.get();
    EXPECT_EQ(found.x, 3);
    EXPECT_EQ(found.y, 4);
}

TEST(CachedClient, TimesWithoutEndAndLessThanNothingDoNotOverflow) {
    client through{"memory:"};
    constexpr auto least = std::chrono::milliseconds::min();
    cached_value value{through, "k", [] { return fetched<>{"a", forever}; }};
    EXPECT_EQ(value.get({.wait = forever, .min_life = forever}), "a");
    EXPECT_EQ(value.get({.wait = least, .min_life = least}), "a");
    value.forget(forever);
    cached_value never{through, "l", [] { return fetched<>{"a", least}; }};
    EXPECT_THROW((void)never.get(), error);
}

TEST(CachedClient, WhoWaitsCanStop) {
    client through{fresh_store()};
    std::atomic<bool> let_go{false};
    cached_value slow{through, "slow", [&](const fetch_context& with) {
                          while (!let_go && !with.stop.stop_requested()) {
                              std::this_thread::sleep_for(5ms);
                          }
                          return fetched<>{"late", 1h};
                      }};
    std::error_code error;
    EXPECT_FALSE(slow.get({.wait = 100ms}, {}, error));
    EXPECT_EQ(error, errc::timed_out);
    std::stop_source stop;
    std::thread stopper([&] {
        std::this_thread::sleep_for(50ms);
        stop.request_stop();
    });
    EXPECT_FALSE(slow.get({.wait = 1min}, stop.get_token(), error));
    EXPECT_EQ(error, errc::cancelled);
    stopper.join();
    let_go = true;
    EXPECT_EQ(slow.get(), "late");
}

TEST(CachedClient, ItsEndAsksAFetchToStop) {
    client through{fresh_store()};
    std::atomic<bool> stopped{false};
    {
        cached_value slow{through, "slow", [&](const fetch_context& with) -> fetched<> {
                              while (!with.stop.stop_requested()) {
                                  std::this_thread::sleep_for(5ms);
                              }
                              stopped = true;
                              throw fetch_failure("stopped");
                          }};
        std::error_code error;
        EXPECT_FALSE(slow.get({.wait = 50ms}, {}, error));
    }
    EXPECT_TRUE(stopped);
}

TEST(CachedClient, WrongSettingsAreRefused) {
    client through{fresh_store()};
    const auto fetch = [] { return fetched<>{"v", 1h}; };
    EXPECT_THROW((cached_value{through, "", fetch}), dibs::error);
    EXPECT_THROW((cached_value{through, "k", fetch, cached_options{}.refresh_at(1.5)}),
                 dibs::error);
    EXPECT_THROW((cached_value{through, "k", fetch, cached_options{}.ttl(0ms)}), dibs::error);
    EXPECT_THROW((cached_value{through, "k", fetch, cached_options{}.keys("abc")}), dibs::error);
}

TEST(CachedClient, AnotherKeyOpensNothingAndChangesNothing) {
    const auto url = fresh_store();
    client through{url};
    const std::string old_key(64, '1');
    const std::string new_key(64, '2');
    int fetches = 0;
    const auto fetch = [&] { return fetched<>{"v" + std::to_string(++fetches), 1h}; };
    {
        cached_value sealed{through, "k", fetch, cached_options{}.keys(old_key)};
        EXPECT_EQ(sealed.get(), "v1");
    }
    std::error_code error;
    cached_value other{through, "k", fetch, cached_options{}.keys(new_key)};
    EXPECT_FALSE(other.get({}, {}, error));
    EXPECT_EQ(error, errc::permission_denied);
    cached_value both{
        through, "k", fetch, cached_options{}.keys("# new\n" + new_key + "\n" + old_key)};
    EXPECT_EQ(both.get(), "v1");
    both.reject("v1");
    EXPECT_EQ(both.get(), "v2");
    EXPECT_EQ(other.get(), "v2") << "sealed anew";
    EXPECT_EQ(fetches, 2);
}

}  // namespace
}  // namespace dibs
