// SPDX-License-Identifier: Apache-2.0
#include "cli/token/token_options.hpp"

#include "cli/commands.hpp"
#include "cli/options/command_support.hpp"
#include "cli/options/common_options.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/failure.hpp"
#include "core/key.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;

constexpr std::array options{
    option{"wait",
           'w',
           "DURATION",
           "wait so long for a fetch, here or elsewhere (default 30s);\nwhen it is given, for the "
           "store, too"},
    option{"min-life",
           0,
           "DURATION",
           "a token that lasts less is fetched anew (default 10s);\nit is given all the same if "
           "there is no better one"},
    option{"seen",
           0,
           "FENCE",
           "get: the token with this fence (see -o json) was refused (401);\na newer one is "
           "fetched, once for all who say so"},
    option{"refresh-at", 0, "PART", "part of its life after which a token is due (default 0.8)"},
    option{"life", 0, "DURATION", "how long a token lasts whose answer does not tell"},
    option{"timeout", 0, "DURATION", "how long COMMAND may take (default 30s)"},
    option{"rotating",
           0,
           "",
           "the first credential, too, can be used once only\n(a later one that COMMAND gives as "
           "refresh_token always counts as such)"},
    option{"retry-after-doubt",
           0,
           "",
           "use a credential again whose use may have been interrupted,\nfor providers that allow "
           "that for a while"},
    option{"ttl",
           0,
           "DURATION",
           "how long a crash in the middle of a fetch holds others up\n(default 30s)"},
    option{"seal-key",
           0,
           "FILE",
           "keys that encrypt what the store keeps, newest first\n(default: $DIBS_SEAL_KEYS, then "
           "$CREDENTIALS_DIRECTORY/dibs-seal-keys)"},
    option{"plaintext", 0, "", "let a store on the network keep it unencrypted"},
    option{"output", 'o', "FORMAT", "text (default), json, env, header"},
    common::json,
    common::store,
    common::help,
};

constexpr std::array<std::string_view, 5> actions{"get", "refresh", "status", "forget", "new-key"};

const command_syntax syntax{
    .name = "token",
    .usage =
        "dibs token (get | refresh) [OPTIONS] NAME [--] COMMAND [ARGUMENTS]\n"
        "       dibs token (status | forget) [OPTIONS] NAME\n"
        "       dibs token new-key",
    .summary =
        "Gives a valid token of NAME. All processes that use NAME on the same store share it; "
        "COMMAND is run "
        "when\na new one is due, by one of them.",
    .options = options,
    .operands_max = 2,
    .command_follows = true,
    .choices = actions,
    .notes =
        "COMMAND writes what a token endpoint answers: {\"access_token\": …, \"expires_in\": "
        "SECONDS,\n"
        "\"refresh_token\": …}, so it may be curl; or the token alone, with --life. It reads the "
        "last\n"
        "refresh_token as a line from its stdin, which is empty when there is none yet. "
        "{\"error\":\n\"invalid_grant\"} and "
        "status 77 say that trying again is of no use; any other error is tried again later, "
        "after\n"
        "\"retry_after\" seconds if it has that. It finds DIBS_TOKEN_NAME and DIBS_FENCE in its "
        "environment.\n"
        "\n"
        "get prints the token that all share, and fetches one when it is due. refresh fetches one "
        "in any\n"
        "case. status tells how it stands, without the token. forget lets go of token, credential "
        "and\n"
        "failures: after a new login. new-key prints a key for --seal-key.\n"
        "\n"
        "NAME tells all that the token depends on: tenant, client, audience, scopes. No secret "
        "belongs\n"
        "into it.\n"
        "\n"
        "exit status: 0 with a token; 69 the fetch failed, or the store cannot be reached; 75 the "
        "wait is\n"
        "over; 77 there is no valid token and none to be had; 64 usage; 78 configuration, or a key "
        "that does\n"
        "not fit.",
    .examples =
        "  dibs token get crm -- curl -sS https://id.example/token -d "
        "grant_type=client_credentials "
        "-K client.conf\n"
        "  dibs token get crm -o header -- ./fetch-token\n"
        "  set=$(dibs token get crm -o env -- ./fetch-token) && eval \"$set\"   # DIBS_TOKEN, "
        "DIBS_TOKEN_FENCE\n"
        "  dibs token get crm --seen \"$DIBS_TOKEN_FENCE\" -- ./fetch-token   # after a 401\n"
        "  dibs token status crm",
};

unsigned permille_of(const std::string& text) {
    double part = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), part);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || !(part >= 0.05) ||
        !(part <= 0.95)) {
        throw usage_error("--refresh-at " + as_given(text) + ": must be from 0.05 to 0.95");
    }
    return static_cast<unsigned>(std::lround(part * 1000));
}

token_action action_of(const std::string& text) {
    for (std::size_t at = 0; at < actions.size(); ++at) {
        if (actions[at] == text) {
            return static_cast<token_action>(at);
        }
    }
    throw usage_error(as_given(text) + ": must be get, refresh, status, forget or new-key");
}

