// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/redis/script_engine.hpp"

#include "simulation/stores/redis/lua_memory.hpp"

#include <lua.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace dibs::simulation::redis {

namespace {

void push(lua_State* state, std::string_view text) {
    lua_pushlstring(state, text.data(), text.size());
}

std::string_view text_at(lua_State* state, int index) {
    std::size_t size = 0;
    const char* text = lua_tolstring(state, index, &size);
    return text == nullptr ? std::string_view{} : std::string_view{text, size};
}

/// As "%.17g" does, which takes long.
std::string_view as_redis_spells(double number, std::array<char, 32>& text) {
    constexpr double exact = 9007199254740992.0;
    if (number > -exact && number < exact) {
        const auto whole = static_cast<std::int64_t>(number);
        if (static_cast<double>(whole) == number && (whole != 0 || !std::signbit(number))) {
            const auto end = std::to_chars(text.data(), text.data() + text.size(), whole).ptr;
            return {text.data(), static_cast<std::size_t>(end - text.data())};
        }
    }
    const int length = std::snprintf(text.data(), text.size(), "%.17g", number);
    return {text.data(), static_cast<std::size_t>(length)};
}

void set_field(lua_State* state, const char* name, std::string_view text) {
    push(state, text);
    lua_setfield(state, -2, name);
}

/// What a command told, as a script sees it: nothing is false, a status and an error are tables.
void push(lua_State* state, const told& what) {
    luaL_checkstack(state, 4, "a reply is nested too deeply");
    switch (what.what) {
        case told::form::nothing:
            lua_pushboolean(state, 0);
            break;
        case told::form::integer:
            lua_pushnumber(state, static_cast<lua_Number>(what.number));
            break;
        case told::form::text:
            push(state, what.text);
            break;
        case told::form::status:
        case told::form::error:
            lua_createtable(state, 0, 1);
            set_field(state, what.what == told::form::error ? "err" : "ok", what.text);
            break;
        case told::form::array:
            lua_createtable(state, static_cast<int>(what.items.size()), 0);
            for (std::size_t at = 0; at < what.items.size(); ++at) {
                push(state, what.items[at]);
                lua_rawseti(state, -2, static_cast<int>(at + 1));
            }
            break;
    }
}

/// What a script returns, as a caller sees it. Numbers lose their fraction, and an array ends where
/// nothing is.
told take(lua_State* state, int index) {
    switch (lua_type(state, index)) {
        case LUA_TNUMBER:
            return told::of(static_cast<std::int64_t>(lua_tonumber(state, index)));
        case LUA_TSTRING:
            return told::of(std::string{text_at(state, index)});
        case LUA_TBOOLEAN:
            return lua_toboolean(state, index) != 0 ? told::of(std::int64_t{1}) : told{};
        case LUA_TTABLE:
            break;
        default:
            return {};
    }
    luaL_checkstack(state, 4, "an answer is nested too deeply");
    for (const auto& [field, is] :
         {std::pair{"err", told::form::error}, {"ok", told::form::status}}) {
        lua_pushstring(state, field);
        lua_rawget(state, index);
        if (lua_type(state, -1) == LUA_TSTRING) {
            told found{is, 0, std::string{text_at(state, -1)}, {}};
            lua_pop(state, 1);
            return found;
        }
        lua_pop(state, 1);
    }
    std::vector<told> items;
    for (int at = 1;; ++at) {
        lua_rawgeti(state, index, at);
        if (lua_isnil(state, -1)) {
            lua_pop(state, 1);
            return told::array(std::move(items));
        }
        items.push_back(take(state, lua_gettop(state)));
        lua_pop(state, 1);
    }
}

void set_global(lua_State* state, const char* name, std::span<const std::string_view> words) {
    lua_createtable(state, static_cast<int>(words.size()), 0);
    for (std::size_t at = 0; at < words.size(); ++at) {
        push(state, words[at]);
        lua_rawseti(state, -2, static_cast<int>(at + 1));
    }
    lua_setglobal(state, name);
}

int error_reply(lua_State* state) {
    const std::string text{text_at(state, 1)};
    lua_createtable(state, 0, 1);
    set_field(state, "err", text);
    return 1;
}

int engine_key = 0;  // its address names the engine in the registry

/// Rubbish is collected when there is so much of it, in per cent of the rest.
constexpr int rubbish_allowed = 400;

int append_bytes(lua_State*, const void* bytes, std::size_t size, void* to) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
    return 0;
}

/// What scripts of this program were compiled to, by their text.
std::map<std::string, std::string, std::less<>>& bytecode() {
    static std::map<std::string, std::string, std::less<>> all;
    return all;
}

}  // namespace

void script_engine::close::operator()(lua_State* state) const noexcept {
    lua_close(state);
}

