// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a Redis server tells to a command, also inside of a script.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dibs::simulation::redis {

struct told {
    enum class form : std::uint8_t { nothing, integer, text, status, error, array };

    form what = form::nothing;
    std::int64_t number = 0;
    std::string text;
    std::vector<told> items;

    [[nodiscard]] static told of(std::int64_t number) { return {form::integer, number, {}, {}}; }
    [[nodiscard]] static told of(std::string text) { return {form::text, 0, std::move(text), {}}; }
    [[nodiscard]] static told status(std::string text) {
        return {form::status, 0, std::move(text), {}};
    }
    [[nodiscard]] static told error(std::string text) {
        return {form::error, 0, std::move(text), {}};
    }
    [[nodiscard]] static told array(std::vector<told> items) {
        return {form::array, 0, {}, std::move(items)};
    }

    friend bool operator==(const told&, const told&) = default;
};

/// As RESP2.
void write(std::string& out, const told& what);

}  // namespace dibs::simulation::redis
