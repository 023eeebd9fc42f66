// SPDX-License-Identifier: Apache-2.0
// The public client on the memory store, with real threads and real time.

#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"

#include <dibs/async.hpp>
#include <dibs/dibs.hpp>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dibs {

namespace {

using namespace std::chrono_literals;
using dibs::testing::eventually;

/// A name that no other test uses.
std::string shared_space() {
    static std::atomic<int> last{0};
    return "memory:client-test-" + std::to_string(++last);
}

acquire_options short_lived(std::chrono::milliseconds ttl) {
    acquire_options options;
    options.ttl = ttl;
    options.renew = false;
    return options;
}

class told_by_handler final : public acquire_handler {
  public:
    using callback = std::function<void(std::error_code, std::optional<lease>)>;
    explicit told_by_handler(callback told) : told_{std::move(told)} {}
    void complete(std::error_code error, std::optional<lease> granted) override {
        told_(error, std::move(granted));
    }

  private:
    callback told_;
};

/// The signals that each thread of this process keeps out, as a set of bits.
std::map<std::string, std::uint64_t> blocked_signals() {
    std::map<std::string, std::uint64_t> found;
    for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
        std::ifstream status{task.path() / "status"};
        for (std::string word; status >> word;) {
            if (word == "SigBlk:" && status >> word) {
                found[task.path().filename()] = std::stoull(word, nullptr, 16);
            }
        }
    }
    return found;
}

}  // namespace

TEST(Client, SignalsAreForTheThreadsOfTheApplication) {
    const testing::temporary_folder folder;
    const auto before = blocked_signals();
    client through{"sqlite:" + (folder.path() / "locks.db").string()};
    ASSERT_TRUE(through.try_acquire("k"));
    std::size_t threads = 0;
    for (const auto& [thread, blocked] : blocked_signals()) {
        if (!before.contains(thread)) {
            ++threads;
            EXPECT_NE(blocked & (std::uint64_t{1} << (SIGTERM - 1)), 0U) << "thread " << thread;
        }
    }
    EXPECT_GE(threads, 2U) << "the timers and the store's worker";
}

TEST(Client, TakesAndGivesBack) {
    client through{"memory:"};
    auto held = through.try_acquire("k");
    ASSERT_TRUE(held);
    EXPECT_TRUE(held->held());
    EXPECT_EQ(held->key(), "k");
    EXPECT_GT(held->fence(), 0U);
    EXPECT_GT(held->remaining(), 29s);
    EXPECT_FALSE(through.try_acquire("k")) << "busy is no error";
    EXPECT_EQ(held->release(), release_outcome::released);
    EXPECT_FALSE(held->held());
    EXPECT_FALSE(held->lost().stop_requested()) << "released is not lost";
    EXPECT_EQ(held->release(), release_outcome::not_held);
    EXPECT_THROW((void)held->fence(), error);
    EXPECT_GT(held->last_fence(), 0U);
    EXPECT_TRUE(through.try_acquire("k"));
    EXPECT_TRUE(through.try_acquire("k")) << "the handle before gave it back when it went";
}

TEST(Client, ErrorsAreThrownOrTold) {
    EXPECT_THROW(client{"nonsense:"}, error);
    std::error_code code;
    client unopened{"memory:?what=1", {}, code};
    EXPECT_EQ(code, condition::invalid_argument);
    EXPECT_FALSE(unopened.try_acquire("k", {}, code));
    EXPECT_EQ(code, make_error_code(errc::closed));

    client through{"memory:", {}, code};
    EXPECT_FALSE(code);
    EXPECT_FALSE(through.try_acquire("", {}, code));
    EXPECT_EQ(code, make_error_code(errc::invalid_key));
    acquire_options bad;
    bad.ttl = 10s;
    bad.renew_every = 9s;
    EXPECT_FALSE(through.acquire("k", bad, {}, code));
    EXPECT_EQ(code, make_error_code(errc::invalid_argument));
    try {
        (void)through.try_acquire("k", bad);
        FAIL();
    } catch (const error& thrown) {
        const std::string text = thrown.what();
        EXPECT_NE(text.find("key k"), std::string::npos) << text;
        EXPECT_NE(text.find("9000 ms"), std::string::npos) << text;
        EXPECT_NE(text.find("memory:"), std::string::npos) << text;
    }
    auto fine = through.try_acquire("k", {}, code);
    EXPECT_TRUE(fine);
    EXPECT_FALSE(code) << "the code of the call before is cleared";
    EXPECT_EQ(lease{}.fence(code), 0U);
    EXPECT_EQ(code, make_error_code(errc::not_held));
}

