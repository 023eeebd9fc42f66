// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same calls in Asio's form, for any completion token: callbacks, futures, coroutines. The one
// public header that needs Boost (1.81 or newer).
//
// The completion is `void(boost::system::error_code, …)`: Asio turns only that type into an
// exception. It runs on the executor associated with the handler, whose context must live until
// then, as with any asynchronous operation: stop the client first. Cancellation: terminal, partial
// and total, through the handler's slot; a cancelled acquire ends with errc::cancelled and holds
// nothing. The other calls are short, and take no notice of it.

#include <dibs/async.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dibs {

namespace detail {

/// A handler that knows its result and waits to be run at home.
class arrival {
  public:
    arrival() = default;
    virtual ~arrival() = default;
    arrival(const arrival&) = delete;
    arrival& operator=(const arrival&) = delete;
    virtual void arrive() = 0;

    std::unique_ptr<arrival> next;  ///< of the homecoming
};

/// The completions that are on their way to one io_context. A store answers many calls at once;
/// one post for all of them wakes the context's thread once, where a post for each would wake it,
/// and take its lock, as many times. Every thread of the context may come for the next one, so that
/// a handler that blocks holds up no other.
class homecoming final : public boost::asio::execution_context::service {
  public:
    using key_type = homecoming;
    static inline boost::asio::execution_context::id id;

    explicit homecoming(boost::asio::execution_context& home)
        : service(home), home_(static_cast<boost::asio::io_context&>(home)) {}

    /// Any thread.
    void add(std::unique_ptr<arrival> one) {
        {
            const std::lock_guard lock(mutex_);
            auto* const last = one.get();
            (last_ != nullptr ? last_->next : first_) = std::move(one);
            last_ = last;
            ++waiting_;
            if (std::exchange(called_, true)) {
                return;
            }
        }
        call();
    }

  private:
    void call() {
        boost::asio::post(home_, [this] { run_waiting(); });
    }

    // As many as wait when it begins: a handler may make its successor arrive at once, and the
    // context has other work. And none once the context was stopped. What is left has been called
    // for.
    void run_waiting() {
        std::size_t left = 1;
        for (bool just_called = true; left > 0 && (just_called || !home_.stopped());
             just_called = false) {
            std::unique_ptr<arrival> one;
            bool another = false;
            {
                const std::lock_guard lock(mutex_);
                called_ = called_ && !just_called;
                left = (just_called ? waiting_ : left) - 1;
                if (!first_) {
                    return;
                }
                one = take_first();
                another = first_ && !std::exchange(called_, true);
            }
            if (another) {
                call();
            }
            one.release()->arrive();
        }
    }

    // Requires: somebody waits, and the lock is held.
    std::unique_ptr<arrival> take_first() {
        auto one = std::move(first_);
        first_ = std::move(one->next);
        last_ = first_ ? last_ : nullptr;
        --waiting_;
        return one;
    }

    void shutdown() override {
        // One by one: what goes with a handler may bring another one here.
        for (;;) {
            std::unique_ptr<arrival> one;
            const std::lock_guard lock(mutex_);
            if (!first_) {
                return;
            }
            one = take_first();
        }
    }

    boost::asio::io_context& home_;
    std::mutex mutex_;
    std::unique_ptr<arrival> first_;
    arrival* last_ = nullptr;
    std::size_t waiting_ = 0;
    bool called_ = false;  ///< a post is on its way
};

/// The context whose plain executor this is, or null: then completions are posted one by one.
template <typename Executor>
boost::asio::io_context* home_of(const Executor& executor) noexcept {
    using plain = boost::asio::io_context::executor_type;
    if constexpr (std::is_same_v<Executor, plain>) {
        return &boost::asio::query(executor, boost::asio::execution::context);
    } else if constexpr (std::is_same_v<Executor, boost::asio::any_io_executor>) {
        const auto* inner = executor.template target<plain>();
        return inner != nullptr ? home_of(*inner) : nullptr;
    } else {
        return nullptr;
    }
}

/// Brings a completion home to the handler's executor, which has work until then.
template <typename Base, typename Result, typename Handler>
class asio_handler final : public Base, private arrival {
  public:
    explicit asio_handler(Handler handler)
        : handler_(std::move(handler)),
          work_(boost::asio::make_work_guard(boost::asio::get_associated_executor(handler_))) {}

