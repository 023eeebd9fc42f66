// SPDX-License-Identifier: Apache-2.0
#include "cli/token/token_answer.hpp"

#include "cli/output/exit_status.hpp"
#include "core/key.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

namespace dibs::cli {

namespace {

using json = nlohmann::json;
using core::microseconds;
using recipes::fetched;

/// Errors of RFC 6749 5.2 after which the same request would get the same answer.
constexpr std::array<std::string_view, 7> final_errors{"invalid_grant",
                                                       "invalid_client",
                                                       "unauthorized_client",
                                                       "unsupported_grant_type",
                                                       "invalid_scope",
                                                       "invalid_request",
                                                       "access_denied"};

/// By default the provider may have been asked, and have answered.
fetched failed(std::string why, fetched::ending how = fetched::ending::unknown) {
    fetched made;
    made.how = how;
    made.trouble = core::printable(why);
    return made;
}

std::string_view without_line_end(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
        text.remove_suffix(1);
    }
    return text;
}

/// Some providers give numbers as text.
std::optional<microseconds> seconds_in(const json& object, const char* name) {
    const auto at = object.find(name);
    if (at == object.end()) {
        return std::nullopt;
    }
    double seconds = -1;
    if (at->is_number()) {
        seconds = at->get<double>();
    } else if (at->is_string()) {
        const auto& text = at->get_ref<const std::string&>();
        const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
        if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) {
            return std::nullopt;
        }
    }
    constexpr double most = 1e9;
    if (!std::isfinite(seconds) || seconds < 0) {
        return std::nullopt;
    }
    return std::chrono::duration_cast<microseconds>(
        std::chrono::duration<double>(std::min(seconds, most)));
}

std::string text_in(const json& object, const char* name) {
    const auto at = object.find(name);
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

/// Some answers always have the field, and nothing in it when there is no error.
bool tells_error(const json& answer) {
    const auto at = answer.find("error");
    return at != answer.end() && *at != json() && *at != json("") && *at != json(false);
}

fetched error_in(const json& answer) {
    auto error = text_in(answer, "error");
    if (error.empty()) {
        error = "an error";
    }
    const auto more = text_in(answer, "error_description");
    const bool final =
        std::find(final_errors.begin(), final_errors.end(), error) != final_errors.end();
    auto made = failed("the provider answered " + error + (more.empty() ? "" : ": " + more),
                       final ? fetched::ending::refused : fetched::ending::failed);
    made.retry_after = seconds_in(answer, "retry_after");
    return made;
}

fetched value_in(const json& answer, std::optional<microseconds> life) {
    fetched made;
    made.value = text_in(answer, "access_token");
    if (made.value.empty()) {
        return failed("the command's answer has no access_token");
    }
    const auto told = seconds_in(answer, "expires_in");
    if (!told && !life) {
        return failed("the command's answer has no expires_in, and --life is not given");
    }
    made.how = fetched::ending::good;
    made.life = told ? *told : *life;
    if (auto successor = text_in(answer, "refresh_token"); !successor.empty()) {
        made.successor = std::move(successor);
    }
    return made;
}

}  // namespace

fetched answer_of(const captured_run& run, std::optional<std::chrono::milliseconds> life) {
    const auto text = without_line_end(run.output);
    const auto answer =
        !text.empty() && text.front() == '{' ? json::parse(text, nullptr, false) : json();
    if (answer.is_object() && tells_error(answer)) {
        return error_in(answer);
    }
    if (run.timed_out) {
        // What has come whole is not thrown away: a credential in it may be the only one.
        auto made = answer.is_object() ? value_in(answer, life) : fetched{};
        return made.how == fetched::ending::good
                   ? made
                   : failed("the command did not end in time (--timeout)");
    }
    if (run.status != 0) {
        const bool killed = run.status > exit_status::signal_base;
        return failed("the command ended with status " + std::to_string(run.status),
                      run.status == exit_status::refused ? fetched::ending::refused
                      : killed                           ? fetched::ending::unknown
                                                         : fetched::ending::failed);
    }
    if (run.too_long) {
        return failed("the command wrote more than 1 MiB");
    }
    if (text.empty()) {
        return failed("the command wrote nothing");
    }
    if (text.front() == '{') {
        return answer.is_object() ? value_in(answer, life)
                                  : failed("the command's answer is no JSON");
    }
    if (text.find('\n') != std::string_view::npos) {
        return failed("the command wrote more than one line, and no JSON");
    }
    // A page that tells of an error would be everybody's token for as long as --life says.
    if (text.find_first_of(" \t\r\f\v") != std::string_view::npos) {
        return failed(
            "the command wrote more than one word, which is no token; with curl, "
            "--fail-with-body tells an error of the provider");
    }
    if (!life) {
        return failed(
            "how long the value lasts is unknown: give --life, or let the command write "
            "JSON with expires_in");
    }
    fetched made;
    made.how = fetched::ending::good;
    made.value = text;
    made.life = *life;
    return made;
}

}  // namespace dibs::cli
