// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/environment.hpp"
#include "store/record/watch_book.hpp"

#include <functional>
#include <string>
#include <system_error>

namespace dibs::store::remote {

/// What tells a store's waiters and holders, on the executor, what its connection heard.
struct announcements {
    std::function<core::task(std::string key, watch_book::stay, std::error_code)> entered;
    std::function<core::task(std::string key, wake_by)> woken;
    std::function<core::task()> doubted;  ///< grants may have ended
};

}  // namespace dibs::store::remote
