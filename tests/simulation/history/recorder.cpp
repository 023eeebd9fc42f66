// SPDX-License-Identifier: Apache-2.0
#include "simulation/history/recorder.hpp"

#include <array>

namespace dibs::simulation {

void recorder::line::begin(std::string_view name) {
    *to_ += ",\"";
    *to_ += name;
    *to_ += "\":";
}

recorder::line& recorder::line::text(std::string_view name, std::string_view value) {
    begin(name);
    *to_ += '"';
    for (const char letter : value) {
        if (letter == '"' || letter == '\\') {
            *to_ += '\\';
        }
        *to_ += static_cast<unsigned char>(letter) < 0x20U ? ' ' : letter;
    }
    *to_ += '"';
    return *this;
}

recorder::line& recorder::line::flag(std::string_view name, bool value) {
    begin(name);
    *to_ += value ? "true" : "false";
    return *this;
}

// Half of a holder id tells the few of one run apart.
recorder::line& recorder::line::holder(std::string_view name, const core::holder_id& value) {
    begin(name);
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<char, 16> shown{};
    for (std::size_t at = 0; at < shown.size() / 2; ++at) {
        const auto byte = std::to_integer<unsigned>(value.bytes[at]);
        shown[2 * at] = digits[byte >> 4U];
        shown[2 * at + 1] = digits[byte & 15U];
    }
    *to_ += '"';
    to_->append(shown.data(), shown.size());
    *to_ += '"';
    return *this;
}

recorder::line& recorder::line::raw(std::string_view name, std::string_view json) {
    begin(name);
    *to_ += json;
    return *this;
}

recorder::line recorder::event(std::string_view op) {
    char digits[24];
    text_ += "{\"seq\":";
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, events_++).ptr);
    text_ += ",\"sim_ns\":";
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, world_.now().count()).ptr);
    text_ += ",\"op\":\"";
    text_ += op;
    text_ += '"';
    return line{text_};
}

recorder::line recorder::event(std::string_view op, std::string_view phase) {
    char digits[24];
    text_ += "{\"seq\":";
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, events_++).ptr);
    text_ += ",\"sim_ns\":";
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, world_.now().count()).ptr);
    text_ += ",\"op\":\"";
    text_ += op;
    text_ += "\",\"ph\":\"";
    text_ += phase;
    text_ += '"';
    return line{text_};
}

std::uint64_t digest(std::string_view text) noexcept {
    std::uint64_t sum = 0xCBF29CE484222325U;
    for (const char letter : text) {
        sum = (sum ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
    }
    return sum;
}

}  // namespace dibs::simulation
