// SPDX-License-Identifier: Apache-2.0
// What others reported about locks on Redis (docs/internals/cases.md), on real servers. The number
// of the case stands above each test.

#include "redis_command.hpp"
#include "shifted_clock.hpp"
#include "support/places.hpp"

#include <dibs/dibs.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace dibs::testing {
namespace {

using namespace std::chrono_literals;

constexpr const char* key = "k";

struct RedisReported : redis_command_test {
    [[nodiscard]] std::vector<beat> beats() const { return read_beats(here.file("beats")); }
};

/// Until its end each byte is late by so much, in both directions.
struct slow_line {
    slow_line(relay& on, relay::clock::duration delay) : line{on} {
        line.requests({.delay = delay});
        line.replies({.delay = delay});
    }
    slow_line(const slow_line&) = delete;
    slow_line& operator=(const slow_line&) = delete;
    ~slow_line() { line.heal(); }
    relay& line;
};

}  // namespace

// 008
TEST_F(RedisReported, ACutOffHolderKeepsNobodysKeyAlive) {
    client cut_off{line.url()};
    const auto lost = cut_off.try_acquire(key, {.ttl = 1s, .renew_every = 100ms});
    ASSERT_TRUE(lost);
    line.requests({.delay = 2s});  // its renewals arrive late
    ASSERT_TRUE(eventually([&] { return server.ask({"EXISTS", key}) == "0"; }));
    client next{server.url()};
    const auto lease = next.try_acquire(key, {.ttl = 2s, .renew = false});
    ASSERT_TRUE(lease);
    line.heal();
    // As its process was killed: nobody renews, and the key goes when the two seconds are over.
    ASSERT_TRUE(eventually([&] { return server.ask({"EXISTS", key}) == "0"; }, 5s));
    EXPECT_TRUE(lost->lost().stop_requested());
}

// 008: on the wire
TEST_F(RedisReported, NoCommandTouchesALockOutsideTheScript) {
    launch how;
    how.program = "/usr/bin/redis-cli";
    how.words = {"-s", server.socket(), "monitor"};
    process monitor{how};
    ASSERT_TRUE(eventually([&] { return monitor.out().starts_with("OK"); })) << monitor.err();
    {
        client one{server.url()};
        client two{server.url()};
        auto lease = one.try_acquire(key, {.ttl = 1s, .renew_every = 100ms});
        ASSERT_TRUE(lease);
        std::optional<dibs::lease> next;
        std::jthread waiter{[&] { next = two.acquire(key, {.wait = 1min}); }};
        const auto fence = lease->fence();
        lease->renew(2s);
        EXPECT_EQ(lease->release(), release_outcome::released);
        waiter.join();
        ASSERT_TRUE(next);
        EXPECT_GT(next->fence(), fence);
        EXPECT_TRUE(two.revoke(key, next->fence()));
        one.hold(key, 1h, "upgrade");
        one.lift_hold(key);
        EXPECT_FALSE(one.list().empty());
    }
    ASSERT_EQ(server.ask({"SET", "the-end", "1"}), "OK");
    ASSERT_TRUE(eventually([&] { return monitor.out().find("the-end") != std::string::npos; }));
    int by_script = 0;
    std::istringstream lines{monitor.out()};
    for (std::string one; std::getline(lines, one);) {
        by_script += one.find(" lua] \"SET\" \"k\"") != std::string::npos ? 1 : 0;
        for (const char* verb :
             {"SET", "DEL", "UNLINK", "PEXPIRE", "PEXPIREAT", "EXPIRE", "PERSIST"}) {
            const auto said = "] \"" + std::string{verb} + "\" \"k\"";
            if (one.find(said) != std::string::npos) {
                EXPECT_NE(one.find(" lua] "), std::string::npos) << one;
            }
        }
    }
    EXPECT_GE(by_script, 2) << "what is looked for is not what is written: " << monitor.out();
}

