// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bad settings are refused before anything is sent, never repaired silently.

#include "recipes/mutex.hpp"
#include "store/store.hpp"

#include <dibs/options.hpp>

#include <chrono>
#include <string>

namespace dibs::detail {

/// Empty when the options are fine for this store; else which one is wrong, with both numbers.
[[nodiscard]] std::string fault_of_options(const acquire_options& options,
                                           const store::capabilities& caps);

/// The same for a ttl alone.
[[nodiscard]] std::string fault_of_ttl(std::chrono::milliseconds ttl,
                                       const store::capabilities& caps);

/// Requires: fault_of_options found nothing.
[[nodiscard]] recipes::mutex_terms terms_of(const acquire_options& options);

}  // namespace dibs::detail
