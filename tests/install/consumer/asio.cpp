// SPDX-License-Identifier: Apache-2.0
// Goal: <dibs/asio.hpp> works for a stranger who brings Boost. Method: a coroutine takes a key and
// is refused it the second time.

#include <dibs/asio.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdio>
#include <exception>

namespace {

boost::asio::awaitable<void> work(dibs::client& client, bool& passed) {
    const dibs::acquire_options options;
    auto first =
        co_await dibs::async_try_acquire(client, "key", options, boost::asio::use_awaitable);
    auto second =
        co_await dibs::async_try_acquire(client, "key", options, boost::asio::use_awaitable);
    passed = first && first->held() && first->fence() > 0 && !second;
}

}  // namespace

int main() {
    bool passed = false;
    dibs::client client{"memory:"};
    boost::asio::io_context context;
    boost::asio::co_spawn(context, work(client, passed), [](const std::exception_ptr& thrown) {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    });
    context.run();
    if (!passed) {
        std::fprintf(stderr, "the key was not given to the first and refused to the second\n");
    }
    return passed ? 0 : 1;
}