// 005
TEST_F(RedisReported, AReleaseAfterTheExpiryIsNoSuccess) {
    client one{server.url()};
    auto gone = one.try_acquire(key, {.ttl = 100ms, .renew = false});
    ASSERT_TRUE(gone);
    ASSERT_TRUE(eventually([&] { return server.ask({"EXISTS", key}) == "0"; }));
    EXPECT_EQ(gone->release(), release_outcome::not_held);
    auto late = one.try_acquire(key, {.ttl = 100ms, .renew = false});
    ASSERT_TRUE(late);
    client two{server.url()};
    const auto next = two.acquire(key, {.ttl = 1h, .wait = 1min});
    ASSERT_TRUE(next);
    EXPECT_EQ(late->release(), release_outcome::not_held);
    EXPECT_TRUE(next->held());
    EXPECT_GT(std::stol(server.ask({"PTTL", key})), 3'000'000);
}

// 009
TEST_F(RedisReported, ReleasesThatRaceWithAnExpiryFreeNobodyElsesKey) {
    client one{server.url()};
    client two{server.url()};
    std::atomic<int> taken_away = 0;
    for (int round = 0; round < 100; ++round) {
        auto late = one.try_acquire(key, {.ttl = 50ms, .renew = false});
        ASSERT_TRUE(late);
        std::jthread racing{[&] {
            std::this_thread::sleep_until(std::chrono::steady_clock::now() + 47ms +
                                          std::chrono::microseconds{60 * round});
            static_cast<void>(late->release());
        }};
        auto next = two.acquire(key, {.ttl = 1h, .wait = 1min});
        ASSERT_TRUE(next);
        racing.join();
        taken_away += next->release() == release_outcome::released ? 0 : 1;
    }
    EXPECT_EQ(taken_away, 0);
}

// 028
TEST_F(RedisReported, ARetryFindsItsOwnGrantWhoseAnswerWasLost) {
    client one{line.url()};
    const auto other = one.try_acquire("other");  // kept: its release would be in the way
    ASSERT_TRUE(other);
    line.requests({.mutes = "EVALSHA"});
    std::optional<dibs::lease> got;
    std::jthread caller{
        [&] { got = one.acquire(key, {.ttl = 10min, .wait = 1min, .timeout = 500ms}); }};
    ASSERT_TRUE(eventually([&] { return server.ask({"EXISTS", key}) == "1"; }));
    const auto granted = server.ask({"GET", key});
    line.heal();
    caller.join();
    ASSERT_TRUE(got) << "its own lock stood in its way";
    EXPECT_EQ(server.ask({"GET", key}), granted) << "one grant, one fence";
    EXPECT_NE(granted.find(std::to_string(got->fence())), std::string::npos);
    EXPECT_LE(got->remaining(), 10min);
}

