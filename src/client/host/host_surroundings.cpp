// SPDX-License-Identifier: Apache-2.0
#include "client/host/host_surroundings.hpp"

#include "store/library_thread.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace dibs::detail {

namespace {

/// How long a client that goes waits for its last releases.
constexpr auto patience_at_end = std::chrono::seconds{1};

}  // namespace

void host_surroundings::end(ending& client, std::shared_ptr<const void> keep) noexcept {
    if (executor_.runs_here()) {
        store::library_thread([this, &client, keep = std::move(keep)] {
            end_and_wait(client);
        }).detach();
    } else {
        end_and_wait(client);
    }
}

void host_surroundings::end_and_wait(ending& client) noexcept {
    const auto on_executor = [this](core::task work) {
        struct meeting {
            std::mutex mutex;
            std::condition_variable held;
            bool over = false;
        };
        const auto met = std::make_shared<meeting>();
        executor_.post([work = std::move(work), met]() mutable {
            work();
            const std::lock_guard lock(met->mutex);
            met->over = true;
            met->held.notify_all();
        });
        std::unique_lock lock(met->mutex);
        met->held.wait(lock, [&] { return met->over; });
    };
    on_executor([&client] { client.begin_end(); });
    const auto until = std::chrono::steady_clock::now() + patience_at_end;
    for (bool done = false; !done && std::chrono::steady_clock::now() < until;) {
        on_executor([&client, &done] { done = client.settled(); });
        if (!done) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }
    on_executor([&client] { client.finish_end(); });
    executor_.keep_everything();
    time_.stop();
    on_executor([] {});
    executor_.await_quiet();
    notices_.stop();
}

}  // namespace dibs::detail
