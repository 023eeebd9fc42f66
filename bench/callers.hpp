// SPDX-License-Identifier: Apache-2.0
#pragma once
// Callers of the client, for benchmarks of every store: each acquires and releases a key of its own.

#include "measure.hpp"

#include <dibs/asio.hpp>
#include <dibs/dibs.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace dibs::bench {

inline constexpr int callers_many = 64;

/// A raw loop on the same server takes other names.
inline std::string key_of_caller(int caller) {
    return "caller-" + std::to_string(caller);
}

inline void own_cycle(dibs::client& client, const std::string& key) {
    auto lease = client.try_acquire(key);
    if (!lease || lease->release() != dibs::release_outcome::released) {
        throw std::runtime_error("dibs was not granted its key");
    }
}

inline boost::asio::awaitable<void> coroutine_caller(dibs::client& client,
                                                     std::string key,
                                                     std::chrono::steady_clock::time_point until,
                                                     std::int64_t& cycles) {
    const dibs::acquire_options options;
    while (std::chrono::steady_clock::now() < until) {
        auto lease =
            co_await dibs::async_try_acquire(client, key, options, boost::asio::use_awaitable);
        if (!lease) {
            throw std::runtime_error("dibs was not granted its key");
        }
        co_await dibs::async_release(std::move(*lease), boost::asio::use_awaitable);
        ++cycles;
    }
}

/// Cycles per second of so many callers on one thread.
inline double many_coroutines(dibs::client& client, seconds length) {
    using clock = std::chrono::steady_clock;
    boost::asio::io_context context(1);
    std::int64_t cycles = 0;
    const auto start = clock::now();
    const auto until = start + std::chrono::duration_cast<clock::duration>(length);
    for (int caller = 0; caller < callers_many; ++caller) {
        boost::asio::co_spawn(context,
                              coroutine_caller(client, key_of_caller(caller), until, cycles),
                              [](std::exception_ptr fault) {
                                  if (fault) {
                                      std::rethrow_exception(fault);
                                  }
                              });
    }
    context.run();
    return static_cast<double>(cycles) / seconds(clock::now() - start).count();
}

}  // namespace dibs::bench
