// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client, or why there is none.

#include <dibs/client.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace dibs::detail {

/// The throwing constructor's text without the exception.
[[nodiscard]] std::optional<client> open_client(std::string_view url,
                                                client_options options,
                                                std::error_code& error,
                                                std::string& message) noexcept;

}  // namespace dibs::detail
