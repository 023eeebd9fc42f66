// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process for the tests of the mutex: a client without threads on virtual time, with the memory
// store behind a line that the test may spoil.

#include "client_parts.hpp"
#include "core/deadline.hpp"
#include "support/verbs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dibs::recipes {

using namespace std::chrono_literals;
using namespace dibs::testing;
using core::nanoseconds;

inline mutex_terms terms_of(nanoseconds wait = 0s, nanoseconds ttl = 6s, nanoseconds timeout = 5s) {
    mutex_terms terms;
    terms.lease.ttl = ttl;
    terms.lease.renew_every = ttl / 3;
    terms.wait = wait;
    terms.timeout = timeout;
    return terms;
}

/// One process: a client without threads.
class process : public testing::client_parts {
  public:
    using client_parts::client_parts;
    process(const process&) = delete;
    process& operator=(const process&) = delete;
    ~process() {
        line.plan = nullptr;
        keys.close();
        world.run_ready();
        batches.close();
        line.close();
        world.run_ready();
    }

    struct ended {
        std::weak_ptr<mutex::call> call;  // as the client: a call need not be kept by who made it
        std::optional<mutex_outcome> outcome;
        core::instant when{};
        std::size_t times = 0;
        [[nodiscard]] lease_ptr lease() const { return outcome ? outcome->lease : nullptr; }
        [[nodiscard]] bool busy() const { return outcome && !outcome->lease && !outcome->error; }
    };
    using ended_ptr = std::shared_ptr<ended>;

    ended_ptr acquire(mutex_terms terms = terms_of(), const std::string& key = "k") {
        auto told = std::make_shared<ended>();
        told->call = keys.acquire(key, terms, [this, told](mutex_outcome outcome) {
            ++told->times;
            told->when = world.now();
            told->outcome = std::move(outcome);
        });
        return told;
    }
    lease_ptr take(mutex_terms terms = terms_of(), const std::string& key = "k") {
        const auto told = acquire(terms, key);
        world.run_until([&] { return told->outcome.has_value(); }, 1min);
        return told->lease();
    }
    std::optional<release_reply> release(const lease_ptr& lease) {
        std::optional<release_reply> told;
        keys.release(lease, [&](release_reply heard) { told = std::move(heard); });
        world.run_until([&] { return told.has_value(); }, 1min);
        return told;
    }
    /// As the store sees it, past all faults.
    [[nodiscard]] std::vector<core::holder_info> holders(const std::string& key = "k") {
        std::vector<core::holder_info> found;
        bool told = false;
        line.list(key, "", 1, [&](core::page page) {
            told = true;
            if (!page.records.empty() && page.records[0].key == key) {
                found = page.records[0].holders;
            }
        });
        world.run_until([&] { return told; }, 1s);
        return found;
    }
};

class Mutex : public ::testing::Test {
  protected:
    /// Of the store, to `here`.
    void answers_after(nanoseconds round_trip) {
        here.line.delay = round_trip;
        here.line.plan = [](std::size_t, const auto&) { return fault::delay_answer; };
    }
    struct line_of_waiters {
        process::ended_ptr outside;
        int served_before = 0;  ///< how many of `here`, until it was the turn of `there`
    };
    /// Callers of `here`, each with some work, and one of `there` who came after all of them.
    line_of_waiters stand_in_line(int callers, nanoseconds work = 0s) {
        const auto terms = terms_of(10min);
        std::vector<process::ended_ptr> inside;
        for (int number = 0; number < callers; ++number) {
            inside.push_back(here.acquire(terms));
        }
        world.run_ready();
        line_of_waiters line{there.acquire(terms)};
        for (const auto& told : inside) {
            world.run_until(
                [&] { return told->outcome.has_value() || line.outside->outcome.has_value(); },
                1min);
            if (!told->outcome) {
                break;
            }
            ++line.served_before;
            world.advance(work);
            here.release(told->lease());
            world.run_ready();
        }
        return line;
    }

    // A name of its own per test: spaces are shared by all who open them.
    std::string space = [] {
        static std::atomic<int> last{0};
        return "mutex-test-" + std::to_string(++last);
    }();
    virtual_environment world;
    process here{world, space};
    process there{world, space};
};

}  // namespace dibs::recipes
