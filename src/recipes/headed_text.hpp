// SPDX-License-Identifier: Apache-2.0
#pragma once
// A result whose first line is a JSON object that tells kind and format, and is fit to be shown; what follows is not.

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace dibs::recipes {

struct headed_text {
    nlohmann::ordered_json head;
    std::string_view rest;  ///< of the text that was read
    bool newer =
        false;  ///< of a format that this release does not know: only kind and format are sure
};

/// Empty: it is nothing of that kind.
[[nodiscard]] std::optional<headed_text> headed_text_of(std::string_view text,
                                                        std::string_view kind,
                                                        int format);

/// The first line alone of what is of that kind, of any format; other text as it is.
[[nodiscard]] std::string head_alone(std::string text, std::string_view kind);

/// `head` needs no kind and no format.
[[nodiscard]] std::string with_head(const nlohmann::ordered_json& head,
                                    std::string_view kind,
                                    int format,
                                    std::string_view rest);

}  // namespace dibs::recipes