TEST(Client, OneOfManyReleasesFindsItHeld) {
    client through{"memory:"};
    for (int round = 0; round < 50; ++round) {
        auto held = through.try_acquire("k");
        ASSERT_TRUE(held);
        std::atomic<int> released{0};
        std::atomic<bool> go{false};
        std::vector<std::thread> threads;
        for (int number = 0; number < 8; ++number) {
            threads.emplace_back([&] {
                while (!go) {
                    std::this_thread::yield();
                }
                released += held->release() == release_outcome::released ? 1 : 0;
            });
        }
        go = true;
        for (auto& one : threads) {
            one.join();
        }
        ASSERT_EQ(released, 1);
    }
}

TEST(Client, OneAtATimeAmongThreadsAndClients) {
    const auto space = shared_space();
    client clients[] = {client{space}, client{space}};
    int inside = 0;  // no lock but ours
    std::uint64_t last = 0;
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < 6; ++number) {
        threads.emplace_back([&, number] {
            for (int round = 0; round < 40; ++round) {
                acquire_options options;
                options.wait = 1min;
                auto held = clients[number % 2].acquire("k", options);
                ASSERT_TRUE(held);
                EXPECT_EQ(++inside, 1);
                EXPECT_GT(held->fence(), last);
                last = held->fence();
                --inside;
            }
        });
    }
    for (auto& one : threads) {
        one.join();
    }
}

TEST(Client, AHandleMayGoInItsOwnLostCallback) {
    client through{"memory:"};
    auto held = through.try_acquire("k", short_lived(60ms));
    ASSERT_TRUE(held);
    std::atomic<int> told{0};
    const std::stop_callback on_lost(held->lost(), [&] {
        held.reset();
        ++told;
    });
    ASSERT_TRUE(eventually([&] { return told == 1; }));
    EXPECT_TRUE(through.try_acquire("k"));
}

TEST(Client, AClientMayGoInALostCallback) {
    auto through = std::make_unique<client>("memory:");
    auto held = through->try_acquire("k", short_lived(60ms));
    auto other = through->try_acquire("other");
    ASSERT_TRUE(held && other);
    std::atomic<bool> told{false};
    const std::stop_callback on_lost(held->lost(), [&] {
        through.reset();
        told = true;
    });
    ASSERT_TRUE(eventually([&] { return told.load(); }));
    EXPECT_FALSE(other->held());
    EXPECT_TRUE(eventually([&] { return other->lost().stop_requested(); }))
        << "told after the callback";
}

TEST(Client, AClientMayGoInACompletion) {
    auto through = std::make_unique<client>("memory:");
    auto held = through->try_acquire("k");
    std::atomic<bool> told{false};
    auto handler =
        std::make_unique<told_by_handler>([&](std::error_code, const std::optional<lease>&) {
            through.reset();
            told = true;
        });
    start_acquire(*through, "k", {}, std::move(handler));
    ASSERT_TRUE(eventually([&] { return told.load(); }));
    EXPECT_TRUE(eventually([&] { return !held->held(); }));
    EXPECT_EQ(held->release(), release_outcome::not_held);
}

