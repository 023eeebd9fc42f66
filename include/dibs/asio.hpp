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
#include <dibs/async_idempotent.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
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

/// Arrivals in the order in which they came.
class arrivals {
  public:
    [[nodiscard]] bool empty() const noexcept { return !first_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    void add_first(std::unique_ptr<arrival> one) noexcept {
        last_ = last_ != nullptr ? last_ : one.get();
        one->next = std::move(first_);
        first_ = std::move(one);
        ++size_;
    }

    void add(arrivals&& others) noexcept {
        if (others.empty()) {
            return;
        }
        (last_ != nullptr ? last_->next : first_) = std::move(others.first_);
        last_ = std::exchange(others.last_, nullptr);
        size_ += std::exchange(others.size_, 0);
    }

    // Requires: not empty.
    std::unique_ptr<arrival> take_first() noexcept {
        auto one = std::move(first_);
        first_ = std::move(one->next);
        last_ = first_ ? last_ : nullptr;
        --size_;
        return one;
    }

  private:
    std::unique_ptr<arrival> first_;
    arrival* last_ = nullptr;
    std::size_t size_ = 0;
};

/// Memory for the handlers of one kind, kept by the thread that they have come home to: mostly that
/// makes the next ones. Asio keeps two blocks of all kinds together.
template <typename Handler>
class handler_memory {
  public:
    [[nodiscard]] static void* take(std::size_t bytes) {
        auto& kept = kept_;
        if (kept.first == nullptr) {
            return ::operator new(bytes);
        }
        --kept.count;
        return std::exchange(kept.first, *static_cast<void**>(kept.first));
    }

    static void give(void* block) noexcept {
        auto& kept = kept_;
        if (kept.count == blocks_max) {
            ::operator delete(block);
            return;
        }
        *::new (block) void* = std::exchange(kept.first, block);
        ++kept.count;
    }

  private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    static constexpr std::size_t blocks_max = 0;  // a block used again would hide a use after free
#else
    static constexpr std::size_t blocks_max = 64;
#endif
    struct pile {
        void* first = nullptr;
        std::size_t count = 0;

        ~pile() {
            count = blocks_max;  // what goes after this is not kept
            while (first != nullptr) {
                ::operator delete(std::exchange(first, *static_cast<void**>(first)));
            }
        }
    };
    static inline thread_local pile kept_;
};

/// The completions that are on their way to one io_context. A store answers many calls at once; one
/// post for all of them wakes the context's thread once, where a post for each would wake it, and
/// take its lock, as many times. Every thread of the context may come for the next one, so that a
/// handler that blocks holds up no other.
class homecoming final : public boost::asio::execution_context::service {
  public:
    using key_type = homecoming;
    static inline boost::asio::execution_context::id id;

    explicit homecoming(boost::asio::execution_context& home)
        : service(home), home_(static_cast<boost::asio::io_context&>(home)) {}
    ~homecoming() override { shutdown(); }
    homecoming(const homecoming&) = delete;
    homecoming& operator=(const homecoming&) = delete;

    static homecoming& of(boost::asio::io_context& home) {
        // A call is mostly started by one that has come home: then there is nothing to look up.
        return inside_ != nullptr && &inside_->home_ == &home
                   ? *inside_
                   : boost::asio::use_service<homecoming>(home);
    }

    [[nodiscard]] boost::asio::io_context& home() const noexcept { return home_; }

    /// Any thread.
    void add(std::unique_ptr<arrival> one) {
        auto* const mine = one.release();
        auto* before = on_the_way_.load(std::memory_order_relaxed);
        do {
            static_cast<void>(mine->next.release());  // it is not ours until the exchange
            mine->next.reset(before);
        } while (!on_the_way_.compare_exchange_weak(
            before, mine, std::memory_order_release, std::memory_order_relaxed));
        if (before != nullptr) {
            return;  // whoever brought the first one calls
        }
        // What is on the way has not come in before this, so the context has work until it is posted.
        // Asio lets go of its lock before it wakes a thread, which may have found no work left by
        // then: not while this counts as some.
        const auto stays = boost::asio::make_work_guard(home_);
        boost::asio::post(home_, [this] { come_in(); });
    }

  private:
    /// While this thread runs what has come home.
    class in_it {
      public:
        explicit in_it(homecoming& here) noexcept : before_(std::exchange(inside_, &here)) {}
        ~in_it() { inside_ = before_; }
        in_it(const in_it&) = delete;
        in_it& operator=(const in_it&) = delete;

      private:
        homecoming* const before_;
    };
    static inline thread_local homecoming* inside_ = nullptr;

    void come_in() {
        std::size_t waiting = 0;
        {
            const std::lock_guard lock(mutex_);
            arrived_.add(take_on_the_way());
            waiting = arrived_.size();
        }
        run(waiting);
    }

    /// In the order in which they came: they lie there the other way round.
    arrivals take_on_the_way() noexcept {
        std::unique_ptr<arrival> rest(on_the_way_.exchange(nullptr, std::memory_order_acquire));
        arrivals came;
        while (auto one = std::move(rest)) {
            rest = std::move(one->next);
            came.add_first(std::move(one));
        }
        return came;
    }

