// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a URL to a store.

#include "core/environment.hpp"
#include "store/finding.hpp"
#include "store/store.hpp"
#include "store/url.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace dibs::store {

struct open_context {
    core::party who;                         ///< told to those who find a key held
    std::function<core::store_now()> clock;  ///< of this host, for stores without a server
};

struct opened {
    std::unique_ptr<store> made;  ///< null: see `error`
    std::error_code error;
    std::string detail;  ///< which URL (password blanked), what happened, what to do
};

/// Blocks until the store is open or is known not to be.
[[nodiscard]] opened open(std::string_view url, core::environment env, open_context context);

/// Of a place where nobody has made a store yet: what may go wrong there, found without making one.
/// Empty: there is one, or stores of this kind are never made, or nothing can be told without. Blocks
/// as `open`.
[[nodiscard]] std::vector<finding> survey(std::string_view url, core::environment env);

/// The URL as it may be shown: its password blanked.
[[nodiscard]] std::string shown_url(std::string_view url);

}  // namespace dibs::store
