// SPDX-License-Identifier: Apache-2.0
#include "cli/options/common_options.hpp"

#include <charconv>
#include <string>

namespace dibs::cli::common {

namespace {

std::uint32_t number_given(const arguments& given, std::string_view name) {
    const auto& text = *given.value(name);
    std::uint32_t number = 0;
    const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool sound = fault == std::errc{} && stop == text.data() + text.size();
    if (!sound || number == 0 || number == mode::unlimited) {
        throw usage_error("--" + std::string(name) + " " + as_given(text) +
                          ": must be a whole number from 1 to 4294967294");
    }
    return number;
}

}  // namespace

mode mode_given(const arguments& given) {
    if (given.has("take") && !given.has("permits")) {
        throw usage_error("--take needs --permits N: how many permits the key has in all");
    }
    if (given.has("shared")) {
        return dibs::shared;
    }
    if (!given.has("permits")) {
        return exclusive;
    }
    const auto capacity = number_given(given, "permits");
    const auto taken = given.has("take") ? number_given(given, "take") : 1;
    if (taken > capacity) {
        throw usage_error("--take " + std::to_string(taken) + ": there are " +
                          std::to_string(capacity) + " permits (--permits)");
    }
    return dibs::permits(taken).of(capacity);
}

}  // namespace dibs::cli::common
