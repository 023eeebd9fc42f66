// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same calls in Asio's form, for any completion token: callbacks, futures, coroutines. The one
// public header that needs Boost (1.81 or newer).
//
// The completion is `void(boost::system::error_code, …)`: Asio turns only that type into an
// exception. It runs on the executor associated with the handler. Cancellation: terminal, partial
// and total, through the handler's slot; a cancelled acquire ends with errc::cancelled and holds
// nothing.

#include <dibs/async.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dibs {

namespace detail {

/// Brings a completion home to the handler's executor, which has work until then.
template <typename Base, typename Result, typename Handler>
class asio_handler final : public Base {
  public:
    explicit asio_handler(Handler handler)
        : handler_(std::move(handler)),
          work_(boost::asio::make_work_guard(boost::asio::get_associated_executor(handler_))) {}

    void complete(std::error_code error, Result result) override {
        auto executor = work_.get_executor();
        boost::asio::post(
            executor,
            [handler = std::move(handler_),
             work = std::move(work_),
             code = boost::system::error_code(error),
             result = std::move(result)]() mutable {
                if (auto slot = boost::asio::get_associated_cancellation_slot(handler);
                    slot.is_connected()) {
                    slot.clear();
                }
                auto run = std::move(handler);
                work.reset();
                std::move(run)(code, std::move(result));
            });
    }

  private:
    using executor_type = boost::asio::associated_executor_t<Handler>;
    Handler handler_;
    boost::asio::executor_work_guard<executor_type> work_;
};

}  // namespace detail

/// Completion: void(boost::system::error_code, std::optional<lease>). The client must outlive the
/// call.
template <typename CompletionToken>
auto async_acquire(client& through,
                   std::string_view key,
                   const acquire_options& options,
                   CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken,
                                       void(boost::system::error_code, std::optional<lease>)>(
        [&through](auto handler, std::string name, acquire_options wanted) {
            using handler_type = decltype(handler);
            // The slot is set before the call begins: its completion may come at once, on another
            // thread.
            const operation call;
            if (auto slot = boost::asio::get_associated_cancellation_slot(handler);
                slot.is_connected()) {
                slot.assign([call](boost::asio::cancellation_type) { call.cancel(); });
            }
            start_acquire(
                through,
                name,
                wanted,
                std::make_unique<
                    detail::asio_handler<acquire_handler, std::optional<lease>, handler_type>>(
                    std::move(handler)),
                call);
        },
        token,
        std::string(key),
        options);
}

/// As async_acquire with a wait of zero.
template <typename CompletionToken>
auto async_try_acquire(client& through,
                       std::string_view key,
                       acquire_options options,
                       CompletionToken&& token) {
    options.wait = std::chrono::milliseconds::zero();
    return async_acquire(through, key, options, std::forward<CompletionToken>(token));
}

/// Completion: void(boost::system::error_code, release_outcome). The handle is empty afterwards.
template <typename CompletionToken>
auto async_release(lease&& held, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken,
                                       void(boost::system::error_code, release_outcome)>(
        [](auto handler, lease going) {
            using handler_type = decltype(handler);
            start_release(std::move(going),
                          std::make_unique<
                              detail::asio_handler<release_handler, release_outcome, handler_type>>(
                              std::move(handler)));
        },
        token,
        std::move(held));
}

}  // namespace dibs
