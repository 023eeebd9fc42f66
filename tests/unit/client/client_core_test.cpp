// SPDX-License-Identifier: Apache-2.0
#include "client/client_core.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

namespace dibs::detail {

namespace {

using namespace std::chrono_literals;

}  // namespace

// What a call begins with is the caller's: its captures, and what they refer to. Another thread may
// run it, and tell the end of the call before it returns.
TEST(ClientCore, ACallIsOverWhenItsBeginningHasReturned) {
    std::error_code error;
    std::string detail;
    const auto core = client_core::open("memory:", {}, error, detail);
    ASSERT_TRUE(core) << detail;
    std::atomic<bool> busy = false;
    std::atomic<bool> posted = false;
    std::thread other([&] {
        core->post([&] {
            busy = true;
            while (!posted) {
                std::this_thread::yield();
            }
            std::this_thread::sleep_for(20ms);
        });
    });
    while (!busy) {
        std::this_thread::yield();
    }
    posted = true;
    std::atomic<bool> returned = false;
    std::thread::id by;
    core->run([&](core::task done) {
        by = std::this_thread::get_id();
        done();
        std::this_thread::sleep_for(50ms);
        returned = true;
    });
    const bool in_time = returned;
    other.join();
    core->close();
    EXPECT_NE(by, std::this_thread::get_id()) << "the other thread was to do it";
    EXPECT_TRUE(in_time);
}

}  // namespace dibs::detail
