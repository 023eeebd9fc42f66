// SPDX-License-Identifier: Apache-2.0
// Goal: waiting in the order of arrival is fair among processes on a real server, and a process that
// is killed in the queue holds it up for no longer than its tickets live. Method: processes of the
// test's own, several callers in each, that count in memory which they share.

#include "support/redis_server.hpp"

#include <dibs/dibs.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;

constexpr unsigned processes = 4;
constexpr unsigned callers_each = 2;
constexpr unsigned callers = processes * callers_each;
constexpr unsigned grants_wanted = 480;

/// What all processes see.
struct tally {
    std::atomic<unsigned> ready{0};
    std::atomic<unsigned> holding{0};
    std::atomic<unsigned> overlaps{0};
    std::atomic<unsigned> failures{0};
    std::atomic<unsigned> grants{0};
    std::array<std::atomic<unsigned>, callers> by_caller{};
    std::array<std::uint64_t, grants_wanted + callers> fences{};
};

class shared_tally {
  public:
    shared_tally() {
        place_ = ::mmap(
            nullptr, sizeof(tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (place_ == MAP_FAILED) {
            throw std::runtime_error{"no memory to share"};
        }
        all_ = new (place_) tally;
    }
    shared_tally(const shared_tally&) = delete;
    shared_tally& operator=(const shared_tally&) = delete;
    ~shared_tally() { ::munmap(place_, sizeof(tally)); }
    tally* operator->() const noexcept { return all_; }
    tally& operator*() const noexcept { return *all_; }

  private:
    void* place_ = nullptr;
    tally* all_ = nullptr;
};

void take_turns(client& through, tally& all, unsigned caller) {
    while (all.grants.load() < grants_wanted) {
        std::error_code error;
        auto lease =
            through.acquire("k", {.ttl = 20s, .wait = 2min, .order = order::queue}, {}, error);
        if (!lease) {
            ++all.failures;
            return;
        }
        all.overlaps += all.holding.exchange(1);
        const auto number = all.grants.fetch_add(1);
        if (number < all.fences.size()) {
            all.fences[number] = lease->fence();
        }
        ++all.by_caller[caller];
        std::this_thread::sleep_for(3ms);  // some work; meanwhile the last one has come back
        all.holding = 0;
        if (lease->release(error) != release_outcome::released) {
            ++all.failures;
        }
    }
}

[[noreturn]] void be_a_process(const std::string& url, tally& all, unsigned number) {
    {
        client through{url};
        std::vector<std::thread> threads;
        for (unsigned each = 0; each < callers_each; ++each) {
            threads.emplace_back([&, caller = number * callers_each + each] {
                ++all.ready;
                while (all.ready.load() < callers) {
                    std::this_thread::yield();
                }
                take_turns(through, all, caller);
            });
        }
        for (auto& one : threads) {
            one.join();
        }
    }
    ::_exit(0);
}

}  // namespace

TEST(RedisQueue, CallersOfSeveralProcessesGetTheSameShare) {
    redis_server server;
    const auto url = "redis+unix://" + server.socket();
    const shared_tally all;
    std::vector<pid_t> children;
    for (unsigned number = 0; number < processes; ++number) {
        const auto child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            be_a_process(url, *all, number);
        }
        children.push_back(child);
    }
    EXPECT_TRUE(eventually([&] {
        return std::all_of(children.begin(), children.end(), [](pid_t& child) {
            if (child != 0 && ::waitpid(child, nullptr, WNOHANG) == child) {
                child = 0;
            }
            return child == 0;
        });
    }));
    for (const auto child : children) {
        if (child != 0) {
            ::kill(child, SIGKILL);
            ::waitpid(child, nullptr, 0);
        }
    }
    EXPECT_EQ(all->failures, 0U);
    EXPECT_EQ(all->overlaps, 0U);
    const auto grants = std::min<std::size_t>(all->grants, all->fences.size());
    ASSERT_GE(grants, grants_wanted);
    EXPECT_TRUE(std::is_sorted(all->fences.begin(),
                               all->fences.begin() + static_cast<std::ptrdiff_t>(grants),
                               std::less_equal<>{}));
    const auto [least, most] = std::minmax_element(all->by_caller.begin(), all->by_caller.end());
    RecordProperty("least", static_cast<int>(least->load()));
    RecordProperty("most", static_cast<int>(most->load()));
    // Who comes back late misses a turn: on a busy machine that happens.
    EXPECT_LE(most->load(), least->load() * 5 / 4)
        << "of " << grants << " grants, " << callers << " callers";
    EXPECT_EQ(server.ask({"EXISTS", "{k}:~dibsq"}), "0") << "nobody is left in the queue";
}

TEST(RedisQueue, AProcessThatIsKilledInTheQueueIsPassedOver) {
    redis_server server;
    const auto url = "redis+unix://" + server.socket();
    const shared_tally all;
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        client through{url};
        std::error_code error;
        ++all->ready;
        while (all->ready.load() < 2) {
            std::this_thread::yield();
        }
        const auto never =
            through.acquire("k", {.ttl = 20s, .wait = 2min, .order = order::queue}, {}, error);
        ::_exit(never ? 1 : 0);
    }
    client here{url};
    auto held = here.try_acquire("k", {.ttl = 1min});
    ASSERT_TRUE(held);
    ASSERT_TRUE(eventually([&] { return all->ready.load() == 1; }));
    ++all->ready;
    const auto queued = [&] {
        const auto found = here.list("k");
        return found.empty() ? 0U : found.front().queued;
    };
    ASSERT_TRUE(eventually([&] { return queued() == 1; }));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ASSERT_EQ(held->release(), release_outcome::released);
    EXPECT_FALSE(here.try_acquire("k", {.ttl = 1min})) << "its place is kept for a while";
    const auto next = here.acquire("k", {.ttl = 1min, .wait = 20s, .order = order::queue});
    EXPECT_TRUE(next) << "and then it is passed over";
}

}  // namespace dibs::testing
