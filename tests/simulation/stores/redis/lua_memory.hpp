// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for Lua that is kept for the next who asks: a script makes thousands of small things per
// call, and lets go of all of them.

#include <cstddef>

namespace dibs::simulation::redis {

/// For lua_newstate. Thread safety: none.
void* lua_memory(void* nobody, void* given, std::size_t size, std::size_t wanted) noexcept;

}  // namespace dibs::simulation::redis