// 032
TEST_F(RedisReported, CancelledAcquiresLeaveNothingBehind) {
    client one{server.url()};
    client two{server.url()};
    for (int round = 0; round < 400; ++round) {
        const bool contended = round % 2 == 1;
        std::optional<dibs::lease> holder;
        if (contended) {
            holder = two.try_acquire(key, {.ttl = 1h});
            ASSERT_TRUE(holder);
        }
        std::stop_source stop;
        std::error_code error;
        std::optional<dibs::lease> got;
        std::jthread caller{
            [&] { got = one.acquire(key, {.ttl = 1h, .wait = 1min}, stop.get_token(), error); }};
        std::this_thread::sleep_for(std::chrono::microseconds{(round * 37) % 3'000});
        stop.request_stop();
        caller.join();
        EXPECT_TRUE(got.has_value() != (error == errc::cancelled)) << error.message();
        EXPECT_FALSE(got && contended);
        holder.reset();
        got.reset();
        ASSERT_TRUE(eventually([&] { return server.ask({"EXISTS", key}) == "0"; })) << round;
    }
    EXPECT_TRUE(eventually([&] {
        return server.ask({"PUBSUB", "NUMSUB", "{k}:~dibs"}) == "[{k}:~dibs 0]";
    }));
}

// 042
TEST_F(RedisReported, TheAnswerToACancelledCallIsNobodyElses) {
    client one{line.url()};
    const slow_line slow{line, 5ms};
    std::atomic<bool> over{false};
    std::atomic<int> checked{0};
    std::vector<std::jthread> others;
    for (int number = 0; number < 4; ++number) {
        others.emplace_back([&, mine = "w" + std::to_string(number)] {
            std::uint64_t before = 0;
            while (!over || checked < 40) {
                auto lease = one.try_acquire(mine, {.ttl = 1h, .renew = false});
                ASSERT_TRUE(lease) << "nobody else asks for it";
                ASSERT_GT(lease->fence(), before);
                before = lease->fence();
                ASSERT_NE(server.ask({"GET", mine}).find(std::to_string(before)),
                          std::string::npos);
                std::error_code refused;
                lease->renew(2h, refused);
                ASSERT_FALSE(refused) << refused.message();
                ASSERT_EQ(lease->release(), release_outcome::released);
                ++checked;
            }
        });
    }
    for (int round = 0; round < 300; ++round) {
        std::stop_source stop;
        std::error_code error;
        std::optional<dibs::lease> got;
        std::jthread caller{
            [&] { got = one.acquire(key, {.ttl = 1h, .wait = 1min}, stop.get_token(), error); }};
        std::this_thread::sleep_for(std::chrono::microseconds{(round * 137) % 15'000});
        stop.request_stop();
        caller.join();
        ASSERT_TRUE(got.has_value() != (error == errc::cancelled)) << error.message();
    }
    over = true;
}

// 036
TEST_F(RedisReported, AClaimWhoseAnswerWasLostBlocksNoRetry) {
    // The server has the script, so that the first thing after the greeting is executed.
    ASSERT_EQ(process(dibs_at(server.url(), {"run", "other", "--", "true"})).wait().status, 0);
    line.requests({.mutes = "EVALSHA"});
    const std::vector<std::string> words{
        "once", "job", "--slot", "s", "--ttl", "3s", "--", "touch", here.file("ran")};
    const auto unanswered = process(dibs_at(line.url(), words)).wait();
    EXPECT_EQ(unanswered.status, 69) << unanswered.err;
    EXPECT_FALSE(exists(here.file("ran"))) << "an error is not \"nobody has it\"";
    auto waiting = words;
    waiting.insert(waiting.begin() + 2, {"--wait", "1m"});
    const auto retried = process(dibs_at(server.url(), waiting)).wait();
    EXPECT_EQ(retried.status, 0) << retried.err;
    EXPECT_TRUE(exists(here.file("ran")));
}

// 064
TEST_F(RedisReported, AScriptThatIsForgottenAllTheTimeIsNoFailure) {
    std::jthread flushing{[&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            server.ask({"SCRIPT", "FLUSH"});
            std::this_thread::sleep_for(1ms);
        }
    }};
    client one{server.url()};
    for (int round = 0; round < 100; ++round) {
        auto lease = one.try_acquire(key, {.ttl = 1h});
        ASSERT_TRUE(lease);
        lease->renew(1h);
        EXPECT_EQ(lease->release(), release_outcome::released);
        EXPECT_EQ(server.ask({"EXISTS", key}), "0");
    }
}

// 066
TEST_F(RedisReported, AFailoverThatForgetsALeaseIsToldAndHarmsNobody) {
    redis_server replica{{"--replicaof", "127.0.0.1", std::to_string(line.port())}};
    ASSERT_TRUE(eventually([&] {
        return replica.ask({"INFO", "replication"}).find("master_link_status:up") !=
               std::string::npos;
    })) << replica.log();
    relay way{server.socket()};
    client one{way.url()};
    line.swallow_all();  // nothing is copied any more
    auto lost = one.try_acquire(key, {.ttl = 10s, .renew_every = 300ms});
    ASSERT_TRUE(lost);
    const auto fence = lost->fence();
    server.kill();
    ASSERT_EQ(replica.ask({"REPLICAOF", "NO", "ONE"}), "OK");
    client two{replica.url()};
    const auto next = two.try_acquire(key, {.ttl = 1h});
    ASSERT_TRUE(next)
        << "documented: the lease was not copied, so there are two holders for a while";
    EXPECT_GT(next->fence(), fence) << "and the fence keeps the first one's writes out";
    const auto theirs = replica.ask({"GET", key});
    way.lead_to(replica.socket());
    way.cut();
    ASSERT_TRUE(eventually([&] { return lost->lost().stop_requested(); }, 8s))
        << "by its next renewal, before its deadline";
    EXPECT_EQ(lost->lost_reason(), errc::lease_taken);
    EXPECT_EQ(replica.ask({"GET", key}), theirs);
    EXPECT_EQ(lost->release(), release_outcome::not_held);
    EXPECT_EQ(replica.ask({"GET", key}), theirs);
}

// 068
TEST_F(RedisReported, AnEvictedLeaseIsToldAndNotMadeAgain) {
    for (const std::string policy : {"allkeys-lru", "volatile-lru", "volatile-ttl"}) {
        ASSERT_EQ(server.ask({"FLUSHALL"}), "OK");
        ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory-policy", policy}), "OK");
        client one{server.url()};
        std::vector<dibs::lease> held;
        for (int at = 0; at < 50; ++at) {
            auto lease = one.try_acquire("lock" + std::to_string(at), {.ttl = 10s, .renew = false});
            ASSERT_TRUE(lease);
            held.push_back(std::move(*lease));
        }
        // Full of other things, and not one byte more.
        ASSERT_EQ(server.ask({"DEBUG", "POPULATE", "2000", "filler", "1000"}), "OK");
        ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "1500000"}), "OK");
        const auto is_gone = [&](std::size_t at) {
            return server.ask({"EXISTS", "lock" + std::to_string(at)}) == "0";
        };
        ASSERT_TRUE(eventually([&] {
            server.ask({"SET", "more", std::string(1'000, 'x')});
            for (std::size_t at = 0; at < held.size(); ++at) {
                if (is_gone(at)) {
                    return true;
                }
            }
            return false;
        })) << policy;
        for (std::size_t at = 0; at < held.size(); ++at) {
            if (!is_gone(at)) {
                continue;
            }
            std::error_code error;
            held[at].renew(10s, error);
            EXPECT_EQ(error, condition::lease_lost) << error.message();
            EXPECT_TRUE(is_gone(at)) << "it was made again";
            EXPECT_FALSE(held[at].held());
        }
        ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "0"}), "OK");
    }
}

