// SPDX-License-Identifier: Apache-2.0
#include "client/client_core.hpp"

#include "client/host_clock.hpp"
#include "client/this_process.hpp"
#include "core/key.hpp"
#include "store/open.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace dibs::detail {

namespace {

/// How long a client that goes waits for its last releases.
constexpr auto patience_at_close = std::chrono::seconds{1};

/// What a blocking caller waits on. Shared, since the one who rings may come later than the caller
/// goes.
class doorbell {
  public:
    void ring() {
        rung_.store(1, std::memory_order_release);
        rung_.notify_one();
    }
    [[nodiscard]] bool rung() const noexcept { return rung_.load(std::memory_order_acquire) != 0; }
    void wait() noexcept {
        while (!rung()) {
            rung_.wait(0, std::memory_order_acquire);
        }
    }
    void reset() noexcept { rung_.store(0, std::memory_order_relaxed); }

  private:
    std::atomic<int> rung_{0};
};

/// One per thread, reused, since most calls are short. Nested calls (a callback that calls the
/// client) make their own.
std::shared_ptr<doorbell> free_doorbell() {
    thread_local auto cached = std::make_shared<doorbell>();
    if (cached.use_count() > 1) {
        return std::make_shared<doorbell>();
    }
    cached->reset();
    return cached;
}

}  // namespace

client_core::client_core() : executor_([this] { time_.wake(); }) {}

client_core::~client_core() {
    close();
}

std::shared_ptr<client_core> client_core::open(std::string_view url,
                                               client_options options,
                                               std::error_code& error,
                                               std::string& detail) {
    const std::shared_ptr<client_core> made(new client_core);
    made->log_ = options.log();
    auto opened = store::open(
        url, made->env(), {.who = this_process(options.command()), .clock = host_clock_now});
    if (!opened.made) {
        error = opened.error;
        detail = std::move(opened.detail);
        made->close_called_ = true;
        return nullptr;
    }
    made->build(std::move(opened.made));
    made->time_.start(made->executor_);
    return made;
}

void client_core::build(std::unique_ptr<store::store> opened) {
    store_ = std::move(opened);
    batcher_ = std::make_unique<core::batcher>(env(), *store_);
    undo_ = std::make_unique<core::undo>(env(), *batcher_);
    core::watchdog::listener listener;
    listener.lost = [this](const recipes::lease_ptr& lease) {
        log(log_level::warning,
            "lease of " + core::printable(lease->key()) +
                " lost: " + lease->lost_reason().message());
        mutex_->lost(lease);
    };
    listener.renewal_failed = [this](const core::lease_state& lease, const core::answer& given) {
        log(log_level::info,
            "renewal of " + core::printable(lease.key()) + " failed, will be tried again: " +
                (given.detail.empty() ? given.error.message() : given.detail));
    };
    watchdog_ = std::make_unique<core::watchdog>(env(), *batcher_, *undo_, std::move(listener));
    mutex_ = std::make_unique<recipes::mutex>(env(), *store_, *batcher_, *watchdog_, *undo_);
}

void client_core::log(log_level level, std::string_view text) const {
    if (log_) {
        const std::lock_guard lock(log_mutex_);
        log_(level, text);
    }
}

void client_core::run(core::unique_function<void(core::task)> start) {
    const auto bell = free_doorbell();
    store_->begin_assist();
    executor_.post([&start, bell] { start([bell] { bell->ring(); }); });
    while (!bell->rung() && store_->assist()) {
    }
    store_->end_assist();
    bell->wait();
}

statistics client_core::stats() {
    statistics counted;
    if (closed_) {
        return counted;
    }
    run([this, &counted](core::task done) {
        if (closed_) {
            done();
            return;
        }
        const auto& by_mutex = mutex_->counters();
        const auto& by_watchdog = watchdog_->counters();
        counted.granted = by_mutex.granted;
        counted.busy = by_mutex.busy;
        counted.released = by_mutex.released;
        counted.handed_on = by_mutex.handed_on;
        counted.renewed = by_watchdog.renewed;
        counted.renew_failed = by_watchdog.renew_failed;
        counted.lost = by_watchdog.lost;
        counted.undone = undo_->undone();
        done();
    });
    return counted;
}

bool client_core::settled() const {
    return batcher_->idle() && undo_->open() == 0;
}

void client_core::begin_close() {
    mutex_->close();
    for (const auto& lease : watchdog_->guarded()) {
        watchdog_->lose(lease, errc::closed);
    }
    closed_ = true;
}

void client_core::close() noexcept {
    if (close_called_.exchange(true)) {
        return;
    }
    if (executor_.runs_here()) {
        std::thread([self = shared_from_this()] { self->close_and_wait(); }).detach();
    } else {
        close_and_wait();
    }
}

void client_core::close_and_wait() noexcept {
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
    on_executor([this] { begin_close(); });
    const auto until = std::chrono::steady_clock::now() + patience_at_close;
    for (bool done = false; !done && std::chrono::steady_clock::now() < until;) {
        on_executor([this, &done] { done = settled(); });
        if (!done) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }
    on_executor([this] {
        batcher_->close();
        store_->close();
    });
    executor_.keep_everything();
    time_.stop();
    on_executor([] {});
    notices_.stop();
}

}  // namespace dibs::detail
