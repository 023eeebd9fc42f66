// SPDX-License-Identifier: Apache-2.0
#include "core/duration.hpp"

#include <array>
#include <cstdint>
#include <stdexcept>

namespace dibs::core {

namespace {

using std::chrono::milliseconds;

struct unit {
    std::string_view name;
    std::int64_t ms;
};
constexpr std::array units{unit{"ms", 1},
                           unit{"s", 1'000},
                           unit{"m", 60'000},
                           unit{"h", 3'600'000},
                           unit{"d", 86'400'000}};

constexpr std::int64_t ms_max = 36'500 * std::int64_t{86'400'000};

bool is_digit(char character) noexcept {
    return character >= '0' && character <= '9';
}

std::size_t digits_at(std::string_view text, std::size_t from) noexcept {
    std::size_t to = from;
    while (to < text.size() && is_digit(text[to])) {
        ++to;
    }
    return to - from;
}

}  // namespace

milliseconds parse_duration(std::string_view text) {
    if (text.empty()) {
        throw std::invalid_argument("is empty; write a number and a unit, such as 30s");
    }
    if (text[0] == '-') {
        throw std::invalid_argument("is negative");
    }
    const auto whole = digits_at(text, 0);
    std::size_t at = whole;
    std::size_t fraction = 0;
    if (whole > 0 && at < text.size() && text[at] == '.') {
        fraction = digits_at(text, at + 1);
        at += 1 + fraction;
    }
    if (whole == 0 || (at > whole && fraction == 0)) {
        throw std::invalid_argument("is not a duration; write a number and a unit, such as 30s");
    }
    const auto suffix = text.substr(at);
    if (suffix.empty()) {
        throw std::invalid_argument("has no unit; write " + std::string(text) + "s or " +
                                    std::string(text) + "ms");
    }
    const unit* chosen = nullptr;
    for (const auto& candidate : units) {
        if (candidate.name == suffix) {
            chosen = &candidate;
        }
    }
    if (chosen == nullptr) {
        throw std::invalid_argument("has an unknown unit; the units are ms, s, m, h and d");
    }
    // Exact decimal arithmetic: a limit that is compared later must not depend on how a fraction
    // rounds.
    std::int64_t total = 0;
    for (const char digit : text.substr(0, whole)) {
        total = total * 10 + (digit - '0');
        if (total * chosen->ms > ms_max) {
            throw std::invalid_argument("is too long; at most 36500d");
        }
    }
    total *= chosen->ms;
    // value of the fraction = digits * unit / 10^places; trailing zeros add nothing.
    auto decimals = text.substr(at - fraction, fraction);
    while (!decimals.empty() && decimals.back() == '0') {
        decimals.remove_suffix(1);
    }
    if (decimals.size() > 9) {
        throw std::invalid_argument("is finer than a millisecond");
    }
    std::int64_t numerator = 0;
    std::int64_t denominator = 1;
    for (const char digit : decimals) {
        numerator = numerator * 10 + (digit - '0');
        denominator *= 10;
    }
    if (numerator * chosen->ms % denominator != 0) {
        throw std::invalid_argument("is finer than a millisecond");
    }
    total += numerator * chosen->ms / denominator;
    if (total > ms_max) {
        throw std::invalid_argument("is too long; at most 36500d");
    }
    return milliseconds{total};
}

std::string write_duration(milliseconds length) {
    const unit* best = units.data();
    for (const auto& larger : units) {
        if (length.count() != 0 && length.count() % larger.ms == 0) {
            best = &larger;
        }
    }
    return std::to_string(length.count() / best->ms) + std::string(best->name);
}

std::string show_duration(std::chrono::microseconds length) {
    const auto ms = std::chrono::duration_cast<milliseconds>(length).count();
    if (ms < 1'000) {
        return std::to_string(ms < 0 ? 0 : ms) + " ms";
    }
    if (ms < 10'000) {
        return std::to_string(ms / 1'000) + "." + std::to_string(ms % 1'000 / 100) + " s";
    }
    const auto seconds = ms / 1'000;
    if (seconds < 60) {
        return std::to_string(seconds) + " s";
    }
    if (seconds < 3'600) {
        return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
    }
    if (seconds < 86'400) {
        return std::to_string(seconds / 3'600) + " h " + std::to_string(seconds % 3'600 / 60) +
               " min";
    }
    return std::to_string(seconds / 86'400) + " d " + std::to_string(seconds % 86'400 / 3'600) +
           " h";
}

}  // namespace dibs::core
