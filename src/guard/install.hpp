// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data layer put into a database.

#include <string>

namespace dibs::guard {

/// Makes what is missing in the schema, and replaces the functions. `url`: as libpq takes it.
/// Errors: dibs::error; `newer_format` when a newer release was installed.
void install(const std::string& url, const std::string& schema);

}  // namespace dibs::guard
