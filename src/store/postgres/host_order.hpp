// SPDX-License-Identifier: Apache-2.0
#pragma once
// The hosts of a URL that names several. libpq tries them in turn when it blocks; a connection that is
// polled stays with one that takes it and says nothing, so who polls begins anew with the next one.

#include <cstddef>
#include <string>

namespace dibs::store::postgres {

/// As libpq takes them, with commas between.
struct host_order {
    std::string hosts;
    std::string addresses;
    std::string ports;
    std::size_t count = 1;
};

/// Of a URL that libpq understands.
[[nodiscard]] host_order hosts_of(const std::string& uri);

/// The same, beginning with the next one.
[[nodiscard]] host_order next_first(host_order order);

}  // namespace dibs::store::postgres
