// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lease on its way from process to process: made into text by one, taken over by another. What
// the blocking and the asynchronous calls are made of.
//
// Thread safety: hand_over and adopt on the executor; the rest anywhere.

#include "client/client_core.hpp"
#include "client/leases/handed_over.hpp"
#include "core/unique_function.hpp"

#include <dibs/options.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace dibs::detail {

struct hand_over_outcome {
    std::string text;  ///< empty with an error: the lease then stays with its holder, if it is held
    std::error_code error;
    std::string detail;  ///< with `error`: the store's words, if it said any
};

/// Detaches the lease from this process and ends it here. It holds nothing afterwards, as after a
/// release, but in the store it lives on until it is adopted or expires.
void hand_over(std::shared_ptr<lease_handle> handle,
               core::unique_function<void(hand_over_outcome&&)> done);

/// The same, awaited: as lease::hand_over. On any thread.
[[nodiscard]] hand_over_outcome hand_over_and_wait(lease& held) noexcept;

/// An adoption that was asked for.
struct adoption {
    handed_over text;
    acquire_options options;
};

/// Empty when there is something wrong with the text or the options: `error` and `message` say what.
[[nodiscard]] std::optional<adoption> checked_adoption(client_core& core,
                                                       std::string_view text,
                                                       const acquire_options& options,
                                                       std::error_code& error,
                                                       std::string& message);

struct adoption_outcome {
    recipes::lease_ptr lease;
    std::error_code error;
    std::string detail;
};

/// Takes the lease over under a new holder id. One that was perhaps taken over, and that nobody
/// will be told of, is given back in the background.
void adopt(const std::shared_ptr<client_core>& core,
           const adoption& asked,
           core::unique_function<void(adoption_outcome&&)> done);

}  // namespace dibs::detail