// Forked in the worst moment: while the only thread that the child has is inside the client.
TEST(Client, AForkedChildIsRefusedAndMayLetGo) {
    auto through = std::make_unique<client>("memory:");
    auto held = through->try_acquire("k");
    ASSERT_TRUE(held);
    const auto refused = [&] {
        std::error_code code;
        const auto expected = make_error_code(errc::unsupported);
        const auto is_expected = [&] { return std::exchange(code, {}) == expected; };
        std::error_code told;
        start_acquire(*through,
                      "async",
                      {},
                      std::make_unique<told_by_handler>(
                          [&](std::error_code error, const std::optional<lease>& got) {
                              told = got ? std::error_code{} : error;
                          }));
        bool all = told == expected;
        all = !through->try_acquire("other", {}, code) && is_expected() && all;
        all = !through->acquire("k", {.wait = 1min}, std::stop_source{}.get_token(), code) &&
              is_expected() && all;
        all = through->list("", code).empty() && is_expected() && all;
        all = held->hand_over(code).empty() && is_expected() && all;
        held->renew(10s, code);
        all = is_expected() && all;
        all = held->release(code) == release_outcome::not_held && all;
        held.reset();
        through.reset();
        return all;
    };
    std::atomic<pid_t> child{0};
    auto handler =
        std::make_unique<told_by_handler>([&](std::error_code, const std::optional<lease>&) {
            const pid_t made = ::fork();
            if (made == 0) {
                ::alarm(20);
                ::_exit(refused() ? 0 : 1);
            }
            child = made;
        });
    start_acquire(*through, "another", {}, std::move(handler));
    ASSERT_TRUE(eventually([&] { return child.load() != 0; }));
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child.load());
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(held->held());
    EXPECT_FALSE(through->try_acquire("k")) << "nobody gave it back";
}

TEST(Client, LeasesMayOutliveTheirClient) {
    std::vector<lease> outliving;
    {
        client through{"memory:"};
        for (int number = 0; number < 3; ++number) {
            outliving.push_back(*through.try_acquire("k" + std::to_string(number)));
        }
    }
    for (auto& held : outliving) {
        EXPECT_FALSE(held.held());
        EXPECT_EQ(held.lost_reason(), make_error_code(errc::closed));
        EXPECT_TRUE(held.lost().stop_requested());
    }
    EXPECT_EQ(outliving[0].release(), release_outcome::not_held);
    std::error_code code;
    outliving[1].renew(10s, code);
    EXPECT_TRUE(code);
    EXPECT_EQ(outliving[1].hand_over(code), "");
    EXPECT_TRUE(code);
    outliving.clear();  // the last of them takes the rest of the client with it
}

namespace {

/// A service of an application that is a static object, as many are: it calls when the program ends.
class static_service {
  public:
    ~static_service() {
        // Who uses what the thread has freed writes into one of these.
        std::vector<std::unique_ptr<std::array<char, 24>>> blocks(100);
        for (auto& one : blocks) {
            one = std::make_unique<std::array<char, 24>>();
        }
        const bool well = held && held->release() == release_outcome::released &&
                          through.try_acquire("at the end").has_value() &&
                          through.stats().granted == 2;
        const bool untouched = std::all_of(blocks.begin(), blocks.end(), [](const auto& one) {
            return *one == std::array<char, 24>{};
        });
        if (!well || !untouched) {
            ::_exit(1);
        }
    }

    client through{"memory:"};
    std::optional<lease> held;
};

}  // namespace

TEST(ClientDeathTest, IsUsedByTheDestructorOfAStaticObject) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            static static_service service;
            service.held = service.through.try_acquire("k");
            std::exit(0);
        },
        ::testing::ExitedWithCode(0),
        "");
}

