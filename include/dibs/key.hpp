// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keys from parts: "oauth", a tenant, a client, a set of scopes. Pasting them together by hand lets two different things
// meet under one key ("a" + "bc" and "ab" + "c"), or one thing have two.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace dibs {

/// A valid key that is the same for the same parts, and another one for any others.
///
/// Parts of letters, digits and the like stay readable: key_from({"oauth", "acme", "crm"}) is `oauth:acme:crm`. Bytes that
/// mean something in keys are written as %XX, an empty part as %. What would be too long for a key ends with a digest of
/// all of it instead. Requires: at least one part.
[[nodiscard]] std::string key_from(std::initializer_list<std::string_view> parts);

/// A part that is a set of words, such as scopes: `words` has them with spaces between, in any order and number.
[[nodiscard]] std::string set_part(std::string_view words);
/// The same of a list: set_part({"read", "write"}) is set_part("write read"). Words of it may have spaces between them, too.
[[nodiscard]] std::string set_part(std::initializer_list<std::string_view> words);
[[nodiscard]] std::string set_part(std::span<const std::string> words);

}  // namespace dibs
