// SPDX-License-Identifier: Apache-2.0
#include "cli/idempotent/idempotent_options.hpp"

#include "cli/commands.hpp"
#include "cli/options/common_options.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/redact.hpp"
#include "core/sha256.hpp"

#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds usual_keep = std::chrono::hours{7 * 24};
constexpr milliseconds shortest_keep = std::chrono::seconds{1};
constexpr std::streamsize fingerprint_bytes_max = 64 << 20;

constexpr std::array idempotent_table{
    option{"fingerprint",
           0,
           "TEXT",
           "what is asked for; the same KEY with another TEXT is refused (65)"},
    option{"fingerprint-file", 0, "FILE", "the same, as what is in FILE (up to 64 MiB)"},
    option{"wait",
           'w',
           "DURATION",
           "wait so long, or forever, for another one who is at it\n(default: do not wait)"},
    option{"keep",
           0,
           "DURATION",
           "how long the answer is kept, after which KEY is a new one\n(default 7d)"},
    option{"at-most-once", 0, "", "never do what was begun, also after a crash (77 then)"},
    option{"keep-failures",
           0,
           "",
           "a status other than 0 is an answer, too;\nwithout it, nothing is kept then"},
    option{"ttl", 0, "DURATION", "how long a crash holds others up (default 30s)"},
    common::grace,
    common::max_runtime,
    option{"held-code", 'E', "N", "exit with N when another one is at it (default 75)"},
    option{"key", 0, "KEY", "the key, when it begins with a dash"},
    common::status_file,
    common::status_fd,
    common::store,
    option{"verbose", 'v', "", "tell what happens"},
    common::quiet,
    common::help,
};

constexpr std::string_view notes =
    "The first output (stdout) and status are kept under KEY, and given again to whoever asks with "
    "the same\n"
    "KEY and the same fingerprint, on any host that shares the store. Output longer than 1 MiB is "
    "not kept:\n"
    "that counts as a failure (1) which is.\n"
    "\n"
    "exit status: the command's own, or the one that is kept; 65 KEY was used with another "
    "fingerprint;\n"
    "75 another one is at it, and the wait is over; 77 it was begun with --at-most-once and has "
    "not told how\n"
    "it ended; else as for dibs run.\n"
    "\n"
    "A status other than 0 keeps nothing, so that the next one tries again: see --keep-failures. "
    "With\n"
    "--at-most-once every status is kept. A signal that ends the command, or --max-runtime, keeps "
    "nothing\n"
    "either, or with --at-most-once leaves it in doubt.\n"
    "\n"
    "The command finds DIBS_IDEMPOTENCY_KEY (KEY) and DIBS_ATTEMPT in its environment, beside what "
    "dibs run\n"
    "gives. A crash between its effect and the record of it runs it again (DIBS_ATTEMPT is 2 "
    "then): give the\n"
    "key to whatever it calls, or use --at-most-once.";

constexpr std::string_view examples =
    "  dibs idempotent order-4711 --fingerprint-file body.json -- ./charge body.json\n"
    "  dibs idempotent mail-4711 --fingerprint \"$TO\" --at-most-once -- ./send-mail \"$TO\"";

std::string fingerprint_of(const arguments& found) {
    const auto* text = found.value("fingerprint");
    const auto* path = found.value("fingerprint-file");
    if ((text != nullptr) == (path != nullptr)) {
        throw usage_error(
            text != nullptr ? "--fingerprint and --fingerprint-file contradict each other"
                            : "--fingerprint TEXT or --fingerprint-file FILE is missing: it tells "
                              "one request from another under the same key");
    }
    if (text != nullptr) {
        return core::sha256_of(*text);
    }
    std::ifstream from(*path, std::ios::binary);
    std::string bytes;
    std::array<char, 65536> piece{};
    while (from) {
        from.read(piece.data(), piece.size());
        bytes.append(piece.data(), static_cast<std::size_t>(from.gcount()));
        if (bytes.size() > fingerprint_bytes_max) {
            break;
        }
    }
    if (!from.eof()) {
        throw usage_error("--fingerprint-file " + as_given(*path) +
                          ": cannot be read, or is longer than 64 MiB");
    }
    return core::sha256_of(bytes);
}

}  // namespace

idempotent_command_options check_idempotent_options(const arguments& found,
                                                    const file_settings& file) {
    idempotent_command_options checked;
    checked.run = check_run_options(found, file);
    checked.keep_failures = found.has("keep-failures");
    auto& terms = checked.terms;
    terms.key = checked.run.key;
    terms.fingerprint = fingerprint_of(found);
    terms.at_most_once = found.has("at-most-once");
    terms.keep = found.has("keep") ? duration_option(found, "keep") : usual_keep;
    if (terms.keep < shortest_keep) {
        throw usage_error("--keep " + as_given(*found.value("keep")) + ": must be at least 1s");
    }
    terms.command = redact_command(checked.run.command);
    terms.acquire.ttl = checked.run.ttl;
    terms.acquire.renew_every = checked.run.renew_every;
    terms.acquire.wait = checked.run.wait;
    return checked;
}

const command_syntax& idempotent_syntax() {
    static const command_syntax syntax{
        .name = "idempotent",
        .usage =
            "dibs idempotent [OPTIONS] KEY (--fingerprint TEXT | --fingerprint-file FILE) "
            "[--] COMMAND [ARGUMENTS]",
        .summary =
            "Runs COMMAND unless it was run for KEY before; then gives its first output and status "
            "again.",
        .options = idempotent_table,
        .operands_max = 1,
        .command_follows = true,
        .first_operand = "key",
        .notes = notes,
        .examples = examples,
    };
    return syntax;
}

}  // namespace dibs::cli