    void help() {
        std::size_t waiting = 0;
        {
            const std::lock_guard lock(mutex_);
            help_called_ = false;
            waiting = arrived_.size();
        }
        run(waiting);
    }

    // As many as wait when it begins: a handler may make its successor arrive at once, and the
    // context has other work. And none once the context was stopped. What is left has been called
    // for.
    void run(std::size_t waiting) {
        const in_it here(*this);
        for (auto left = waiting; left > 0 && (left == waiting || !home_.stopped()); --left) {
            std::unique_ptr<arrival> one;
            bool others = false;
            {
                const std::lock_guard lock(mutex_);
                if (arrived_.empty()) {
                    return;
                }
                one = arrived_.take_first();
                others = !arrived_.empty() && !std::exchange(help_called_, true);
            }
            if (others) {
                boost::asio::post(home_, [this] { help(); });
            }
            one.release()->arrive();
        }
    }

    void shutdown() noexcept override {
        // One by one: what goes with a handler may bring another one here.
        for (;;) {
            std::unique_ptr<arrival> one;
            const std::lock_guard lock(mutex_);
            if (arrived_.empty()) {
                arrived_.add(take_on_the_way());
            }
            if (arrived_.empty()) {
                return;
            }
            one = arrived_.take_first();
        }
    }

    boost::asio::io_context& home_;

    /// The latest one, which names those before it. When there are any, somebody will come in, or is
    /// about to post that.
    std::atomic<arrival*> on_the_way_{nullptr};

    std::mutex mutex_;
    arrivals arrived_;
    bool help_called_ = false;  ///< a post is on its way
};

/// Keeps a context until a call has come home.
class work_at_home {
  public:
    explicit work_at_home(homecoming& at) : at_(&at), work_(at.home().get_executor()) {}
    [[nodiscard]] homecoming& at() const noexcept { return *at_; }

  private:
    homecoming* at_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
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
    explicit asio_handler(Handler handler) : handler_(std::move(handler)) {
        const auto executor = boost::asio::get_associated_executor(handler_);
        if (auto* const home = home_of(executor)) {
            work_.template emplace<work_at_home>(homecoming::of(*home));
        } else {
            work_.template emplace<work_elsewhere>(executor);
        }
    }

    static_assert(alignof(Handler) <= alignof(std::max_align_t));
    // Each call makes one, and mostly where the one before has gone.
    static void* operator new(std::size_t bytes) {
        return handler_memory<asio_handler>::take(bytes);
    }
    static void operator delete(void* gone) noexcept { handler_memory<asio_handler>::give(gone); }

    void complete(std::error_code error, Result result) override {
        std::make_unique<asio_handler>(std::move(handler_))
            .release()
            ->complete_and_go(error, std::move(result));
    }

    void complete_and_go(std::error_code error, Result result) override {
        std::unique_ptr<arrival> self(this);
        if (error) {  // the way from one kind of error to the other is long
            error_ = error;
        }
        result_ = std::move(result);
        if (const auto* const home = std::get_if<work_at_home>(&work_)) {
            home->at().add(std::move(self));
        } else {
            const auto executor = std::get<work_elsewhere>(work_).get_executor();
            boost::asio::post(executor,
                              [self = std::move(self)]() mutable { self.release()->arrive(); });
        }
    }