    void complete(std::error_code error, Result result) override {
        std::make_unique<asio_handler>(std::move(handler_))
            .release()
            ->complete_and_go(error, std::move(result));
    }

    void complete_and_go(std::error_code error, Result result) override {
        std::unique_ptr<arrival> self(this);
        error_ = error;
        result_ = std::move(result);
        auto executor = work_.get_executor();
        if (auto* const home = home_of(executor)) {
            boost::asio::use_service<homecoming>(*home).add(std::move(self));
        } else {
            boost::asio::post(executor,
                              [self = std::move(self)]() mutable { self.release()->arrive(); });
        }
    }

  private:
    using executor_type = boost::asio::associated_executor_t<Handler>;

    void arrive() override {
        // The memory goes first: the handler may make the next one at once.
        std::unique_ptr<asio_handler> self(this);
        if (auto slot = boost::asio::get_associated_cancellation_slot(handler_);
            slot.is_connected()) {
            slot.clear();
        }
        auto handler = std::move(handler_);
        auto result = std::move(result_);
        const auto error = error_;
        self.reset();
        std::move(handler)(error, std::move(result));
    }

    Handler handler_;
    boost::asio::executor_work_guard<executor_type> work_;
    boost::system::error_code error_;
    Result result_{};
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
            auto slot = boost::asio::get_associated_cancellation_slot(handler);
            auto made = std::make_unique<
                detail::asio_handler<acquire_handler, std::optional<lease>, handler_type>>(
                std::move(handler));
            if (slot.is_connected()) {
                const operation call;
                slot.assign([call](boost::asio::cancellation_type) { call.cancel(); });
                start_acquire(through, name, wanted, std::move(made), call);
            } else {
                start_acquire(through, name, wanted, std::move(made));
            }
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

/// Completion: void(boost::system::error_code, std::optional<lease_set>). As client::acquire_all. The
/// client must outlive the call.
template <typename CompletionToken>
auto async_acquire_all(client& through,
                       std::vector<std::string> keys,
                       const acquire_options& options,
                       CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken,
                                       void(boost::system::error_code, std::optional<lease_set>)>(
        [&through](auto handler, std::vector<std::string> names, acquire_options wanted) {
            using handler_type = decltype(handler);
            const operation call;
            if (auto slot = boost::asio::get_associated_cancellation_slot(handler);
                slot.is_connected()) {
                slot.assign([call](boost::asio::cancellation_type) { call.cancel(); });
            }
            start_acquire_all(
                through,
                std::move(names),
                wanted,
                std::make_unique<detail::asio_handler<acquire_all_handler,
                                                      std::optional<lease_set>,
                                                      handler_type>>(std::move(handler)),
                call);
        },
        token,
        std::move(keys),
        options);
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

/// Completion: void(boost::system::error_code, std::string). As start_hand_over: with a text the
/// handle holds nothing any more, with an error the lease stays with it, unless it is lost.
template <typename CompletionToken>
auto async_hand_over(lease& held, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken,
                                       void(boost::system::error_code, std::string)>(
        [&held](auto handler) {
            using handler_type = decltype(handler);
            start_hand_over(held,
                            std::make_unique<
                                detail::asio_handler<hand_over_handler, std::string, handler_type>>(
                                std::move(handler)));
        },
        token);
}

/// Completion: void(boost::system::error_code, lease). As start_adopt. The client must outlive the
/// call.
template <typename CompletionToken>
auto async_adopt(client& through,
                 std::string_view handed_over,
                 const acquire_options& options,
                 CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, lease)>(
        [&through](auto handler, const std::string& text, const acquire_options& wanted) {
            using handler_type = decltype(handler);
            start_adopt(through,
                        text,
                        wanted,
                        std::make_unique<detail::asio_handler<adopt_handler, lease, handler_type>>(
                            std::move(handler)));
        },
        token,
        std::string(handed_over),
        options);
}

}  // namespace dibs
