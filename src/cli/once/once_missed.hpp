// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several slots after one another, or none: --missed of `dibs once`. Each slot has a process of its own, since whoever runs
// a command under a lease has to fork its guard before the first thread, and the store's client has threads.

#include "cli/once/once_options.hpp"
#include "cli/settings/settings.hpp"

namespace dibs::cli {

/// The exit status: the first that is not 0.
[[nodiscard]] int run_due_slots(const once_options& options, const store_choice& store);

}  // namespace dibs::cli
