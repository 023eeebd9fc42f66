// SPDX-License-Identifier: Apache-2.0
#include "checker/command.hpp"

#include "checker/checks/checks.hpp"
#include "checker/picture.hpp"
#include "checker/reader.hpp"
#include "checker/report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <stdexcept>

namespace dibs_checker {
namespace {

constexpr std::string_view usage =
    R"(usage: dibs-check-history [--check C1,C4] [--json | --quiet] [--html FILE] [--steps N]
                          [--require] HISTORY

Reads a history (JSON lines; - is standard input) and tells whether it keeps the promises C1 to C12.

  --check LIST   only these checks
  --json         the findings as JSON
  --quiet        nothing but the exit status
  --html FILE    also write a picture of the history, with what was found marked in it; the file
                 needs neither a network nor anything else
  --steps N      how many steps the search of C4 may take for one key (default 1000000); the same
                 number gives the same verdict everywhere
  --require      a selected check that finds nothing to judge counts as undecided
  --list         the checks, and what each is about
  --help         this text

Exit status: 0 clean, 1 a promise was broken, 2 undecided (the search ran out of steps, or --require
found a check without anything to judge), 64 usage, 65 the history cannot be read, 73 the picture
cannot be written.

Examples:
  dibs-check-history run.jsonl
  dibs-check-history --check C4 --steps 50000000 run.jsonl
  zcat run.jsonl.gz | dibs-check-history --html run.html -
)";

struct wrong_usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct request {
    std::array<bool, check_count + 1> selected{};
    bool json = false;
    bool quiet = false;
    bool require = false;
    limits bounds;
    std::optional<std::string> html;
    std::optional<std::string> from;
};

void select(request& made, std::string_view list) {
    while (true) {
        const auto comma = list.find(',');
        const auto name = list.substr(0, comma);
        const auto which = check_named(name);
        if (!which) {
            throw wrong_usage("\"" + std::string{name} + "\" is no check; they are C1 to C12");
        }
        made.selected[static_cast<std::size_t>(*which)] = true;
        if (comma == std::string_view::npos) {
            return;
        }
        list.remove_prefix(comma + 1);
    }
}

std::uint64_t steps_in(const std::string& word) {
    std::uint64_t number = 0;
    const auto [end, trouble] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (trouble != std::errc{} || end != word.data() + word.size() || number == 0) {
        throw wrong_usage("--steps needs a number from 1 on");
    }
    return number;
}

request understood(const std::vector<std::string>& words) {
    request made;
    bool options_over = false;
    bool some_selected = false;
    for (std::size_t index = 0; index < words.size(); ++index) {
        const auto& word = words[index];
        // Both --option VALUE and --option=VALUE.
        const auto equals = word.find('=');
        const auto name = word.substr(0, equals);
        const auto value = [&]() -> std::string {
            if (equals != std::string::npos) {
                return word.substr(equals + 1);
            }
            if (index + 1 == words.size()) {
                throw wrong_usage(name + " needs a value");
            }
            return words[++index];
        };
        const auto flag = [&] {
            if (equals != std::string::npos) {
                throw wrong_usage(name + " takes no value");
            }
            return true;
        };
        if (options_over || word == "-" || word.empty() || word.front() != '-') {
            if (made.from) {
                throw wrong_usage("more than one history");
            }
            made.from = word;
        } else if (word == "--") {
            options_over = true;
        } else if (name == "--check") {
            select(made, value());
            some_selected = true;
        } else if (name == "--json") {
            made.json = flag();
        } else if (name == "--quiet") {
            made.quiet = flag();
        } else if (name == "--require") {
            made.require = flag();
        } else if (name == "--html") {
            made.html = value();
        } else if (name == "--steps") {
            made.bounds.search_steps = steps_in(value());
        } else {
            throw wrong_usage("unknown option " + word);
        }
    }
    if (!made.from) {
        throw wrong_usage("which history?");
    }
    if (made.json && made.quiet) {
        throw wrong_usage("--json and --quiet exclude each other");
    }
    if (!some_selected) {
        made.selected.fill(true);
    }
    return made;
}

std::vector<verdict> judge(const request& how, const history& all) {
    const subject of{all, how.bounds};
    std::vector<verdict> found;
    for (const auto& entry : all_checks) {
        if (how.selected[static_cast<std::size_t>(entry.id)]) {
            found.push_back(entry.check(of));
        }
    }
    return found;
}

history read_from(const request& how, std::istream& in) {
    if (*how.from == "-") {
        return read_history(in);
    }
    std::ifstream file{*how.from, std::ios::binary};
    if (!file) {
        throw bad_history(0, "cannot be opened");
    }
    return read_history(file);
}

int run(const request& how, std::istream& in, std::ostream& out, std::ostream& err) {
    const auto all = read_from(how, in);
    const auto found = judge(how, all);
    if (how.json) {
        write_json(out, all, found);
    } else if (!how.quiet) {
        write_text(out, all, found);
    }
    out.flush();
    if (!out) {
        err << "dibs-check-history: the findings cannot be written\n";
        return exit_no_output;
    }
    if (how.html) {
        std::ofstream file{*how.html, std::ios::binary};
        write_picture(file, all, found);
        file.close();
        if (!file) {
            err << "dibs-check-history: " << *how.html << " cannot be written\n";
            return exit_no_output;
        }
    }
    const bool idle = std::any_of(found.begin(), found.end(), [](const verdict& one_of) {
        return one_of.outcome() == outcome::not_judged;
    });
    switch (worst_of(found)) {
        case outcome::violated:
            return exit_violated;
        case outcome::undecided:
            return exit_undecided;
        default:
            return how.require && idle ? exit_undecided : exit_clean;
    }
}

}  // namespace

int run_command(const std::vector<std::string>& words,
                std::istream& in,
                std::ostream& out,
                std::ostream& err) {
    if (std::find(words.begin(), words.end(), "--help") != words.end()) {
        out << usage;
        return exit_clean;
    }
    if (std::find(words.begin(), words.end(), "--list") != words.end()) {
        for (const auto& entry : all_checks) {
            out << name_of(entry.id) << (entry.id < check_id::c10 ? "   " : "  ") << entry.title
                << '\n';
        }
        return exit_clean;
    }
    request how;
    try {
        how = understood(words);
    } catch (const wrong_usage& trouble) {
        err << "dibs-check-history: " << trouble.what() << " (--help tells more)\n";
        return exit_usage;
    }
    try {
        return run(how, in, out, err);
    } catch (const bad_history& trouble) {
        err << "dibs-check-history: " << (*how.from == "-" ? "standard input" : *how.from) << ", "
            << trouble.what() << '\n';
        return exit_bad_history;
    }
}

}  // namespace dibs_checker