TEST(Client, ManyHandlesThatOutliveTheirClientGoFromManyThreads) {
    constexpr std::size_t threads = 4;
    constexpr std::size_t each = 2'000;
    std::vector<std::vector<lease>> outliving(threads);
    {
        client through{"memory:"};
        for (std::size_t number = 0; number < threads * each; ++number) {
            outliving[number % threads].push_back(
                *through.try_acquire("k" + std::to_string(number)));
        }
    }
    std::vector<std::thread> goers;
    for (auto& mine : outliving) {
        goers.emplace_back([&mine] { mine.clear(); });
    }
    for (auto& one : goers) {
        one.join();
    }
}

TEST(Client, ClientsGoWhileOthersOfTheSameSpaceWork) {
    const auto space = shared_space();
    std::atomic<bool> stop{false};
    std::thread worker([&] {
        client steady{space};
        while (!stop) {
            acquire_options options;
            options.wait = 5s;
            ASSERT_TRUE(steady.acquire("k", options));
        }
    });
    for (int round = 0; round < 50; ++round) {
        client passing{space};
        acquire_options options;
        options.wait = 2ms;
        auto held = passing.acquire("k", options);
    }
    stop = true;
    worker.join();
}

TEST(Client, WaitingCallsEndWhenTheClientGoes) {
    const auto space = shared_space();
    client other{space};
    const auto held = other.try_acquire("k");
    std::atomic<int> closed{0};
    {
        client through{space};
        for (int number = 0; number < 5; ++number) {
            acquire_options options;
            options.wait = forever;
            start_acquire(through,
                          "k",
                          options,
                          std::make_unique<told_by_handler>(
                              [&](std::error_code code, const std::optional<lease>& granted) {
                                  closed +=
                                      code == make_error_code(errc::closed) && !granted ? 1 : 0;
                              }));
        }
    }
    EXPECT_EQ(closed, 5) << "before the destructor returns";
}

TEST(Client, AHandleIsMovedAndAssigned) {
    client through{"memory:"};
    auto first = *through.try_acquire("a");
    auto second = *through.try_acquire("b");
    lease moved{std::move(first)};
    EXPECT_TRUE(moved.held());
    EXPECT_FALSE(first.held());  // NOLINT: empty is a state
    EXPECT_EQ(first.release(), release_outcome::not_held);
    EXPECT_EQ(first.key(), "");
    moved = std::move(second);
    EXPECT_EQ(moved.key(), "b");
    EXPECT_TRUE(through.try_acquire("a")) << "what was assigned over is given back";
    auto& same = moved;
    moved = std::move(same);
    EXPECT_TRUE(moved.held());
    moved = lease{};
    EXPECT_TRUE(through.try_acquire("b"));
}

TEST(Client, AClientIsMovedAndAssigned) {
    client first{"memory:"};
    auto held = first.try_acquire("k");
    client moved{std::move(first)};
    EXPECT_FALSE(moved.try_acquire("k"));
    std::error_code code;
    EXPECT_FALSE(first.try_acquire("k", {}, code));  // NOLINT: empty is a state
    EXPECT_EQ(code, make_error_code(errc::closed));
    moved = client{"memory:"};
    EXPECT_FALSE(held->held()) << "the client that was assigned over is gone";
    EXPECT_TRUE(moved.try_acquire("k"));
}

TEST(Client, AStopTokenEndsAWait) {
    client through{"memory:"};
    const auto held = through.try_acquire("k");
    std::stop_source stop;
    acquire_options options;
    options.wait = forever;
    std::error_code code;
    std::thread waiting(
        [&] { EXPECT_FALSE(through.acquire("k", options, stop.get_token(), code)); });
    std::this_thread::sleep_for(5ms);  // any moment will do: also before the wait has begun
    stop.request_stop();
    waiting.join();
    EXPECT_EQ(code, condition::cancelled);
    EXPECT_FALSE(through.acquire("free", options, stop.get_token(), code)) << "requested before";
    EXPECT_EQ(code, condition::cancelled);
    EXPECT_TRUE(through.try_acquire("free"));
}

