// SPDX-License-Identifier: Apache-2.0
#pragma once
// Verbs as parameters of lease_execute_1 and lease_list_1 (schema.sql) or session_execute_1
// (advisory/session.sql), and rows as answers.

#include "core/verbs.hpp"
#include "store/postgres/short_way.hpp"
#include "store/postgres/wire.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::postgres {

class session;

/// Who asks.
struct caller {
    std::string process;               ///< drawn at opening
    std::string who;                   ///< a party as text (remote/party_text.hpp)
    std::string prefix;                ///< before every key
    std::string where;                 ///< the store, for people
    core::microseconds longest_ttl{};  ///< with guarantee=strict; else 0
    std::shared_ptr<session> own{};    ///< whose locks are the leases; null: leases are rows
    std::shared_ptr<short_way_habits> short_way = std::make_shared<short_way_habits>();
};

/// An entry that makes no sense is refused before it is sent.
[[nodiscard]] std::optional<core::answer> fault_of(const core::verb& what);

/// The order in which the server takes them: by key, and of one key releases and renewals first.
[[nodiscard]] std::vector<std::uint32_t> order_of(const std::vector<core::entry>& entries,
                                                  std::vector<std::uint32_t> which);

/// What a session has of the advisory lock of an entry.
struct stand {
    enum whose : std::int64_t { nothing = 0, its_own = 1, another = 2 };
    std::int64_t lock = 0;
    whose has = nothing;
};

/// The parameters of lease_execute_1, or, with a stand for each entry, of session_execute_1.
[[nodiscard]] parameters parameters_of(const std::vector<core::entry>& entries,
                                       const std::vector<std::uint32_t>& which,
                                       const caller& self,
                                       bool alone,
                                       core::microseconds patience,
                                       const std::vector<stand>& stands = {});

/// Fills in the answers of those that were executed; `locked` gets the others. False: the rows are
/// not those of our function.
[[nodiscard]] bool read_answers(const PGresult& told,
                                const std::vector<core::entry>& entries,
                                const std::vector<std::uint32_t>& which,
                                const caller& self,
                                answers& replies,
                                std::vector<std::uint32_t>& locked);

/// Of a simple entry (arguments.hpp) that was carried out.
[[nodiscard]] core::answer short_answer(const core::verb& what,
                                        std::int64_t now,
                                        std::int64_t first,
                                        std::int64_t last);

[[nodiscard]] parameters listing_parameters(const std::string& prefix,
                                            const std::string& after,
                                            std::size_t limit,
                                            const caller& self);
[[nodiscard]] bool read_page(const PGresult& told, const caller& self, core::page& into);

}  // namespace dibs::store::postgres
