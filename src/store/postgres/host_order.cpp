// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/host_order.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <string_view>

namespace dibs::store::postgres {

namespace {

std::size_t named_in(const std::string& list) {
    return static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) + 1;
}

/// One for all stays where it is.
void turn(std::string& list) {
    if (const auto comma = list.find(','); comma != std::string::npos) {
        list = list.substr(comma + 1) + "," + list.substr(0, comma);
    }
}

}  // namespace

host_order hosts_of(const std::string& uri) {
    host_order order;
    auto* options = ::PQconninfoParse(uri.c_str(), nullptr);
    for (auto* one = options; one != nullptr && one->keyword != nullptr; ++one) {
        if (one->val == nullptr) {
            continue;
        }
        const std::string_view name{one->keyword};
        if (name == "host") {
            order.hosts = one->val;
        } else if (name == "hostaddr") {
            order.addresses = one->val;
        } else if (name == "port") {
            order.ports = one->val;
        }
    }
    ::PQconninfoFree(options);
    order.count = std::max(named_in(order.hosts), named_in(order.addresses));
    return order;
}

host_order next_first(host_order order) {
    turn(order.hosts);
    turn(order.addresses);
    turn(order.ports);
    return order;
}

}  // namespace dibs::store::postgres