TEST(Client, AWaitIsServedByTheReleaseOfAnotherThread) {
    client through{"memory:"};
    auto held = through.try_acquire("k");
    std::thread releasing([&] {
        std::this_thread::sleep_for(5ms);
        EXPECT_EQ(held->release(), release_outcome::released);
    });
    acquire_options options;
    options.wait = 1min;
    const auto next = through.acquire("k", options);
    releasing.join();
    ASSERT_TRUE(next);
    EXPECT_GT(next->fence(), held->last_fence());
}

TEST(Client, ALeaseIsRenewedUntilReleased) {
    client through{"memory:"};
    acquire_options options;
    options.ttl = 120ms;
    const auto held = through.try_acquire("k", options);
    const auto begun = std::chrono::steady_clock::now();
    ASSERT_TRUE(eventually(
        [&] { return !held->held() || std::chrono::steady_clock::now() - begun > 600ms; }));
    if (!held->held()) {
        GTEST_SKIP() << "this machine did not run us for a tenth of a second: "
                     << held->lost_reason().message();
    }
    EXPECT_GE(through.stats().renewed, 3U);
}

TEST(Client, AManualRenewalSetsTheTtl) {
    client through{"memory:"};
    auto held = through.try_acquire("k");
    held->renew(2min);
    EXPECT_GT(held->remaining(), 110s);
    held->renew(10s);
    EXPECT_LT(held->remaining(), 10s);
    EXPECT_GT(held->remaining(), 5s);
    std::error_code code;
    held->renew(0ms, code);
    EXPECT_EQ(code, condition::invalid_argument);
    (void)held->release();
    EXPECT_THROW(held->renew(10s), error);
}

TEST(Client, ALeaseIsHandedOverAsTextAndAdoptedOnce) {
    const auto space = shared_space();
    client from{space};
    client to{space};
    auto held = from.try_acquire("k");
    const auto fence = held->fence();
    const auto text = held->hand_over();
    EXPECT_FALSE(held->held());
    EXPECT_EQ(held->release(), release_outcome::not_held);
    EXPECT_FALSE(from.try_acquire("k")) << "it is on its way, not free";

    auto adopted = to.adopt(text);
    EXPECT_GT(adopted.fence(), fence);
    EXPECT_EQ(adopted.key(), "k");
    EXPECT_THROW((void)from.adopt(text), error) << "once";
    std::error_code code;
    (void)from.adopt(text, {}, code);
    EXPECT_EQ(code, condition::lease_lost);
    (void)from.adopt("dibs1:nonsense", {}, code);
    EXPECT_EQ(code, condition::invalid_argument);
    EXPECT_TRUE(adopted.held());
    EXPECT_EQ(adopted.release(), release_outcome::released);
    EXPECT_GT(from.try_acquire("k")->fence(), adopted.last_fence());
}

TEST(Client, AHandedOverLeaseOutlivesItsClient) {
    const auto space = shared_space();
    client to{space};
    std::string text;
    {
        client from{space};
        text = from.try_acquire("k")->hand_over();
    }
    EXPECT_TRUE(to.adopt(text).held());
}

