// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text of errors: which key, which store, what happened.

#include <string>
#include <string_view>

namespace dibs::detail {

struct lease_handle;

/// "lease of KEY (fence N, store URL): WHAT". Null: an empty handle.
[[nodiscard]] std::string complaint(const lease_handle* about, std::string_view what);

/// "key KEY (store URL): WHAT".
[[nodiscard]] std::string complaint(std::string_view key,
                                    std::string_view store,
                                    std::string_view what);

}  // namespace dibs::detail
