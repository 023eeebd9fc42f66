// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a command line of `dibs token` asks for.

#include "cli/options/option_table.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace dibs::cli {

enum class token_action { get, refresh, status, forget, new_key };
enum class token_output { text, json, env, header };

struct token_options {
    token_action action = token_action::get;
    std::string name;
    std::chrono::milliseconds wait = std::chrono::seconds{30};
    bool patient = false;  ///< waits for the store, too
    std::chrono::milliseconds min_life = std::chrono::seconds{10};
    std::chrono::milliseconds timeout = std::chrono::seconds{30};  ///< of the command
    std::chrono::milliseconds ttl = std::chrono::seconds{30};
    std::optional<std::chrono::milliseconds> life;
    unsigned refresh_permille = 800;
    std::uint64_t seen = 0;
    bool rotating = false;
    bool retry_after_doubt = false;
    bool plaintext = false;
    std::string key_file;
    token_output output = token_output::text;
};

/// Errors: usage_error.
[[nodiscard]] token_options check_token_options(const arguments& found);

/// The keys that seal what is kept: of --seal-key, the environment, or the credentials of a systemd unit. Without
/// a value none was given. Errors: failure; also where one was given and is empty.
[[nodiscard]] std::optional<std::string> sealing_keys(const token_options& options);

}  // namespace dibs::cli