TEST(Client, ListsAndInspects) {
    const auto space = shared_space();
    client_options mine;
    mine.command("nightly --token abc");
    client here{space, mine};
    client there{space};
    std::vector<lease> held;
    for (int number = 0; number < 1'100; ++number) {
        held.push_back(*here.try_acquire("job/" + std::to_string(number)));
    }
    const auto other = here.try_acquire("other");
    EXPECT_EQ(there.list("job/").size(), 1'100U) << "over several pages";
    EXPECT_EQ(there.list().size(), 1'101U);
    EXPECT_TRUE(there.list("nothing").empty());
    const auto seen = there.inspect("job/7");
    ASSERT_TRUE(seen);
    ASSERT_EQ(seen->holders.size(), 1U);
    EXPECT_EQ(seen->holders[0].fence, held[7].fence());
    EXPECT_EQ(seen->holders[0].command, "nightly --token ***");
    EXPECT_FALSE(seen->holders[0].self);
    EXPECT_TRUE(here.inspect("job/7")->holders[0].self);
    EXPECT_FALSE(there.inspect("job/"));
    EXPECT_THROW((void)there.inspect(""), error);
    EXPECT_EQ(there.store().name, "memory");
    EXPECT_EQ(there.store().location, space);
}

TEST(Client, CountsWhatHappens) {
    client through{"memory:"};
    auto first = through.try_acquire("k");
    EXPECT_FALSE(through.try_acquire("k"));
    acquire_options options;
    options.wait = 1ms;
    EXPECT_FALSE(through.acquire("k", options));
    (void)first->release();
    auto counted = through.stats();
    EXPECT_EQ(counted.granted, 1U);
    EXPECT_EQ(counted.busy, 2U);
    EXPECT_EQ(counted.released, 1U);
    EXPECT_EQ(counted.lost, 0U);
    auto brief = through.try_acquire("brief", short_lived(60ms));
    ASSERT_TRUE(eventually([&] { return through.stats().lost == 1; }));
}

TEST(Client, TellsTheLogSinkOfALoss) {
    std::mutex mutex;
    std::vector<std::string> lines;
    client_options options;
    options.log([&](log_level level, std::string_view text) {
        const std::lock_guard lock(mutex);
        if (level == log_level::warning) {
            lines.emplace_back(text);
        }
    });
    client through{"memory:", options};
    const auto held = through.try_acquire("k", short_lived(60ms));
    ASSERT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
    const std::lock_guard lock(mutex);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_NE(lines[0].find("lease of k lost"), std::string::npos) << lines[0];
}

TEST(Client, ACallMayBeCancelledBeforeItBegins) {
    client through{"memory:"};
    const operation call;
    call.cancel();
    std::optional<std::error_code> told;
    start_acquire(through,
                  "k",
                  {},
                  std::make_unique<told_by_handler>(
                      [&](std::error_code code, const std::optional<lease>&) { told = code; }),
                  call);
    ASSERT_TRUE(told);
    EXPECT_EQ(*told, make_error_code(errc::cancelled));
    EXPECT_TRUE(through.try_acquire("k"));
}

/// The thread that brought the last answer may still be on its way out of the client.
TEST(Client, ManyThatGoRightAfterACallAreLeftByEveryThread) {
    const dibs::testing::temporary_folder here;
    const auto url = "sqlite:" + (here.path() / "locks.db").string();
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < 8; ++number) {
        threads.emplace_back([&] {
            for (int round = 0; round < 25; ++round) {
                client brief{url};
                const auto told = brief.idempotent("request-" + std::to_string(round),
                                                   "payload",
                                                   [&](const idempotent_call&) {
                                                       ++done;
                                                       return std::string("answer");
                                                   },
                                                   {.wait = 30s});
                EXPECT_EQ(told.answer, "answer");
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(done, 25);
}

TEST(Client, CancelsThatRaceWithGrantsLeaveNothingHeld) {
    client through{"memory:"};
    for (int round = 0; round < 300; ++round) {
        const operation call;
        std::atomic<bool> over{false};
        std::thread canceller([&] { call.cancel(); });
        acquire_options options;
        options.wait = 1min;
        start_acquire(through,
                      "k",
                      options,
                      std::make_unique<told_by_handler>(
                          [&](std::error_code code, const std::optional<lease>& granted) {
                              EXPECT_EQ(granted.has_value(), !code);
                              over = true;
                          }),
                      call);
        canceller.join();
        ASSERT_TRUE(eventually([&] { return over.load(); }));
    }
    acquire_options options;
    options.wait = 20s;
    EXPECT_TRUE(through.acquire("k", options));
}

}  // namespace dibs
