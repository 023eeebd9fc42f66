// SPDX-License-Identifier: Apache-2.0
#pragma once
// Secrets are blanked before anything is shown, stored or put into an environment.

#include <span>
#include <string>
#include <string_view>

namespace dibs::cli {

/// The URL with its password, and the values of options that look like secrets, blanked.
[[nodiscard]] std::string redact_url(std::string_view url);

/// Whether redact_url would change it.
[[nodiscard]] bool has_secret(std::string_view url);

/// A command line for people: words with blanks quoted, URLs and `--password=…` and the like
/// blanked, cut to a readable length.
[[nodiscard]] std::string redact_command(std::span<const std::string> words);

}  // namespace dibs::cli