// What passes within seconds is waited for also by who does not wait for the lock.
TEST(RedisReportedServer, AServerThatIsBusyForAMomentIsAskedAgain) {
    redis_server server{{"--busy-reply-threshold", "20"}};
    client one{server.url()};
    ASSERT_TRUE(one.try_acquire("before"));
    std::jthread script{[&] { server.ask({"EVAL", "for i = 1, 2e8 do end", "0"}); }};
    ASSERT_TRUE(eventually([&] { return server.ask({"GET", "a"}).starts_with("BUSY"); }));
    std::error_code error;
    EXPECT_TRUE(one.try_acquire(key, {.timeout = 60s}, error)) << error.message();
}

// 070
TEST(RedisReportedServer, AServerThatCannotSaveRefusesAndIsFoundWellAgain) {
    redis_server server{{"--enable-protected-configs", "yes", "--save", "3600 1000000"}};
    const folder elsewhere;
    client one{server.url()};
    auto lease = one.try_acquire(key, {.ttl = 1h});
    ASSERT_TRUE(lease);
    ASSERT_EQ(::system(("mkdir " + elsewhere.file("data")).c_str()), 0);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "dir", elsewhere.file("data")}), "OK");
    ASSERT_EQ(::system(("rmdir " + elsewhere.file("data")).c_str()), 0);
    const auto saved = [&](const char* how) {
        server.ask({"BGSAVE"});
        return eventually([&] {
            return server.ask({"INFO", "persistence"}).find(how) != std::string::npos;
        });
    };
    ASSERT_TRUE(saved("rdb_last_bgsave_status:err"));
    std::error_code error;
    EXPECT_FALSE(one.try_acquire("other", {}, error));
    EXPECT_EQ(error, errc::store_refused) << error.message();
    EXPECT_EQ(error, condition::retryable) << "surely not executed";
    lease->renew(1h, error);
    EXPECT_EQ(error, errc::store_refused) << error.message();
    EXPECT_TRUE(lease->held()) << "its time is not over";
    static_cast<void>(lease->release(error));
    EXPECT_EQ(error, errc::store_refused) << error.message();
    ASSERT_EQ(server.ask({"CONFIG", "SET", "dir", elsewhere.path()}), "OK");
    ASSERT_TRUE(saved("rdb_last_bgsave_status:ok"));
    EXPECT_TRUE(eventually([&] {
        return server.ask({"EXISTS", key}) == "0";
    })) << "the release goes on in the background";
}

// 073
TEST(RedisReportedServer, AClusterIsRefusedInsteadOfHalfUsed) {
    redis_server server{{"--cluster-enabled", "yes"}};
    std::error_code error;
    client one{server.url(), {}, error};
    EXPECT_EQ(error, errc::unsupported) << error.message();
}

