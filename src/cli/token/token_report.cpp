// SPDX-License-Identifier: Apache-2.0
#include "cli/token/token_report.hpp"

#include "cli/options/duration.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"
#include "core/key.hpp"
#include "recipes/cached/cached_record.hpp"

#include <algorithm>
#include <utility>

namespace dibs::cli {

namespace {

using recipes::cached_record;
using recipes::cached_state;
using std::chrono::milliseconds;

/// For a shell that evaluates it.
std::string in_single_quotes(std::string_view text) {
    std::string made = "'";
    for (const char one : text) {
        made += one == '\'' ? std::string("'\\''") : std::string(1, one);
    }
    return made + "'";
}

bool is_control(char one) {
    return static_cast<unsigned char>(one) < 0x20 || one == 0x7f;
}

json_value whole_ms(core::microseconds span) {
    return span == cached_record::unlimited
               ? json_value(nullptr)
               : json_value(std::chrono::floor<milliseconds>(span).count());
}

std::string shown_span(core::microseconds span) {
    return span == cached_record::unlimited ? "for ever" : "for " + show_duration(span);
}

std::string line(std::string_view name, const std::string& value) {
    constexpr std::size_t column = 12;
    std::string text(name);
    text.resize(std::max(column, text.size() + 1), ' ');
    return text + value + "\n";
}

std::string state_of(const dibs::record& record, const cached_record& kept) {
    switch (kept.state) {
        case cached_state::good:
            return record.kept->fresh ? "good" : "due: whoever asks next fetches a new one";
        case cached_state::fetching:
            return record.holders.empty()
                       ? "a fetch was begun, and its end is not known"
                       : "is being fetched by " + describe_holder(record.holders.front());
        case cached_state::failing:
            return "the last fetch failed (" + std::to_string(kept.failures) +
                   " in a row): " + core::printable(kept.trouble);
        case cached_state::refused:
            return "refused: " + core::printable(kept.trouble);
    }
    return "";
}

}  // namespace

std::string show_token(const told_token& token, token_output as) {
    const auto refuse = [&](const std::string& why) {
        throw failure(exit_status::unavailable, "the token of " + quoted_key(token.name) + why);
    };
    switch (as) {
        case token_output::text:
            return token.value + "\n";
        case token_output::header:
            if (std::any_of(token.value.begin(), token.value.end(), is_control)) {
                refuse(" holds a control character, and cannot be a header");
            }
            return "Authorization: Bearer " + token.value + "\n";
        case token_output::env:
            if (token.value.find('\0') != std::string::npos) {
                refuse(" holds a NUL, and cannot be a variable");
            }
            return "DIBS_TOKEN=" + in_single_quotes(token.value) +
                   "\nDIBS_TOKEN_FENCE=" + std::to_string(token.fence) + "\n";
        case token_output::json:
            break;
    }
    auto told = object_json({{"name", token.name},
                             {"value", token.value},
                             {"fence", token.fence},
                             {"generation", token.generation},
                             {"valid_for_ms",
                              token.valid_for ? json_value(std::int64_t{token.valid_for->count()})
                                              : json_value(nullptr)}},
                            json_layout::one_line);
    // Which is what stands there instead of what is not UTF-8.
    constexpr std::string_view replacement = "\xEF\xBF\xBD";
    if (told.find(replacement) != std::string::npos &&
        token.value.find(replacement) == std::string::npos) {
        refuse(" is not UTF-8, and cannot be told in JSON");
    }
    return told + "\n";
}

std::string show_token_status(const dibs::record& record, const std::string& store, bool json) {
    auto fault = recipes::cached_fault::none;
    std::optional<cached_record> kept;
    if (record.kept) {
        kept = recipes::cached_outline_of(record.kept->value, fault);
        if (!kept) {
            throw configuration_error(quoted_key(record.key) +
                                      (fault == recipes::cached_fault::newer
                                           ? " was written by a newer release"
                                           : " keeps a result that is not a token"));
        }
        kept = recipes::aged(std::move(*kept), record.kept->age);
    }
    if (json) {
        json_object fields{{"name", record.key}, {"store", store}, {"known", kept.has_value()}};
        if (kept) {
            fields.insert(fields.end(),
                          {{"state", std::string(recipes::name_of(kept->state))},
                           {"fresh", record.kept->fresh},
                           {"generation", kept->generation},
                           {"fence", kept->value_fence},
                           {"valid_for_ms",
                            kept->has_value() ? whole_ms(kept->life) : json_value(std::int64_t{0})},
                           {"failures", std::uint64_t{kept->failures}},
                           {"trouble", core::printable(kept->trouble)},
                           {"retry_after_ms", whole_ms(kept->pause)},
                           {"written_by", core::printable(kept->host)},
                           {"written_pid", kept->pid}});
        }
        return object_json(fields) + "\n";
    }
    std::string text = line("token", core::printable(record.key));
    if (!kept) {
        return text + line("state", "nothing is kept: whoever asks next fetches one");
    }
    text += line("state", state_of(record, *kept));
    const bool valid = kept->has_value() && kept->life > core::microseconds::zero();
    text += line("valid", valid ? shown_span(kept->life) : "no");
    if (kept->has_value()) {
        text += line("generation", std::to_string(kept->generation)) +
                line("fence", std::to_string(kept->value_fence));
    }
    if (kept->state == cached_state::failing || kept->state == cached_state::refused) {
        text += line("fetched",
                     kept->pause == cached_record::unlimited
                         ? "not again until dibs token forget or dibs token refresh"
                         : "not again for " + show_duration(kept->pause));
    }
    return text + line("written",
                       show_duration(record.kept->age) + " ago by " + core::printable(kept->host) +
                           ", pid " + std::to_string(kept->pid));
}

}  // namespace dibs::cli