  private:
    using work_elsewhere =
        boost::asio::executor_work_guard<boost::asio::associated_executor_t<Handler>>;

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
    std::variant<std::monostate, work_at_home, work_elsewhere> work_;
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

namespace detail {

/// Completion: void(boost::system::error_code, idempotent_claim).
template <typename CompletionToken>
auto async_claim(client& through,
                 std::string key,
                 std::string fingerprint,
                 const idempotent_options& options,
                 CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken,
                                       void(boost::system::error_code, idempotent_claim)>(
        [&through](auto handler,
                   const std::string& name,
                   const std::string& asked,
                   const idempotent_options& wanted) {
            using handler_type = decltype(handler);
            const operation call;
            if (auto slot = boost::asio::get_associated_cancellation_slot(handler);
                slot.is_connected()) {
                slot.assign([call](boost::asio::cancellation_type) { call.cancel(); });
            }
            start_idempotent(
                through,
                name,
                asked,
                wanted,
                std::make_unique<asio_handler<idempotent_handler, idempotent_claim, handler_type>>(
                    std::move(handler)),
                call);
        },
        token,
        std::move(key),
        std::move(fingerprint),
        options);
}

/// How work ended: by an answer, by a failure that is kept, or by an exception.
struct work_end {
    std::optional<std::string> answer;
    std::optional<std::string> failure;
    std::exception_ptr thrown;
};

/// Completion: void(boost::system::error_code, release_outcome).
template <typename CompletionToken>
auto async_end_turn(idempotent_turn turn, const work_end& how, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken,
                                       void(boost::system::error_code, release_outcome)>(
        [](auto handler, idempotent_turn ended, work_end end) {
            using handler_type = decltype(handler);
            auto made =
                std::make_unique<asio_handler<release_handler, release_outcome, handler_type>>(
                    std::move(handler));
            if (end.failure) {
                start_fail(std::move(ended), std::move(*end.failure), std::move(made));
            } else if (end.answer) {
                start_finish(std::move(ended), std::move(*end.answer), std::move(made));
            } else {
                start_give_up(std::move(ended), std::move(made));
            }
        },
        token,
        std::move(turn),
        how);
}

template <typename Work>
boost::asio::awaitable<std::string> answer_of(Work& work, const idempotent_call& with) {
    const auto done = [&]() -> decltype(auto) {
        if constexpr (std::invocable<Work&, const idempotent_call&>) {
            return work(with);
        } else {
            return work();
        }
    };
    if constexpr (std::convertible_to<decltype(done()), std::string>) {
        co_return done();
    } else {
        co_return co_await done();
    }
}

template <typename Work>
boost::asio::awaitable<work_end> end_of(Work& work, idempotent_call with, bool at_most_once) {
    work_end told;
    try {
        told.answer = co_await answer_of(work, with);
    } catch (const kept_failure& fault) {
        told.failure = fault.what();
    } catch (const std::exception& fault) {
        told.thrown = std::current_exception();
        if (at_most_once) {
            told.failure = fault.what();
        }
    } catch (...) {
        told.thrown = std::current_exception();
        if (at_most_once) {
            told.failure = "it threw something that is no std::exception";
        }
    }
    co_return told;
}

template <typename Work>
boost::asio::awaitable<idempotent_result> do_idempotent(client& through,
                                                        std::string key,
                                                        std::string fingerprint,
                                                        Work work,
                                                        idempotent_options options) {
    using boost::asio::redirect_error;
    using boost::asio::use_awaitable;
    namespace this_coro = boost::asio::this_coro;
    co_await this_coro::reset_cancellation_state(boost::asio::enable_total_cancellation());
    co_await this_coro::throw_if_cancelled(false);
    boost::system::error_code error;
    auto claim = co_await async_claim(
        through, key, std::move(fingerprint), options, redirect_error(use_awaitable, error));
    if (error) {
        throw dibs::error(std::error_code{error}, key);
    }
    idempotent_result told;
    if (claim.how == idempotent_claim::outcome::failed) {
        throw kept_failure(claim.answer);
    }
    if (claim.how != idempotent_claim::outcome::to_do) {
        if (claim.how == idempotent_claim::outcome::replayed) {
            told.how = idempotent_result::outcome::replayed;
            told.answer = std::move(claim.answer);
        }
        co_return told;
    }
    const auto stop = co_await this_coro::cancellation_state;
    if (stop.cancelled() != boost::asio::cancellation_type::none) {
        const work_end not_begun;
        co_await async_end_turn(
            std::move(claim.turn), not_begun, redirect_error(use_awaitable, error));
        throw dibs::error(make_error_code(errc::cancelled), key);
    }
    co_await this_coro::throw_if_cancelled(true);
    const auto end = co_await end_of(work, claim.turn.call(), options.at_most_once);
    // What was done is told to the store, whatever becomes of the caller.
    co_await this_coro::throw_if_cancelled(false);
    co_await this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
    const auto kept =
        co_await async_end_turn(std::move(claim.turn), end, redirect_error(use_awaitable, error));
    if (end.thrown) {
        std::rethrow_exception(end.thrown);
    }
    if (end.failure) {
        throw kept_failure(*end.failure);
    }
    if (error || kept != release_outcome::released) {
        throw dibs::error(error ? std::error_code{error} : make_error_code(errc::lease_taken),
                          key + ": the work was done, but its answer could not be kept");
    }
    told.how = idempotent_result::outcome::done;
    told.answer = *end.answer;
    co_return told;
}

}  // namespace detail

/// client::idempotent without blocking. Completion: void(std::exception_ptr, idempotent_result), as of co_spawn: what the
/// work throws, a kept_failure and a dibs::error come through as they are. `work` is called at most once, on the executor
/// of the handler: std::string(const idempotent_call&), or a coroutine, boost::asio::awaitable<std::string>(const
/// idempotent_call&); the call may be left out. It is moved into the operation. Cancellation ends the wait for another one,
/// and reaches the work, if that is a coroutine; what has been done is kept all the same. The client must outlive the call.
template <typename Work, typename CompletionToken>
auto async_idempotent(client& through,
                      std::string_view key,
                      std::string_view fingerprint,
                      Work work,
                      const idempotent_options& options,
                      CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken,
                                       void(std::exception_ptr, idempotent_result)>(
        [&through](auto handler,
                   std::string name,
                   std::string asked,
                   Work to_do,
                   const idempotent_options& wanted) {
            const boost::asio::any_io_executor executor =
                boost::asio::get_associated_executor(handler);
            boost::asio::co_spawn(
                executor,
                detail::do_idempotent(
                    through, std::move(name), std::move(asked), std::move(to_do), wanted),
                std::move(handler));
        },
        token,
        std::string(key),
        std::string(fingerprint),
        std::move(work),
        options);
}

}  // namespace dibs
