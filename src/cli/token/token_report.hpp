// SPDX-License-Identifier: Apache-2.0
#pragma once
// How `dibs token` tells a token, and how one stands.

#include "cli/token/token_options.hpp"

#include <dibs/info.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace dibs::cli {

struct told_token {
    std::string name;
    std::string value;
    std::uint64_t fence = 0;
    std::uint64_t generation = 0;
    std::optional<std::chrono::milliseconds> valid_for;  ///< empty: for ever
};

[[nodiscard]] std::string show_token(const told_token& token, token_output as);

/// Without the token itself. Errors: failure, when the key is used for something else.
[[nodiscard]] std::string show_token_status(const dibs::record& record,
                                            const std::string& store,
                                            bool json);

}  // namespace dibs::cli
