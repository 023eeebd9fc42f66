// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keys that seal what is kept of shared values. Text of one key per line, 64 hexadecimal digits (256 bits); '#' begins a
// comment. The first one seals, all of them open, so that keys can be changed: put the new one on top, and take the old
// one away when everything was sealed anew.
//
// AES-256-GCM with a nonce of 96 random bits (NIST SP 800-38D 8.2.2), by OpenSSL. Sealed text: nonce, ciphertext, tag.

#include "recipes/cached/cached_record.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace dibs::detail {

/// Null: `fault` says why; it never shows a key.
[[nodiscard]] std::unique_ptr<recipes::sealer> make_sealer(std::string_view keys,
                                                           std::string& fault);

/// A new key, as a line of text. Empty: this build cannot seal.
[[nodiscard]] std::string new_sealing_key();

}  // namespace dibs::detail
