// SPDX-License-Identifier: Apache-2.0
#include "client/client_core.hpp"

#include "client/host/doorbell.hpp"
#include "client/host/host_clock.hpp"
#include "client/host/host_surroundings.hpp"
#include "client/host/this_process.hpp"
#include "core/key.hpp"
#include "store/open.hpp"

#include <atomic>
#include <utility>

namespace dibs::detail {

namespace {

/// Of a call whose beginning may run on another thread: it is over once its end was told and its
/// beginning has returned. The end is often told within that, and what the beginning was given is
/// the caller's, who goes when the bell rings.
class call_bell : public doorbell {
  public:
    void one_of_two() noexcept {
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            ring();
        }
    }
    void reset() noexcept {
        left_.store(2, std::memory_order_relaxed);
        doorbell::reset();
    }

  private:
    std::atomic<int> left_{2};
};

/// Of this thread's bell. A word without a destructor: it can still be read when the bell has gone.
thread_local constinit bool bell_gone = false;

class bell_of_thread {
  public:
    bell_of_thread() = default;
    ~bell_of_thread() { bell_gone = true; }
    bell_of_thread(const bell_of_thread&) = delete;
    bell_of_thread& operator=(const bell_of_thread&) = delete;

    const std::shared_ptr<call_bell> bell = std::make_shared<call_bell>();
};

/// One per thread, reused, since most calls are short. Nested calls (a callback that calls the
/// client) make their own, and so do those from destructors of static objects, which run on the main
/// thread after what is local to it has gone.
std::shared_ptr<call_bell> free_bell() {
    if (bell_gone) {
        return std::make_shared<call_bell>();
    }
    thread_local const bell_of_thread mine;
    if (mine.bell.use_count() > 1) {
        return std::make_shared<call_bell>();
    }
    mine.bell->reset();
    return mine.bell;
}

}  // namespace

std::shared_ptr<client_core> client_core::open(std::string_view url,
                                               client_options options,
                                               std::error_code& error,
                                               std::string& detail) {
    auto around = std::make_unique<host_surroundings>();
    auto opened = store::open(
        url, around->env(), {.who = this_process(options.command()), .clock = host_clock_now});
    if (!opened.made) {
        error = opened.error;
        detail = std::move(opened.detail);
        return nullptr;
    }
    return make(std::move(around), std::move(opened.made), options);
}

std::shared_ptr<client_core> client_core::make(std::unique_ptr<surroundings> around,
                                               std::unique_ptr<store::store> opened,
                                               const client_options& options) {
    const std::shared_ptr<client_core> made(
        new client_core(std::move(around), std::move(opened), options));
    made->around_->start();
    return made;
}

client_core::client_core(std::unique_ptr<surroundings> around,
                         std::unique_ptr<store::store> opened,
                         const client_options& options)
    : around_(std::move(around)), env_(around_->env()), log_(options.log()) {
    store_ = std::move(opened);
    batcher_ = std::make_unique<core::batcher>(env_, *store_);
    undo_ = std::make_unique<core::undo>(env_, *batcher_);
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
    watchdog_ = std::make_unique<core::watchdog>(env_, *batcher_, *undo_, std::move(listener));
    mutex_ = std::make_unique<recipes::mutex>(env_, *store_, *batcher_, *watchdog_, *undo_);
    store_->tell_doubts([this] { watchdog_->doubt_all(); });
}

void client_core::log(log_level level, std::string_view text) const {
    if (log_) {
        const std::lock_guard lock(log_mutex_);
        log_(level, text);
    }
}

void client_core::run(core::unique_function<void(core::task)> start) {
    if (noticed_fork()) {
        start([] {});
        return;
    }
    const auto bell = free_bell();
    store_->begin_assist();
    env_.exec.post([&start, bell] {
        start([bell] { bell->one_of_two(); });
        bell->one_of_two();
    });
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

void client_core::begin_end() {
    mutex_->close();
    for (const auto& lease : watchdog_->guarded()) {
        watchdog_->lose(lease, errc::closed);
    }
    closed_ = true;
}

void client_core::finish_end() {
    batcher_->close();
    store_->close();
}

void client_core::close() noexcept {
    if (close_called_.exchange(true)) {
        return;
    }
    if (noticed_fork()) {
        left_alone_ = weak_from_this().lock();
        return;
    }
    around_->end(*this, weak_from_this().lock());
}

core::answer client_core::refusal() const {
    return made_here_.forked() ? core::refused(errc::unsupported,
                                               "the process was forked after the client was made; "
                                               "make another one in the child")
                               : core::refused(errc::closed, "the client is closed");
}

client_core::~client_core() {
    close();
}

}  // namespace dibs::detail
