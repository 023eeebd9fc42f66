// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a script as a Redis server does: Lua 5.1, KEYS and ARGV, redis.call and redis.pcall.

#include "simulation/stores/redis/told.hpp"

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct lua_State;

namespace dibs::simulation::redis {

class script_engine {
  public:
    using command = std::function<told(std::span<const std::string_view> words)>;

    script_engine();
    ~script_engine();
    script_engine(const script_engine&) = delete;
    script_engine& operator=(const script_engine&) = delete;

    [[nodiscard]] bool knows(std::string_view name) const;
    /// Keeps a script under its name. An error that names the line, if it cannot be compiled.
    [[nodiscard]] std::string load(std::string_view name, std::string_view text);
    void forget_all();

    /// A script that is known. `carry_out` is what redis.call and redis.pcall do.
    [[nodiscard]] told run(std::string_view name,
                           std::span<const std::string_view> keys,
                           std::span<const std::string_view> arguments,
                           const command& carry_out);

  private:
    struct close {
        void operator()(lua_State* state) const noexcept;
    };
    /// Leaves its function on the stack. An error that names the line, if it cannot be compiled.
    [[nodiscard]] std::string compile(const std::string& text);
    static int call_or_throw(lua_State* state);
    static int call_protected(lua_State* state);
    [[nodiscard]] static bool carry_out(lua_State* state);

    std::unique_ptr<lua_State, close> state_;
    int scripts_ = 0;  ///< registry reference of the table of scripts
    /// Registry references of what was compiled once, by its text: a server forgets scripts far more
    /// often here than in earnest.
    std::map<std::string, int, std::less<>> compiled_;
    const command* command_ = nullptr;
    // Of the command under way.
    std::vector<std::string_view> words_;
    std::deque<std::array<char, 32>> numbers_;
};

}  // namespace dibs::simulation::redis
