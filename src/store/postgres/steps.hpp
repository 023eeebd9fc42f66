// SPDX-License-Identifier: Apache-2.0
#pragma once
// Verbs as parameters of lease_execute_1 and lease_list_1 (schema.sql), and rows as answers.

#include "core/verbs.hpp"
#include "store/postgres/wire.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::postgres {

/// Who asks.
struct caller {
    std::string process;               ///< drawn at opening
    std::string who;                   ///< a party as text (remote/party_text.hpp)
    std::string prefix;                ///< before every key
    std::string where;                 ///< the store, for people
    core::microseconds longest_ttl{};  ///< with guarantee=strict; else 0
};

/// An entry that makes no sense is refused before it is sent.
[[nodiscard]] std::optional<core::answer> fault_of(const core::verb& what);

/// The order in which the server takes them: by key, and of one key releases and renewals first.
[[nodiscard]] std::vector<std::uint32_t> order_of(const std::vector<core::entry>& entries,
                                                  std::vector<std::uint32_t> which);

[[nodiscard]] parameters parameters_of(const std::vector<core::entry>& entries,
                                       const std::vector<std::uint32_t>& which,
                                       const caller& self,
                                       bool alone,
                                       core::microseconds patience);

/// Fills in the answers of those that were executed; `locked` gets the others. False: the rows are
/// not those of our function.
[[nodiscard]] bool read_answers(const PGresult& told,
                                const std::vector<core::entry>& entries,
                                const std::vector<std::uint32_t>& which,
                                const caller& self,
                                answers& replies,
                                std::vector<std::uint32_t>& locked);

[[nodiscard]] parameters listing_parameters(const std::string& prefix,
                                            const std::string& after,
                                            std::size_t limit,
                                            const caller& self);
[[nodiscard]] bool read_page(const PGresult& told, const caller& self, core::page& into);

}  // namespace dibs::store::postgres
