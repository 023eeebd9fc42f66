// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stands behind a client: its surroundings, the store, and the parts of the core that work on
// them. Shared by the client, its leases and the calls under way, so that each of them may
// go first.
//
// Thread safety: `run` and the constants from any thread; the parts only on the executor.

#include "client/surroundings.hpp"
#include "core/batcher.hpp"
#include "core/undo.hpp"
#include "core/watchdog.hpp"
#include "recipes/mutex.hpp"
#include "store/process_mark.hpp"
#include "store/store.hpp"

#include <dibs/client.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace dibs::detail {

class client_core final : public std::enable_shared_from_this<client_core>, private ending {
  public:
    /// On a store that is open, whose environment is that of `around`.
    static std::shared_ptr<client_core> make(std::unique_ptr<surroundings> around,
                                             std::unique_ptr<store::store> opened,
                                             const client_options& options);

    /// Null: `error` and `detail` say why.
    static std::shared_ptr<client_core> open(std::string_view url,
                                             client_options options,
                                             std::error_code& error,
                                             std::string& detail);
    ~client_core();
    client_core(const client_core&) = delete;
    client_core& operator=(const client_core&) = delete;

    /// Gives back what is held, tells the handles, waits shortly for the store, and stops.
    /// Idempotent. Inside a callback on the executor it does not wait: that is done behind the
    /// callback's back.
    void close() noexcept;

    /// Runs `start` on the executor and waits until the completion that it was given has been
    /// called, and it has returned. The calling thread does the work itself when nobody else is at it.
    void run(core::unique_function<void(core::task)> start);

    /// Runs `work` on the executor; at once when nobody else is at it.
    void post(core::task work) {
        if (noticed_fork()) {
            work();
            return;
        }
        // The work may hold the last other reference, and the executor needs itself until it is
        // idle.
        const auto keep = shared_from_this();
        env_.exec.post(std::move(work));
    }

    void log(log_level level, std::string_view text) const;

    [[nodiscard]] core::environment env() const noexcept { return env_; }
    [[nodiscard]] store::store& store() noexcept { return *store_; }
    [[nodiscard]] core::batcher& batcher() noexcept { return *batcher_; }
    [[nodiscard]] core::undo& undo() noexcept { return *undo_; }
    [[nodiscard]] core::watchdog& watchdog() noexcept { return *watchdog_; }
    [[nodiscard]] recipes::mutex& mutex() noexcept { return *mutex_; }
    /// Also in a forked child, as soon as something is asked there.
    [[nodiscard]] bool closed() const noexcept { return closed_; }
    /// Requires: closed().
    [[nodiscard]] core::answer refusal() const;

    [[nodiscard]] statistics stats();

  private:
    client_core(std::unique_ptr<surroundings> around,
                std::unique_ptr<store::store> opened,
                const client_options& options);

    /// A forked child has none of our threads, and locks and queues as they were in that moment:
    /// nothing of it may be used. What is run there finds the client closed.
    [[nodiscard]] bool noticed_fork() noexcept {
        const bool forked = made_here_.forked();
        closed_ = closed_ || forked;
        return forked;
    }

    void begin_end() override;
    [[nodiscard]] bool settled() const override;
    void finish_end() override;

    const store::process_mark made_here_;
    const std::unique_ptr<surroundings> around_;
    const core::environment env_;
    const std::function<void(log_level, std::string_view)> log_;
    mutable std::mutex log_mutex_;

    std::unique_ptr<store::store> store_;
    std::unique_ptr<core::batcher> batcher_;
    std::unique_ptr<core::undo> undo_;
    std::unique_ptr<core::watchdog> watchdog_;
    std::unique_ptr<recipes::mutex> mutex_;
    std::atomic<bool> closed_{false};
    std::atomic<bool> close_called_{false};
    std::shared_ptr<client_core> left_alone_;  ///< in a forked child: itself, for ever
};

/// What a public lease points to.
struct lease_handle {
    std::shared_ptr<client_core> core;
    recipes::lease_ptr state;
};

/// Makes public objects from ours, and the reverse.
struct lease_access {
    static lease make(std::shared_ptr<client_core> core, recipes::lease_ptr state);
    static lease_set make(const std::shared_ptr<client_core>& core,
                          std::vector<recipes::lease_ptr> states);
    static client make(std::shared_ptr<client_core> core);
    static const std::shared_ptr<lease_handle>& handle(const lease& held) noexcept;
    static std::shared_ptr<lease_handle> take(lease& held) noexcept;
    static const std::shared_ptr<client_core>& core(const client& of) noexcept;
    /// Gives a lease back without waiting for the store.
    static void drop(std::shared_ptr<lease_handle> handle) noexcept;
};

}  // namespace dibs::detail
