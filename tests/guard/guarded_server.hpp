// SPDX-License-Identifier: Apache-2.0
#pragma once
// A server with the data layer in it.

#include "guard/install.hpp"
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dibs::testing {

class guarded_server : public postgres_server {
  public:
    explicit guarded_server(words settings = {}) : postgres_server(std::move(settings)) {
        guard::install(url(), "dibs");
    }
    /// What guard_report() says of a table.
    [[nodiscard]] std::string refused(const std::string& table) const {
        return ask("SELECT refused FROM dibs.guard_report() WHERE relation = '" + table + "'");
    }
    [[nodiscard]] std::string refused_claims() const {
        return ask("SELECT refused FROM dibs.guard_report() WHERE relation IS NULL");
    }
};

/// Takes away what version 3 of the guard brought, beside its functions.
inline constexpr const char* as_of_before_version_3 =
    "DO $$ BEGIN FOR r IN 1..2 LOOP FOR c IN 0..31 LOOP EXECUTE "
    "format('DROP SEQUENCE dibs.refused_%s_%s', r, c); END LOOP; END LOOP; END $$";

/// Whether the answer is an error of that state.
[[nodiscard]] inline bool is_error(const std::string& answer, const std::string& state) {
    return answer.starts_with(state + ": ");
}

}  // namespace dibs::testing
