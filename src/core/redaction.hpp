// SPDX-License-Identifier: Apache-2.0
#pragma once
// Secrets are blanked before anything is shown, stored or handed on: in the URL of a store, and in
// the command line that others are told when they find a key held. One place for all, so that what
// is a secret here is one there.
//
// A guess by form and by name: it errs towards blanking too much, and what has neither a telling
// form nor a telling name is not found. Secrets do not belong on command lines.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::core {

/// What stands where a secret stood.
inline constexpr std::string_view blank = "***";

/// Whether an option, variable, parameter or field of this name holds a secret.
[[nodiscard]] bool speaks_of_a_secret(std::string_view name);

/// A text that was given as a store's URL: the password is blanked, and the value of every option
/// that is not known to be harmless. Stricter than a command line, since whatever stands there is
/// about a store.
[[nodiscard]] std::string redacted_url(std::string_view url);

/// A command line, word by word.
[[nodiscard]] std::vector<std::string> redacted_words(std::span<const std::string> words);

/// A command line as one text; its blanks and quotes stay as they are.
[[nodiscard]] std::string redacted_text(std::string_view command);

}  // namespace dibs::core
