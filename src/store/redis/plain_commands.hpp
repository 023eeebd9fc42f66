// SPDX-License-Identifier: Apache-2.0
#pragma once
// Commands to a server, one after the other, by whoever is no store: the demos, which show what
// hand-written locks do. Not for stores.

#include "store/redis/address.hpp"
#include "store/redis/link.hpp"

#include <initializer_list>
#include <string>
#include <string_view>

namespace dibs::store::redis {

/// Thread safety: none.
class plain_commands {
  public:
    /// Connects when it is first asked. Errors: std::runtime_error, for a URL that is none of this
    /// store's.
    explicit plain_commands(std::string_view url);

    /// The reply as text; a number in digits, nothing as an empty one, of an array its first item.
    /// Blocks for at most two seconds. Errors: std::runtime_error, naming the server: not reached,
    /// or the server's own words.
    std::string ask(std::initializer_list<std::string_view> words);

  private:
    void wait_for_link(const char* what);

    address where_;
    link line_;
};

}  // namespace dibs::store::redis
