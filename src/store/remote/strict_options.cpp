// SPDX-License-Identifier: Apache-2.0
#include "store/remote/strict_options.hpp"

#include "core/duration.hpp"
#include "core/key.hpp"

#include <chrono>
#include <stdexcept>

namespace dibs::store::remote {

namespace {

constexpr core::microseconds usual_longest_ttl = std::chrono::minutes{1};

}  // namespace

bool strict_options::knows(std::string_view name) noexcept {
    return name == "guarantee" || name == "max_ttl";
}

bool strict_options::take(std::string_view name, const std::string& value, std::string& fault) {
    if (name == "guarantee") {
        strict_ = value == "strict";
        if (!strict_) {
            fault = "guarantee is strict, or left out, not " + core::printable(value);
        }
        return strict_;
    }
    try {
        longest_ = core::parse_duration(value);
    } catch (const std::invalid_argument& wrong) {
        fault = "max_ttl " + std::string{wrong.what()};
        return false;
    }
    if (*longest_ < std::chrono::seconds{1} || *longest_ > std::chrono::hours{24}) {
        fault = "max_ttl is between 1s and 24h";
        return false;
    }
    return true;
}

std::optional<core::microseconds> strict_options::longest_ttl(std::string& fault) const {
    if (longest_ && !strict_) {
        fault = "max_ttl goes with guarantee=strict";
        return std::nullopt;
    }
    return strict_ ? longest_.value_or(usual_longest_ttl) : core::microseconds{0};
}

}  // namespace dibs::store::remote
