// SPDX-License-Identifier: Apache-2.0
#pragma once
// The script of all steps, batch.lua, as it is sent to the server, and the one of listings, scan.lua.

#include <string_view>

namespace dibs::store::redis {

[[nodiscard]] std::string_view script_text() noexcept;
/// Its SHA-1 in hexadecimal digits: the name by which the server knows it.
[[nodiscard]] std::string_view script_name() noexcept;

[[nodiscard]] std::string_view scan_script_text() noexcept;

}  // namespace dibs::store::redis
