// SPDX-License-Identifier: Apache-2.0
// dibs man: the manual page, from the tables that the parser goes by. The build calls it.
#include "cli/catalogue.hpp"
#include "cli/options/command_support.hpp"
#include "cli/output/speech.hpp"

#include <dibs/version.hpp>

#include <array>
#include <string>
#include <string_view>

namespace dibs::cli {

namespace {

constexpr std::array man_options{
    help_option,
};

const command_syntax syntax{
    .name = "man",
    .usage = "dibs man",
    .summary = "Writes the manual page to stdout, for man -l or mandoc.",
    .options = man_options,
    .examples = "  dibs man > dibs.1",
};

/// Text of ours as text of roff: nothing in it is a request or an escape.
std::string plain(std::string_view text) {
    std::string safe;
    bool begins_line = true;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char character = text[at];
        if (begins_line && (character == '.' || character == '\'')) {
            safe += "\\&";
        }
        begins_line = character == '\n';
        if (character == '\\') {
            safe += "\\e";
        } else if (character == '-') {
            safe += "\\-";
        } else if (text.substr(at).starts_with("…")) {
            safe += "...";
            at += std::string_view("…").size() - 1;
        } else {
            safe += character;
        }
    }
    return safe;
}

/// Lines are joined, and empty ones begin a paragraph.
std::string paragraphs(std::string_view text) {
    std::string roff;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto line = text.substr(0, end);
        roff += line.empty() ? ".PP\n" : plain(line) + "\n";
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
    return roff;
}

std::string verbatim(std::string_view text) {
    return ".PP\n.nf\n" + plain(text) + "\n.fi\n";
}

std::string list_of(std::span<const option> options) {
    std::string roff;
    for (const auto& one : options) {
        roff += ".TP\n";
        if (one.letter != 0) {
            roff += "\\fB\\-" + std::string(1, one.letter) + "\\fR, ";
        }
        roff += "\\fB\\-\\-" + plain(one.name) + "\\fR";
        if (!one.value.empty()) {
            roff += " \\fI" + plain(one.value) + "\\fR";
        }
        roff += "\n" + plain(one.help) + "\n";
    }
    return roff;
}

std::string about(const command_entry& one) {
    const auto& its = one.syntax();
    std::string roff = ".SS " + plain(one.name) + "\n";
    roff += ".nf\n\\fB" + plain(its.usage) + "\\fR\n.fi\n.PP\n";
    roff += paragraphs(its.summary) + list_of(its.options);
    if (!its.notes.empty()) {
        roff += ".PP\n" + paragraphs(its.notes);
    }
    if (!its.examples.empty()) {
        roff += verbatim(its.examples);
    }
    return roff;
}

constexpr std::string_view rest = R"(.SH DURATIONS
A \fIDURATION\fR is a number and a unit, without a blank: 500ms, 30s, 0.5s, 5m, 2h, 1d. A number alone is refused.
.SH EXIT STATUS
.TP
.B 0
Done. Of \fBrun\fR: the command's own status.
.TP
.B 1
Told by \fBcheck\fR, \fBdoctor\fR and the demos: not as it should be. Of \fBbreak\fR: the answer was no.
Of \fBonce\fR: see there.
.TP
.B 64
Wrong usage.
.TP
.B 65
Of \fBidempotent\fR: the key was used with another fingerprint.
.TP
.B 69
The store cannot be reached, or grants nothing now.
.TP
.B 70
A fault of dibs itself.
.TP
.B 71
The system has no process, descriptor or memory left for it.
.TP
.B 74
What was to be told could not be written.
.TP
.B 75
Somebody else holds the key, it is on hold, or the wait is over. Of \fBbreak\fR: the fence has moved on.
.TP
.B 77
Of \fBtoken\fR: there is no valid token, and none to be had until somebody has seen to it. Of \fBidempotent\fR: it
was begun with \fB\-\-at\-most\-once\fR, and has not told how it ended.
.TP
.B 78
Wrong configuration.
.TP
.B 79
The lease was lost.
.TP
.B 124
\fB\-\-max\-runtime\fR was reached.
.TP
.BR 126 ", " 127
The command cannot be executed, was not found.
.SH ENVIRONMENT
.TP
.B DIBS_STORE
The store, unless \fB\-\-store\fR names one.
.TP
.B DIBS_HANDLE
The handle for \fBrenew\fR and \fBrelease\fR.
.TP
.BR DIBS_KEY ", " DIBS_FENCE ", " DIBS_TTL_MS ", " DIBS_DEADLINE_BOOTTIME_NS ", " DIBS_RUN_ID
Set for the command of \fBrun\fR, \fBonce\fR, \fBelect\fR and \fBidempotent\fR.
.TP
.BR DIBS_KEY_2 ", " DIBS_FENCE_2 ", " DIBS_KEY_3 " ..."
Set for the command of \fBrun\fR: each further key (\fB\-\-also\fR) and its fence.
.TP
.BR DIBS_ATTEMPT ", " DIBS_IDEMPOTENCY_KEY
Set for the command of \fBonce\fR and \fBidempotent\fR, too.
.TP
.BR DIBS_JOB ", " DIBS_SLOT
Set for the command of \fBonce\fR, too.
.TP
.B DIBS_TERM
Set for the command of \fBelect\fR, too.
.TP
.B DIBS_HELD_KEYS
Set for all of these, for dibs itself, which knows by it that the holder of a key is you.
.TP
.B DIBS_TOKEN_NAME
Set for the command of \fBtoken\fR, with DIBS_FENCE.
.TP
.B DIBS_SEAL_KEYS
The keys that encrypt tokens in the store, unless \fB\-\-seal\-key\fR names a file of them.
.SH FILES
.TP
.IR ./dibs.toml ", " ~/.config/dibs/config.toml ", " /etc/dibs/config.toml
Settings: store, ttl, grace and held_code. The first one that is there counts, alone; \fBdibs config show\fR tells
which.
.TP
.IR /var/lib/dibs/locks.db ", " $XDG_STATE_HOME/dibs/locks.db
The store of root, and of anybody else (\fI~/.local/state/dibs/locks.db\fR without the variable), unless another one is
named.
)";

std::string page() {
    std::string roff =
        ".TH DIBS 1 \"\" \"dibs " + plain(DIBS_VERSION_STRING) +
        "\" \"User Commands\"\n"
        ".SH NAME\ndibs \\- lets one of many processes at a time do a piece of work\n"
        ".SH SYNOPSIS\n";
    bool first = true;
    for (const auto& one : catalogue()) {
        if (!one.brief.empty()) {
            roff += (first ? "" : ".br\n");
            roff += "\\fBdibs " + plain(one.name) + "\\fR " + plain(one.operands) + "\n";
            first = false;
        }
    }
    roff +=
        ".SH DESCRIPTION\n"
        "A key names what must not be worked on twice at the same time. Whoever acquires it holds "
        "a lease,\nwhich ends by itself unless it is renewed, and a fence: a number that grows "
        "with every grant of the\nkey, so that data can refuse a writer that is late.\n"
        ".SH OPTIONS\n";
    roff += list_of(main_syntax().options) + ".SH COMMANDS\n";
    for (const auto& one : catalogue()) {
        if (!one.brief.empty()) {
            roff += about(one);
        }
    }
    return roff + std::string(rest);
}

}  // namespace

const command_syntax& man_syntax() {
    return syntax;
}

int man_command(words given) {
    const auto found = parse_arguments(syntax, given);
    if (!helped(syntax, found)) {
        deliver(page());
    }
    return exit_status::ok;
}

}  // namespace dibs::cli
