// SPDX-License-Identifier: Apache-2.0
#include "checker/words.hpp"

#include <array>
#include <string_view>

namespace dibs_checker {
namespace {

struct unit {
    std::uint64_t ns;
    std::string_view name;
    std::size_t digits;
};
constexpr std::array<unit, 4> units{
    {{1'000'000'000, "s", 9}, {1'000'000, "ms", 6}, {1'000, "µs", 3}, {1, "ns", 0}}};

}  // namespace

std::string time_text(std::int64_t ns) {
    // The smallest number has no positive counterpart.
    const auto size =
        ns < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
    const auto* chosen = &units.back();
    for (const auto& candidate : units) {
        if (size >= candidate.ns) {
            chosen = &candidate;
            break;
        }
    }
    std::string made = (ns < 0 ? "-" : "") + std::to_string(size / chosen->ns);
    if (const auto rest = size % chosen->ns; rest != 0) {
        auto digits = std::to_string(rest);
        digits.insert(0, chosen->digits - digits.size(), '0');
        digits.erase(digits.find_last_not_of('0') + 1);
        made += "." + digits;
    }
    made += " ";
    made += chosen->name;
    return made;
}

std::string at_text(std::int64_t sim_ns) {
    return "at " + time_text(sim_ns);
}

std::string quoted(const std::string& text) {
    static constexpr std::string_view hex = "0123456789abcdef";
    std::string made = "\"";
    for (const char letter : text) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte < 0x20 || byte == 0x7f) {
            made += "\\x";
            made += hex[byte >> 4U];
            made += hex[byte & 15U];
        } else {
            if (letter == '"' || letter == '\\') {
                made += '\\';
            }
            made += letter;
        }
    }
    return made + "\"";
}

std::string name_in(const history& of, text_id id) {
    return quoted(of.texts.text(id));
}

std::string process_in(const history& of, text_id id) {
    return "process " + name_in(of, id);
}

}  // namespace dibs_checker
