// SPDX-License-Identifier: Apache-2.0
// dibs config show: which settings are in force, and where each of them comes from.
#include "cli/options/command_support.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/json.hpp"
#include "cli/output/redact.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/run_options.hpp"
#include "core/key.hpp"

#include <dibs/options.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::cli {

namespace {

constexpr std::array options{
    json_option,
    store_option,
    help_option,
};

constexpr std::array<std::string_view, 1> what_there_is{"show"};

const command_syntax syntax{
    .name = "config",
    .usage = "dibs config show [OPTIONS]",
    .summary =
        "Tells each setting, its value (secrets blanked) and where it comes from: flag, "
        "environment, file\n"
        "or default, in this order.",
    .options = options,
    .operands_max = 1,
    .choices = what_there_is,
    .notes =
        "Of ./dibs.toml, $XDG_CONFIG_HOME/dibs/config.toml (or ~/.config/dibs/config.toml) and "
        "/etc/dibs/config.toml\n"
        "the first one that is there counts, alone. Its keys are store, ttl, grace and held_code.\n"
        "A text or a duration is in quotes: ttl = \"1m\". Unknown keys are errors.\n"
        "\n"
        "exit status: 0; 64 usage; 78 the file or a variable is wrong.",
    .examples = "  dibs config show\n  dibs config show --json",
};

struct setting {
    std::string name;
    std::string value;
    std::string origin;  ///< flag, environment, file, default
    std::string place;   ///< the name of the flag, the variable or the file; empty with default
};

setting store_setting(const store_choice& chosen, const file_settings& file) {
    setting told{"store", redact_url(chosen.url), "default", ""};
    switch (chosen.from) {
        case store_choice::source::flag:
            told.origin = "flag";
            told.place = "--store";
            break;
        case store_choice::source::environment:
            told.origin = "environment";
            told.place = "DIBS_STORE";
            break;
        case store_choice::source::file:
            told.origin = "file";
            told.place = file.path;
            break;
        case store_choice::source::built_in:
            break;
    }
    return told;
}

setting file_setting(std::string name,
                     const std::optional<std::string>& in_file,
                     std::string otherwise,
                     const file_settings& file) {
    return in_file ? setting{std::move(name), *in_file, "file", file.path}
                   : setting{std::move(name), std::move(otherwise), "default", ""};
}

std::optional<std::string> written(const std::optional<std::chrono::milliseconds>& length) {
    return length ? std::optional(write_duration(*length)) : std::nullopt;
}

std::vector<setting> settings_in_force(const store_choice& chosen, const file_settings& file) {
    const run_options defaults;
    return {
        store_setting(chosen, file),
        file_setting("ttl", written(file.ttl), write_duration(acquire_options{}.ttl), file),
        file_setting("grace", written(file.grace), "5s, or a sixth of the ttl if less", file),
        file_setting("held_code",
                     file.held_code ? std::optional(std::to_string(*file.held_code)) : std::nullopt,
                     std::to_string(defaults.held_code),
                     file)};
}

std::string as_text(const std::vector<setting>& all) {
    std::string text;
    for (const auto& one : all) {
        std::string line = one.name;
        line.resize(12, ' ');
        line += core::printable(one.value, 500);
        line.resize(std::max<std::size_t>(48, line.size() + 2), ' ');
        text +=
            line + one.origin + (one.place.empty() ? "" : " " + core::printable(one.place)) + "\n";
    }
    return text;
}

std::string as_json(const std::vector<setting>& all) {
    std::vector<json_object> told;
    for (const auto& one : all) {
        told.push_back({{"name", one.name},
                        {"value", one.value},
                        {"origin", one.origin},
                        {"place", one.place}});
    }
    return list_json(told) + "\n";
}

}  // namespace

const command_syntax& config_syntax() {
    return syntax;
}

int config_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    if (found.operands.empty() || found.operands.front() != "show") {
        throw usage_error("config what? there is: dibs config show");
    }
    const auto where = real_surroundings();
    const auto file = find_settings(where);
    const auto* flag = found.value("store") != nullptr ? found.value("store") : global.store;
    // Looks alone: makes no default store.
    const auto all = settings_in_force(choose_store(flag, file, where), file);
    deliver(found.has("json") ? as_json(all) : as_text(all));
    return exit_status::ok;
}

}  // namespace dibs::cli
