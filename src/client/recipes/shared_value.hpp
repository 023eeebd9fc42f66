// SPDX-License-Identifier: Apache-2.0
#pragma once
// A shared value for blocking callers: the recipe on the client's executor, the fetch on a thread of its own, and a copy
// of what was last read, so that a fresh value costs neither a message nor a change of threads.

#include "client/client_core.hpp"
#include "client/recipes/fetch_thread.hpp"
#include "recipes/cached/cached_value.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace dibs::detail {

struct shared_value {
  public:
    /// Blocks; may throw, which counts as a failure that may be tried again.
    using blocking_fetch = std::function<recipes::fetched(recipes::fetch_request, std::stop_token)>;

    /// `seal` may be null. Requires: terms were checked.
    shared_value(std::shared_ptr<client_core> core,
                 recipes::cached_terms terms,
                 std::unique_ptr<recipes::sealer> seal,
                 blocking_fetch fetch);
    ~shared_value();
    shared_value(const shared_value&) = delete;
    shared_value& operator=(const shared_value&) = delete;

    /// A value that was read a moment ago, without asking anybody; false: there is none. Thread safety: any thread.
    [[nodiscard]] bool read_here(const recipes::cached_wish& wish, std::string& value);

    /// Thread safety: any thread.
    [[nodiscard]] recipes::cached_outcome get(recipes::cached_wish wish, std::stop_token stop);
    /// Values that equal this one are of no use any more. Thread safety: any thread.
    void reject(std::string_view value);
    /// The verdict is `value` when all is forgotten; otherwise `message` tells why not, and names key and store.
    [[nodiscard]] recipes::cached_outcome forget(std::chrono::nanoseconds wait,
                                                 std::string& message);

    /// Waits for a fetch under way, and until the credential that it brought is stored: nobody else has it. Empty, or
    /// what has happened to it, naming key and store. No call comes after this.
    [[nodiscard]] std::string finish() noexcept;

    /// Without a verdict of `value`: an error for callers, and a text that names key and store.
    [[nodiscard]] std::error_code error_of(const recipes::cached_outcome& outcome,
                                           std::string& message) const;

  private:
    void begin_fetch(recipes::fetch_request request,
                     core::unique_function<void(recipes::fetched)> done);
    [[nodiscard]] bool is_good_here(const recipes::cached_wish& wish) const;

    const std::shared_ptr<client_core> core_;
    const std::string key_;
    const std::unique_ptr<recipes::sealer> seal_;
    blocking_fetch fetch_;
    std::stop_source stop_;
    fetch_thread thread_;
    std::unique_ptr<recipes::cached_value> recipe_;  ///< made and used on the executor alone

    std::mutex mutex_;
    std::optional<recipes::cached_outcome> last_;  ///< a value, as it was told last
    core::fence_number rejected_ = 0;
};

}  // namespace dibs::detail
