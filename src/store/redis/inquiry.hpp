// SPDX-License-Identifier: Apache-2.0
#pragma once
// Single questions to the server by whoever may wait for the answer: an operator's command, and the
// opening of a store. Not on the executor.

#include "core/environment.hpp"
#include "store/redis/engine.hpp"
#include "store/redis/resp.hpp"

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::redis {

/// An answer that outlives the connection's reader.
struct heard {
    std::string fault;               ///< empty: it was answered without one
    std::vector<std::string> texts;  ///< all of it, without its structure
};

/// Blocks for a few seconds at most.
[[nodiscard]] heard ask(engine& through,
                        core::environment env,
                        std::initializer_list<std::string_view> words);

/// The same for a command in bytes. `take` sees the reply, on the thread that does the I/O. The
/// fault, if there is one.
[[nodiscard]] std::string ask(engine& through,
                              core::environment env,
                              std::string bytes,
                              std::function<void(const reply&)> take);

}  // namespace dibs::store::redis
