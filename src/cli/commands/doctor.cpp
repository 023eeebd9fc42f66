// SPDX-License-Identifier: Apache-2.0
// dibs doctor: what this store's place and settings allow to go wrong.
#include "cli/commands/crowds.hpp"
#include "cli/options/command_support.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"
#include "client/operator/diagnosis.hpp"
#include "core/key.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace dibs::cli {

namespace {

using store::finding;

constexpr std::array options{
    json_option,
    store_option,
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "doctor",
    .usage = "dibs doctor [OPTIONS]",
    .summary =
        "Looks at the store: its place and rights, its settings, its records and processes, the "
        "clocks.\n"
        "Each finding is ok, a warning (works, and should be looked at) or a problem, with what to "
        "do.",
    .options = options,
    .notes =
        "exit status: 0 no problem; 1 a problem, also that the store cannot be opened; 64 usage; "
        "78 configuration.\n"
        "\n"
        "It makes no store, and changes nothing in one. In a PostgreSQL database without the "
        "tables "
        "it tells\n"
        "what it can without them.",
    .examples = "  dibs doctor\n  dibs doctor --store sqlite:/var/lib/app/locks.db --json",
};

std::string_view grade_name(finding::grade state) {
    switch (state) {
        case finding::grade::ok:
            return "ok";
        case finding::grade::warning:
            return "warning";
        case finding::grade::problem:
            break;
    }
    return "problem";
}

void examine(const store_choice& chosen, std::vector<finding>& findings) {
    if (is_not_made_yet(chosen)) {
        findings.push_back({"store", finding::grade::warning, not_made_yet(chosen), {}});
        return;
    }
    if (auto told = detail::survey(chosen.url); !told.empty()) {
        findings = std::move(told);
        return;
    }
    try {
        auto through = open_client(chosen, "dibs doctor");
        const auto info = through.store();
        findings.push_back({"store", finding::grade::ok, info.location, {}});
        const bool alone = info.name == "memory";
        findings.push_back({"scope",
                            alone ? finding::grade::problem : finding::grade::ok,
                            "excludes: " + info.scope,
                            alone ? "it excludes nobody else; choose another store" : ""});
        const auto told = detail::diagnose(through);
        findings.insert(findings.end(), told.begin(), told.end());
        const auto crowds = crowded_keys(through);
        findings.insert(findings.end(), crowds.begin(), crowds.end());
    } catch (const failure& fault) {
        findings.push_back({"store", finding::grade::problem, fault.what(), {}});
    }
}

std::string as_text(const std::vector<finding>& findings) {
    std::string text;
    for (const auto& one : findings) {
        std::string start(grade_name(one.state));
        start.resize(9, ' ');
        start += one.subject;
        start.resize(std::max<std::size_t>(25, start.size() + 2), ' ');
        text += start + core::printable(one.what, 500) + "\n";
        if (!one.advice.empty()) {
            text += std::string(25, ' ') + "-> " + one.advice + "\n";
        }
    }
    return text;
}

std::string as_json(const std::vector<finding>& findings) {
    std::vector<json_object> all;
    for (const auto& one : findings) {
        all.push_back({{"subject", one.subject},
                       {"state", std::string(grade_name(one.state))},
                       {"what", one.what},
                       {"advice", one.advice}});
    }
    return list_json(all) + "\n";
}

}  // namespace

const command_syntax& doctor_syntax() {
    return syntax;
}

int doctor_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto* flag = found.value("store") != nullptr ? found.value("store") : global.store;
    const auto chosen = settle_store(
        flag, find_settings(real_surroundings()), found.has("quiet"), store_use::existing);
    std::vector<finding> findings;
    examine(chosen, findings);
    const bool sick = std::any_of(findings.begin(), findings.end(), [](const finding& one) {
        return one.state == finding::grade::problem;
    });
    if (found.has("quiet")) {
        std::erase_if(findings, [](const finding& one) { return one.state == finding::grade::ok; });
    }
    deliver(found.has("json") ? as_json(findings) : as_text(findings));
    return sick ? exit_status::trouble : exit_status::ok;
}

}  // namespace dibs::cli
