// SPDX-License-Identifier: Apache-2.0
#include "core/payload.hpp"

#include <variant>

namespace dibs::core {

const std::string* payload_of(const verb& what) noexcept {
    if (const auto* asked = std::get_if<acquire>(&what)) {
        return asked->mark ? &asked->mark->value : nullptr;
    }
    if (const auto* ended = std::get_if<release>(&what)) {
        return ended->result ? &ended->result->value : nullptr;
    }
    const auto* held = std::get_if<block>(&what);
    return held != nullptr ? &held->reason : nullptr;
}

}  // namespace dibs::core
