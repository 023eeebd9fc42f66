// SPDX-License-Identifier: Apache-2.0
// dibs break: an operator takes a lease away.
#include "cli/options/command_support.hpp"
#include "cli/output/speech.hpp"
#include "cli/settings/identity.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace dibs::cli {

namespace {

constexpr std::array options{
    option{"fence", 0, "N", "the fence of the lease to end, as dibs show tells it; needed"},
    option{"yes", 'y', "", "do not ask"},
    store_option,
    key_option,
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "break",
    .usage = "dibs break [OPTIONS] KEY --fence N",
    .summary =
        "Ends the lease of KEY with fence N, whoever holds it, so that somebody else can have the "
        "key. Tells\n"
        "who holds it, and asks; --yes is needed where there is no terminal to ask on.",
    .options = options,
    .operands_max = 1,
    .first_operand = "key",
    .notes =
        "The holder is not asked, and may be at work until its next renewal fails: dibs run then "
        "stops its\n"
        "command. Until then two may be at work, and only data that refuses a late fence is "
        "safe. Where the\n"
        "holder can be reached, end it instead.\n"
        "\n"
        "The fence is needed so that nobody is hit who got the key meanwhile.\n"
        "\n"
        "exit status: 0 ended; 1 the answer was no; 64 usage; 69 store not reachable; 75 the fence "
        "has moved on,\n"
        "nothing was done; 78 configuration.",
    .examples =
        "  dibs break nightly-report --fence 1764460800000000\n"
        "  dibs break nightly-report --fence 1764460800000000 --yes",
};

/// One line from the terminal; empty at its end.
std::string read_answer() {
    std::string line;
    char character = 0;
    while (true) {
        const auto got = ::read(STDIN_FILENO, &character, 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0 || character == '\n') {
            return line;
        }
        line += character;
    }
}

bool wants_it(const std::string& question) {
    const std::string text = "dibs: " + question + " [y/N] ";
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    const auto answer = read_answer();
    return answer == "y" || answer == "Y" || answer == "yes";
}

/// It has no fence that could be named.
bool is_of_another_program(const dibs::record& record) {
    return !record.holders.empty() && record.holders.front().fence == 0;
}

failure moved_on(const std::string& key, std::uint64_t fence, const dibs::record& record) {
    return {exit_status::held,
            "nothing was done: fence " + std::to_string(fence) + " of " + quoted_key(key) +
                " is not the holder's (any more); it " + describe_state(record) +
                (is_of_another_program(record)
                     ? "; a lock of another program is ended by its own means (on Redis: DEL)"
                     : "")};
}

}  // namespace

const command_syntax& break_syntax() {
    return syntax;
}

int break_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto key = key_given(syntax, found);
    if (!found.has("fence")) {
        throw usage_error("--fence is missing; dibs show tells it");
    }
    const auto fence = fence_value(found, "fence");
    const bool can_ask = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
    if (!found.has("yes") && !can_ask) {
        throw usage_error("there is no terminal to ask on; --yes says that you are sure");
    }
    auto store = use_store(global, found, "dibs break", store_use::existing);
    const auto record = look_at(store, key);
    const auto* who = holder_with(record, fence);
    if (who == nullptr) {
        throw moved_on(key, fence, record);
    }
    if (!found.has("quiet") || !found.has("yes")) {
        say(quoted_key(key) + " is held by " + (is_you(*who, key) ? "you, " : "") +
            describe_holder(*who));
    }
    if (!found.has("yes") && !wants_it("end this lease?")) {
        say("nothing was done");
        return exit_status::trouble;
    }
    bool ended = false;
    try {
        ended = store.through.revoke(key, fence);
    } catch (const std::system_error& error) {
        throw store_failure(error.code(), error.what(), store);
    }
    if (!ended) {
        throw moved_on(key, fence, look_at(store, key));
    }
    if (!found.has("quiet")) {
        say("the lease is ended; its holder is told at its next renewal, and may be at work until "
            "then");
    }
    return exit_status::ok;
}

}  // namespace dibs::cli
