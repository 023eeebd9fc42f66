// SPDX-License-Identifier: Apache-2.0
// dibs once under kill -9: right after the claim, in mid-job, after the job, and at random among several hosts.
#include "support.hpp"

#include <gtest/gtest.h>
#include <sys/types.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using list = std::vector<std::string>;

launch once_on(const folder& here, list options, const std::string& script) {
    list words{"once"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"job", "--", "sh", "-c", script});
    return dibs_on(here, words);
}

list lines_of(const std::string& path) {
    list found;
    std::istringstream text{exists(path) ? read_file(path) : ""};
    for (std::string line; std::getline(text, line);) {
        found.push_back(line);
    }
    return found;
}

/// The command has ended well, and its host dies before it can say so.
class killed_before_the_outcome {
  public:
    killed_before_the_outcome(const folder& here, list options) {
        options.insert(options.end(), {"--slot", "s", "--ttl", "2s"});
        process host(once_on(here,
                             options,
                             "echo $$ > begun.new; mv begun.new begun; until test -e go; do sleep "
                             "0.02; done; echo $DIBS_IDEMPOTENCY_KEY >> ran"));
        EXPECT_TRUE(eventually([&] { return exists(here.file("begun")); })) << host.err();
        const auto child = std::stoi(read_file(here.file("begun")));
        host.signal(SIGSTOP);
        EXPECT_TRUE(eventually([&] { return state_of(host.id()) == 'T'; }));
        write_file(here.file("go"), "");
        EXPECT_TRUE(eventually([&] { return !is_running(child); }));
        host.signal(SIGKILL);
        host.wait();
    }
};

TEST(OnceKilled, BetweenTheEffectAndItsOutcomeTheSlotIsRunAgainUnderTheSameName) {
    const folder here;
    const killed_before_the_outcome host(here, {});
    EXPECT_EQ(
        process(
            once_on(here, {"--slot", "s", "--wait", "20s"}, "echo $DIBS_IDEMPOTENCY_KEY >> ran"))
            .wait()
            .status,
        0);
    EXPECT_EQ(lines_of(here.file("ran")), (list{"job/s", "job/s"}));
}

TEST(OnceKilled, BetweenTheEffectAndItsOutcomeAtMostOnceStaysAtOnce) {
    const folder here;
    const killed_before_the_outcome host(here, {"--at-most-once"});
    EXPECT_EQ(
        process(once_on(here, {"--slot", "s", "--wait", "20s"}, "echo again >> ran")).wait().status,
        1);
    EXPECT_EQ(lines_of(here.file("ran")), list{"job/s"});
    EXPECT_NE(run_dibs(here, {"runs", "job"}).out.find("never ended"), std::string::npos);
}

/// Three hosts fire for one slot after another, and two of them are killed.
class siege {
  public:
    siege(const folder& here, list options, unsigned seed)
        : here_(here), options_(std::move(options)), random_(seed) {}

    void run(int slots) {
        for (int number = 0; number < slots; ++number) {
            slot(std::to_string(number));
        }
    }

  private:
    [[nodiscard]] std::unique_ptr<process> fire(const std::string& slot) {
        auto options = options_;
        options.insert(options.end(), {"--slot", slot, "--ttl", "2s", "--wait", "30s"});
        // The descriptor is locked for as long as anybody of the command lives.
        return std::make_unique<process>(once_on(here_,
                                                 options,
                                                 "exec 9>at-work; flock -n 9 || echo $DIBS_SLOT >> "
                                                 "overlap; echo $DIBS_SLOT >> begun; sleep 0.05; "
                                                 "echo $DIBS_SLOT >> done"));
    }
    void slot(const std::string& name) {
        std::vector<std::unique_ptr<process>> hosts;
        for (int number = 0; number < 3; ++number) {
            hosts.push_back(fire(name));
        }
        std::uniform_int_distribution<int> pause{0, 60};
        std::shuffle(hosts.begin(), hosts.end(), random_);
        for (const auto victim : {0U, 1U}) {
            // At a moment that nobody chose: what counts is that it is another one each time.
            const auto until = boottime_ns() + pause(random_) * 1'000'000LL;
            (void)eventually([&] { return boottime_ns() >= until; });
            hosts[victim]->signal(SIGKILL);
        }
        for (const auto& host : hosts) {
            host->wait();
        }
        // Whoever comes now finds it settled, or settles it.
        (void)fire(name)->wait();
    }

    const folder& here_;
    list options_;
    std::mt19937 random_;
};

TEST(OnceKilled, AtRandomEverySlotIsDoneAndNoTwoRunsAreAtWorkTogether) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    const folder here;
    siege(here, {}, seed).run(12);
    EXPECT_EQ(lines_of(here.file("overlap")), list{});
    const auto done = lines_of(here.file("done"));
    for (int number = 0; number < 12; ++number) {
        EXPECT_GE(std::count(done.begin(), done.end(), std::to_string(number)), 1) << number;
    }
    const auto told = run_dibs(here, {"runs", "job", "--json"}).out;
    std::size_t ended_well = 0;
    for (auto at = told.find("\"outcome\": \"done\""); at != std::string::npos;
         at = told.find("\"outcome\": \"done\"", at + 1)) {
        ++ended_well;
    }
    EXPECT_EQ(ended_well, 12U) << told;
}

TEST(OnceKilled, AtRandomAtMostOnceIsNeverTwice) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    const folder here;
    siege(here, {"--at-most-once"}, seed).run(12);
    EXPECT_EQ(lines_of(here.file("overlap")), list{});
    auto begun = lines_of(here.file("begun"));
    std::sort(begun.begin(), begun.end());
    EXPECT_EQ(std::adjacent_find(begun.begin(), begun.end()), begun.end());
    EXPECT_GE(begun.size(), 1U);
}

}  // namespace
}  // namespace dibs::testing