script_engine::script_engine() : state_(lua_newstate(&lua_memory, nullptr)) {
    auto* state = state_.get();
    if (state == nullptr) {
        throw std::runtime_error{"no memory for Lua"};
    }
    lua_gc(state, LUA_GCSETPAUSE, rubbish_allowed);
    for (const auto& [name, open] : {std::pair<const char*, lua_CFunction>{"", &luaopen_base},
                                     {LUA_TABLIBNAME, &luaopen_table},
                                     {LUA_STRLIBNAME, &luaopen_string},
                                     {LUA_MATHLIBNAME, &luaopen_math}}) {
        lua_pushcfunction(state, open);
        lua_pushstring(state, name);
        lua_call(state, 1, 0);
    }
    lua_pushlightuserdata(state, &engine_key);
    lua_pushlightuserdata(state, this);
    lua_rawset(state, LUA_REGISTRYINDEX);

    lua_createtable(state, 0, 3);
    lua_pushcfunction(state, &call_or_throw);
    lua_setfield(state, -2, "call");
    lua_pushcfunction(state, &call_protected);
    lua_setfield(state, -2, "pcall");
    lua_pushcfunction(state, &error_reply);
    lua_setfield(state, -2, "error_reply");
    lua_setglobal(state, "redis");

    lua_createtable(state, 0, 1);
    scripts_ = luaL_ref(state, LUA_REGISTRYINDEX);
}

script_engine::~script_engine() = default;

bool script_engine::knows(std::string_view name) const {
    auto* state = state_.get();
    lua_rawgeti(state, LUA_REGISTRYINDEX, scripts_);
    push(state, name);
    lua_rawget(state, -2);
    const bool found = !lua_isnil(state, -1);
    lua_pop(state, 2);
    return found;
}

std::string script_engine::compile(const std::string& text) {
    auto* state = state_.get();
    auto& known = bytecode();
    const auto found = known.find(text);
    const std::string& source = found == known.end() ? text : found->second;
    if (luaL_loadbuffer(state, source.data(), source.size(), "@user_script") != 0) {
        std::string fault{text_at(state, -1)};
        lua_pop(state, 1);
        return fault;
    }
    if (found == known.end()) {
        lua_dump(state, &append_bytes, &known[text]);
    }
    return {};
}

std::string script_engine::load(std::string_view name, std::string_view text) {
    auto* state = state_.get();
    auto found = compiled_.find(text);
    if (found == compiled_.end()) {
        found = compiled_.emplace(text, LUA_NOREF).first;
        if (auto fault = compile(found->first); !fault.empty()) {
            compiled_.erase(found);
            return fault;
        }
        found->second = luaL_ref(state, LUA_REGISTRYINDEX);
    }
    lua_rawgeti(state, LUA_REGISTRYINDEX, scripts_);
    push(state, name);
    lua_rawgeti(state, LUA_REGISTRYINDEX, found->second);
    lua_rawset(state, -3);
    lua_pop(state, 1);
    return {};
}

void script_engine::forget_all() {
    auto* state = state_.get();
    lua_createtable(state, 0, 1);
    lua_rawseti(state, LUA_REGISTRYINDEX, scripts_);
}

told script_engine::run(std::string_view name,
                        std::span<const std::string_view> keys,
                        std::span<const std::string_view> arguments,
                        const command& carry_out) {
    auto* state = state_.get();
    set_global(state, "KEYS", keys);
    set_global(state, "ARGV", arguments);
    command_ = &carry_out;
    lua_rawgeti(state, LUA_REGISTRYINDEX, scripts_);
    push(state, name);
    lua_rawget(state, -2);
    const int failed = lua_pcall(state, 0, 1, 0);
    command_ = nullptr;
    told answer = take(state, lua_gettop(state));
    if (failed != 0 && answer.what != told::form::error) {
        answer = told::error("ERR " + answer.text + " script: " + std::string{name});
    }
    lua_settop(state, 0);
    return answer;
}

/// Leaves the reply on the stack. False: it is an error.
bool script_engine::carry_out(lua_State* state) {
    lua_pushlightuserdata(state, &engine_key);
    lua_rawget(state, LUA_REGISTRYINDEX);
    auto* engine = static_cast<script_engine*>(lua_touserdata(state, -1));
    lua_pop(state, 1);
    auto& words = engine->words_;
    words.clear();
    engine->numbers_.clear();
    for (int at = 1; at <= lua_gettop(state); ++at) {
        words.push_back(
            lua_type(state, at) == LUA_TNUMBER
                ? as_redis_spells(lua_tonumber(state, at), engine->numbers_.emplace_back())
                : text_at(state, at));
    }
    const told reply = (*engine->command_)(words);
    push(state, reply);
    return reply.what != told::form::error;
}

int script_engine::call_or_throw(lua_State* state) {
    // No object with a destructor may live here: lua_error jumps.
    return carry_out(state) ? 1 : lua_error(state);
}

int script_engine::call_protected(lua_State* state) {
    static_cast<void>(carry_out(state));
    return 1;
}

}  // namespace dibs::simulation::redis