// 073, 095, 103: names with braces, of the largest size, and with all that patterns mean
TEST_F(RedisReported, NamesOfAnyKindAreDistinctListedAndWokenFor) {
    const std::vector<std::string> names{"a",
                                         "{a}",
                                         "{a}b",
                                         "a{b}c",
                                         "}{",
                                         "{}",
                                         "{}a",
                                         "{{a}}",
                                         "a*",
                                         "a?",
                                         "[ab]",
                                         "a\\",
                                         "a b",
                                         "ä",
                                         "$(x)",
                                         "'\"",
                                         "--help",
                                         std::string(1'024, 'n')};
    client one{server.url()};
    client two{server.url()};
    std::vector<dibs::lease> held;
    for (const auto& name : names) {
        auto lease = one.try_acquire(name, {.ttl = 1h});
        ASSERT_TRUE(lease) << name;
        held.push_back(std::move(*lease));
    }
    EXPECT_EQ(one.list().size(), names.size());
    for (std::size_t at = 0; at < names.size(); ++at) {
        EXPECT_EQ(one.list(names[at]).front().key, names[at]);
        EXPECT_FALSE(two.try_acquire(names[at]));
        std::optional<dibs::lease> next;
        std::jthread waiter{[&] { next = two.acquire(names[at], {.ttl = 1h, .wait = 1min}); }};
        ASSERT_TRUE(eventually([&] { return one.inspect(names[at])->waiters == 1; })) << names[at];
        EXPECT_EQ(held[at].release(), release_outcome::released);
        waiter.join();
        EXPECT_TRUE(next) << names[at];
    }
}

// 077: a lock in our form that somebody else left, without a ttl
TEST_F(RedisReported, ALeftLockOfOursWithoutATtlIsShownAndCanBeBroken) {
    {
        client one{server.url()};
        ASSERT_TRUE(one.try_acquire(key, {.ttl = 1h}));
        auto lease = one.try_acquire(key, {.ttl = 1h, .detached = true});
        ASSERT_TRUE(lease);
        const auto left = server.ask({"GET", key});
        ASSERT_EQ(lease->release(), release_outcome::released);
        ASSERT_EQ(server.ask({"SET", key, left}), "OK");
        ASSERT_EQ(server.ask({"DEL", "{k}:~dibs"}), "1");
    }
    const auto shown = process(dibs_at(server.url(), {"show", key})).wait();
    EXPECT_NE(shown.out.find("for ever"), std::string::npos) << shown.out;
    client one{server.url()};
    EXPECT_FALSE(one.try_acquire(key));
    const auto seen = one.inspect(key);
    ASSERT_TRUE(seen && !seen->holders.empty());
    EXPECT_TRUE(one.revoke(key, seen->holders[0].fence));
    EXPECT_TRUE(one.try_acquire(key));
}

// 106
TEST_F(RedisReported, ClientsThatDisagreeByMinutesExcludeEachOther) {
    ASSERT_TRUE(exists(tests::places::clock_shim)) << "their clocks would all be right";
    const shifted_clock behind{here, "behind"};
    const shifted_clock ahead{here, "ahead"};
    behind.shift(-180);
    ahead.shift(180);
    const std::vector<std::string> work{"run",
                                        key,
                                        "--ttl",
                                        "1s",
                                        "--wait",
                                        "1m",
                                        "--",
                                        child_program(),
                                        "beat",
                                        here.file("beats")};
    process first{behind.seen_by(dibs_at(server.url(), work))};
    ASSERT_TRUE(eventually([&] { return !beats().empty(); })) << first.err();
    process second{ahead.seen_by(dibs_at(server.url(), work))};
    const auto fence = beats().front().fence;
    // Renewed for three times its ttl, by the server's clock.
    const auto until = boottime_ns() + 3'000'000'000;
    ASSERT_TRUE(eventually([&] { return boottime_ns() > until; }));
    EXPECT_EQ(beats().back().fence, fence);
    first.signal(SIGTERM);
    static_cast<void>(first.wait());
    ASSERT_TRUE(eventually([&] { return beats().back().fence != fence; })) << second.err();
    second.signal(SIGTERM);
    static_cast<void>(second.wait());
    EXPECT_EQ(overlap_in(beats()), "");
}

}  // namespace dibs::testing
