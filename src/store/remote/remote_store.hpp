// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stores whose records a server keeps have in common: who waits for which key, what is refused
// once the store is closed or the process was forked, and the order of the end.

#include "core/environment.hpp"
#include "store/mailbox.hpp"
#include "store/process_mark.hpp"
#include "store/record/watch_book.hpp"
#include "store/remote/announcements.hpp"
#include "store/remote/leader.hpp"
#include "store/remote/listing.hpp"
#include "store/remote/trouble.hpp"
#include "store/remote/urgency.hpp"
#include "store/store.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

namespace dibs::store::remote {

/// How long a listing, or another look at many records, may take.
inline constexpr core::nanoseconds list_within = std::chrono::seconds{30};

/// Tells processes apart in a server: 16 digits.
[[nodiscard]] std::string draw_process(core::entropy& random);

/// Opens a store: null, and `error` and `detail` set, when it cannot be had. `make` may throw.
[[nodiscard]] std::unique_ptr<store> opened(
    const std::function<std::unique_ptr<store>(trouble&)>& make,
    std::error_code& error,
    std::string& detail);

class remote_store : public store {
  public:
    [[nodiscard]] const std::string& location() const noexcept final { return location_; }

    void execute(lane which, std::vector<core::entry> batch, batch_completion done) final;
    watch_id watch(std::string_view key, watch_completion ready, wake_callback wake) final;
    void unwatch(watch_id id) final;
    watch_id await_notices(std::string_view key, wake_callback wake) final;
    void list(std::string prefix, std::string after, std::size_t limit, page_completion done) final;
    void tell_doubts(std::function<void()> told) final { doubts_ = std::move(told); }
    void close() final;

    void begin_assist() noexcept final { lead().begin_assist(); }
    bool assist() noexcept final { return lead().assist(); }
    void end_assist() noexcept final { lead().end_assist(); }

  protected:
    remote_store(core::environment env, std::string location);

    /// For the one that leads. Valid for as long as this store is open.
    [[nodiscard]] announcements announce();
    [[nodiscard]] const std::shared_ptr<mailbox>& box() const noexcept { return box_; }

    [[nodiscard]] virtual leader& lead() noexcept = 0;
    virtual void submit(urgency how, std::vector<core::entry> batch, batch_completion done) = 0;
    virtual void submit(listing wanted, core::instant deadline) = 0;
    virtual void subscribe(const std::string& key, watch_book::stay which) = 0;
    virtual void unsubscribe(const std::string& key) = 0;
    /// Whether somebody waits for what this process is told by itself. Where `caps().notifies`.
    virtual void expect_notices(bool /*any*/) {}

    const core::environment env_;

  private:
    [[nodiscard]] bool forked() const noexcept { return made_here_.forked(); }
    [[nodiscard]] bool usable() const noexcept { return !closed_ && !forked(); }
    [[nodiscard]] core::answer why_not() const;

    const std::string location_;
    const process_mark made_here_;
    bool closed_ = false;
    const std::shared_ptr<mailbox> box_;
    watch_book book_;
    std::unordered_set<watch_id> notices_;  ///< of the watchers in the book
    std::function<void()> doubts_;
};

}  // namespace dibs::store::remote