token_output output_of(const std::string& text) {
    if (text == "text") {
        return token_output::text;
    }
    if (text == "json") {
        return token_output::json;
    }
    if (text == "env") {
        return token_output::env;
    }
    if (text == "header") {
        return token_output::header;
    }
    throw usage_error("--output " + as_given(text) + ": must be text, json, env or header");
}

void duration_into(const arguments& found, std::string_view name, milliseconds& into, bool zero) {
    if (!found.has(name)) {
        return;
    }
    into = duration_value(found, name);
    if (!zero && into <= milliseconds::zero()) {
        throw usage_error("--" + std::string(name) + " " + as_given(*found.value(name)) +
                          ": must be longer than zero");
    }
}

constexpr std::size_t keys_bytes_max = 64 * 1024;

/// A group may read it, as with the key of a certificate.
bool is_open_to_all(const std::string& path) {
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
           (found.st_mode & (S_IRWXO | S_IWGRP | S_IXGRP)) != 0;
}

std::string keys_from(const std::string& path, std::string_view named_by) {
    std::ifstream from(path, std::ios::binary);
    std::string text(keys_bytes_max, '\0');
    from.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!from.eof()) {
        throw configuration_error(std::string(named_by) + " " + as_given(path) +
                                  ": cannot be read, or is longer than 64 KiB");
    }
    text.resize(static_cast<std::size_t>(from.gcount()));
    return text;
}

}  // namespace

const command_syntax& token_syntax() {
    return syntax;
}

token_options check_token_options(const arguments& found) {
    if (found.operands.empty()) {
        throw usage_error(
            "get, refresh, status, forget or new-key is missing; see dibs token --help");
    }
    token_options checked;
    checked.action = action_of(found.operands.front());
    const bool fetches =
        checked.action == token_action::get || checked.action == token_action::refresh;
    if (checked.action == token_action::new_key) {
        if (found.operands.size() > 1 || !found.command.empty()) {
            throw usage_error("new-key takes nothing more");
        }
        return checked;
    }
    if (found.operands.size() < 2) {
        throw usage_error("NAME is missing; see dibs token --help");
    }
    checked.name = found.operands[1];
    if (const auto fault = core::fault_of_key(checked.name); !fault.empty()) {
        throw usage_error("NAME: " + fault);
    }
    if (fetches && found.command.empty()) {
        throw usage_error("COMMAND is missing; see dibs token --help");
    }
    if (!fetches && !found.command.empty()) {
        throw usage_error(found.operands.front() + " takes no command");
    }
    duration_into(found, "wait", checked.wait, true);
    checked.patient = found.has("wait");
    duration_into(found, "min-life", checked.min_life, true);
    duration_into(found, "timeout", checked.timeout, false);
    duration_into(found, "ttl", checked.ttl, false);
    if (found.has("life")) {
        milliseconds life{};
        duration_into(found, "life", life, false);
        checked.life = life;
    }
    if (const auto* part = found.value("refresh-at")) {
        checked.refresh_permille = permille_of(*part);
    }
    if (found.has("seen")) {
        checked.seen = fence_value(found, "seen");
    }
    checked.rotating = found.has("rotating");
    checked.retry_after_doubt = found.has("retry-after-doubt");
    checked.plaintext = found.has("plaintext");
    if (const auto* file = found.value("seal-key")) {
        if (checked.plaintext) {
            throw usage_error("--seal-key and --plaintext contradict each other");
        }
        if (file->empty()) {
            throw usage_error("--seal-key is empty: name a file; is a variable unset?");
        }
        checked.key_file = *file;
    }
    if (const auto* format = found.value("output")) {
        checked.output = output_of(*format);
    }
    if (found.has("json")) {
        checked.output = token_output::json;
    }
    return checked;
}

std::optional<std::string> sealing_keys(const token_options& options) {
    if (options.plaintext) {
        return std::nullopt;
    }
    if (!options.key_file.empty()) {
        if (is_open_to_all(options.key_file)) {
            throw configuration_error("--seal-key " + as_given(options.key_file) +
                                      ": others can read or change this file; chmod 600 it, or "
                                      "640 for a group, and make a new key if others are on this "
                                      "machine");
        }
        return keys_from(options.key_file, "--seal-key");
    }
    if (const char* keys = std::getenv("DIBS_SEAL_KEYS"); keys != nullptr) {
        if (*keys == '\0') {
            throw configuration_error(
                "DIBS_SEAL_KEYS is set, and empty: give it a key (`dibs token new-key`), or unset "
                "it; --plaintext stores tokens as they are");
        }
        return keys;
    }
    if (const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
        folder != nullptr && *folder != '\0') {
        const auto file = std::string(folder) + "/dibs-seal-keys";
        if (::access(file.c_str(), F_OK) == 0) {
            return keys_from(file, "the systemd credential");
        }
    }
    return std::nullopt;
}

}  // namespace dibs::cli
