// SPDX-License-Identifier: Apache-2.0
// The same in coroutines: a wait that is ended by a timer holds nothing afterwards.
//
//   04_asio STORE-URL

#include <dibs/asio.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

asio::awaitable<void> refresh(dibs::client& client) {
    using namespace asio::experimental::awaitable_operators;

    auto lease = co_await dibs::async_acquire(
        client, "cache", {.ttl = 10s, .wait = 2s}, asio::use_awaitable);
    if (!lease) {
        std::cout << "somebody has it\n";
        co_return;
    }
    std::cout << "refreshing, fence " << lease->fence() << '\n';

    // A second call waits in vain, until the timer wins.
    asio::steady_timer timer(co_await asio::this_coro::executor, 50ms);
    auto first = co_await (
        dibs::async_acquire(client, "cache", {.wait = dibs::forever}, asio::use_awaitable) ||
        timer.async_wait(asio::use_awaitable));
    std::cout << (first.index() == 1 ? "the timer won\n" : "it was free after all\n");

    const auto outcome = co_await dibs::async_release(std::move(*lease), asio::use_awaitable);
    std::cout << (outcome == dibs::release_outcome::released ? "given back\n" : "was lost\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: 04_asio STORE-URL\n";
        return 64;
    }
    try {
        dibs::client client{argv[1]};
        asio::io_context io;
        int status = 0;
        asio::co_spawn(io, refresh(client), [&status](const std::exception_ptr& thrown) {
            status = thrown ? 1 : 0;
        });
        io.run();
        return status;
    } catch (const std::exception& trouble) {
        std::cerr << trouble.what() << '\n';
        return 1;
    }
}
