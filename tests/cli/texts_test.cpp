// SPDX-License-Identifier: Apache-2.0
// Parser, help, manual page and completions tell of the same commands and options.
#include "cli/output/speech.hpp"
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

struct known_option {
    std::string name;    // without dashes
    std::string letter;  // may be empty
    bool takes_value = false;
};

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        all.push_back(line);
    }
    return all;
}

std::string output_of(const folder& here, const std::vector<std::string>& words) {
    const auto ended = run_dibs(here, words);
    EXPECT_EQ(ended.status, 0) << words.front() << ": " << ended.err;
    return ended.out;
}

std::vector<std::string> commands(const folder& here) {
    std::vector<std::string> all;
    bool among = false;
    for (const auto& line : lines_of(output_of(here, {"--help"}))) {
        if (line == "commands:") {
            among = true;
        } else if (among && line.starts_with("  ")) {
            all.push_back(line.substr(2, line.find(' ', 2) - 2));
        } else if (among) {
            break;
        }
    }
    return all;
}

std::vector<known_option> options_in_help(const std::string& help) {
    static const std::regex form(R"(^  (?:-(\w), |    )--([a-z-]+)( [A-Z]+)?)");
    std::vector<known_option> all;
    for (const auto& line : lines_of(help)) {
        std::smatch found;
        if (std::regex_search(line, found, form)) {
            all.push_back({found[2], found[1], found[3].matched});
        }
    }
    return all;
}

/// From the line that begins with `start` to the next one that begins with one of `ends`.
std::string section(const std::string& text,
                    const std::string& start,
                    const std::vector<std::string>& ends) {
    std::string all;
    bool inside = false;
    for (const auto& line : lines_of(text)) {
        if (line == start) {
            inside = true;
            continue;
        }
        for (const auto& end : ends) {
            inside = inside && !line.starts_with(end);
        }
        if (inside) {
            all += line + "\n";
        }
    }
    return all;
}

std::string in_roff(const std::string& name) {
    return std::regex_replace(name, std::regex("-"), "\\-");
}

bool has_word(const std::string& text, const std::string& word) {
    std::istringstream stream(std::regex_replace(text, std::regex("'"), " "));
    for (std::string one; stream >> one;) {
        if (one == word) {
            return true;
        }
    }
    return false;
}

class Texts : public ::testing::Test {
  protected:
    const folder here_;
    const std::string man_ = output_of(here_, {"man"});
    const std::string bash_ = output_of(here_, {"completion", "bash"});
    const std::string zsh_ = output_of(here_, {"completion", "zsh"});
    const std::string fish_ = output_of(here_, {"completion", "fish"});

    /// The line of bash's script for a command.
    std::string bash_line(const std::string& command) const {
        for (const auto& line : lines_of(bash_)) {
            if (line.starts_with("        " + command + ") ")) {
                return line;
            }
        }
        return {};
    }

    std::string fish_lines(const std::string& command) const {
        std::string all;
        for (const auto& line : lines_of(fish_)) {
            if (line.find("__fish_seen_subcommand_from " + command + "'") != std::string::npos) {
                all += line + "\n";
            }
        }
        return all;
    }
};

TEST_F(Texts, EveryOptionOfEveryCommandIsInAllOfThem) {
    const auto all = commands(here_);
    ASSERT_GE(all.size(), 16U);
    for (const auto& command : all) {
        const auto known = options_in_help(output_of(here_, {command, "--help"}));
        ASSERT_FALSE(known.empty()) << command;
        const auto man = section(man_, ".SS " + in_roff(command), {".SS", ".SH"});
        const auto bash = bash_line(command);
        const auto zsh = section(zsh_, "        " + command + ")", {"                '*:"});
        const auto fish = fish_lines(command);
        for (const auto& option : known) {
            const auto what = command + " --" + option.name;
            EXPECT_NE(man.find("\\-\\-" + in_roff(option.name) + "\\fR"), std::string::npos)
                << what;
            EXPECT_TRUE(has_word(bash, "--" + option.name)) << what;
            EXPECT_NE(zsh.find("'--" + option.name + (option.takes_value ? "=[" : "[")),
                      std::string::npos)
                << what;
            EXPECT_TRUE(std::regex_search(fish,
                                          std::regex(" -l " + option.name + "( -s .)?" +
                                                     (option.takes_value ? " -r" : "") + " -d ")))
                << what;
            std::vector<std::string> words{command, "--" + option.name};
            if (option.takes_value) {
                words.emplace_back("x");
            }
            words.emplace_back("--help");
            EXPECT_EQ(run_dibs(here_, words).status, 0) << what << ": the parser";
            if (!option.letter.empty()) {
                EXPECT_NE(
                    man.find("\\fB\\-" + option.letter + "\\fR, \\fB\\-\\-" + in_roff(option.name)),
                    std::string::npos)
                    << what;
                EXPECT_TRUE(has_word(bash, "-" + option.letter)) << what;
                EXPECT_NE(zsh.find("'-" + option.letter + "["), std::string::npos) << what;
                EXPECT_NE(fish.find(" -l " + option.name + " -s " + option.letter),
                          std::string::npos)
                    << what;
            }
        }
        // And none that the parser does not know.
        const std::regex long_option(" -l ");
        EXPECT_EQ(known.size(),
                  static_cast<std::size_t>(std::distance(
                      std::sregex_iterator(fish.begin(), fish.end(), long_option), {})));
        EXPECT_EQ(run_dibs(here_, {command, "--no-such-option", "--help"}).status, 64) << command;
    }
}

TEST_F(Texts, HelpForACommandIsItsOwn) {
    for (const auto& command : commands(here_)) {
        EXPECT_EQ(output_of(here_, {"help", command}), output_of(here_, {command, "--help"}));
    }
    EXPECT_EQ(output_of(here_, {"help"}), output_of(here_, {"--help"}));
    EXPECT_EQ(run_dibs(here_, {"help", "no-such-command"}).status, 64);
}

TEST(Columns, AreCountedInCharacters) {
    EXPECT_EQ(cli::padded("a", 3), "a  ");
    EXPECT_EQ(cli::padded("é…", 4), "é…  ");
    EXPECT_EQ(cli::padded("too long", 3), "too long");
    const folder here;
    const auto table =
        lines_of(output_of(here, {"run", "caf\u00e9-\u00e9\u00e9", tests::places::command, "ls"}));
    ASSERT_EQ(table.size(), 2U);
    const auto host = table[1].find_first_not_of(' ', table[1].find(' '));
    EXPECT_EQ(cli::columns_of(table[1].substr(0, host)), table[0].find("HOLDER")) << table[1];
}

TEST_F(Texts, NoLineOfTheHelpIsTooLong) {
    auto all = output_of(here_, {"help"});
    for (const auto& command : commands(here_)) {
        all += output_of(here_, {command, "--help"});
    }
    for (const auto& line : lines_of(all)) {
        EXPECT_LE(line.size(), 110U) << line;
    }
}

TEST_F(Texts, EveryCommandIsListedForTheShells) {
    for (const auto& command : commands(here_)) {
        EXPECT_TRUE(has_word(bash_line("''"), command)) << command;
        EXPECT_NE(zsh_.find("        '" + command + ":"), std::string::npos) << command;
        EXPECT_NE(fish_.find("-a " + command + " "), std::string::npos) << command;
    }
    EXPECT_EQ(run_dibs(here_, {"completion"}).status, 64);
    EXPECT_EQ(run_dibs(here_, {"completion", "tcsh"}).status, 64);
}

TEST_F(Texts, TheWordsAfterACommandAreTheSameInAllShells) {
    for (const auto& [command, choices] :
         {std::pair{"demo",
                    "duplicate-jobs token-stampede watchdog blind-release no-expiry fencing "
                    "concurrent-updates failover"},
          std::pair{"guard", "install sql"},
          std::pair{"token", "get refresh status forget new-key"},
          std::pair{"completion", "bash zsh fish"},
          std::pair{"config", "show"}}) {
        EXPECT_NE(bash_line(command).find(std::string(" choices='") + choices + "'"),
                  std::string::npos);
        EXPECT_NE(zsh_.find(std::string("'1: :(") + choices + ")'"), std::string::npos);
        EXPECT_NE(fish_lines(command).find(std::string(" -a '") + choices + "'"),
                  std::string::npos);
        std::istringstream each(choices);
        for (std::string one; each >> one;) {
            EXPECT_EQ(run_dibs(here_, {command, one, "--help"}).status, 0) << command << one;
        }
    }
}

/// Runs a shell on a text; the exit status, or 127 when that shell is not here.
outcome shell(const folder& here, const std::string& line) {
    auto how = dibs_on(here, {"-c", line});
    how.program = "/bin/sh";
    return process(how).wait();
}

TEST_F(Texts, TheBashScriptCompletes) {
    if (shell(here_, "command -v bash").status != 0) {
        GTEST_SKIP() << "no bash here";
    }
    write_file(here_.file("script"), bash_);
    const auto completed = [&](const std::string& words, int at) {
        write_file(here_.file("try"),
                   ". ./script\nCOMP_WORDS=(" + words + ")\nCOMP_CWORD=" + std::to_string(at) +
                       "\n_dibs\necho \"${COMPREPLY[*]}\"\n");
        return shell(here_, "bash ./try").out;
    };
    EXPECT_EQ(completed("dibs acq", 1), "acquire\n");
    EXPECT_EQ(completed("dibs show --js", 2), "--json\n");
    EXPECT_EQ(completed("dibs --store memory: show --js", 4), "--json\n");
    EXPECT_EQ(completed("dibs demo ''", 2),
              "duplicate-jobs token-stampede watchdog blind-release no-expiry fencing "
              "concurrent-updates failover\n");
    EXPECT_EQ(completed("dibs demo f", 2), "fencing failover\n");
    EXPECT_EQ(completed("dibs demo --fa", 2), "--fast\n");
    EXPECT_EQ(completed("dibs completion ''", 2), "bash zsh fish\n");
    EXPECT_EQ(completed("dibs config ''", 2), "show\n");
    EXPECT_EQ(completed("dibs config show ''", 3), "\n");
    EXPECT_EQ(completed("dibs show ''", 2), "\n");
}

TEST_F(Texts, EveryExitStatusIsInTheManualAndTheReadme) {
    const std::string root = tests::places::source_folder;
    const auto statuses = read_file(root + "/src/cli/output/exit_status.hpp");
    const auto readme =
        section(read_file(root + "/README.md"), "## `dibs run`: exit statuses", {"## Use"});
    const auto man = section(man_, ".SH EXIT STATUS", {".SH ENVIRONMENT"});
    static const std::regex form(R"(constexpr int (\w+) = (\d+);)");
    int seen = 0;
    for (std::sregex_iterator one(statuses.begin(), statuses.end(), form), end; one != end; ++one) {
        const auto name = (*one)[1].str();
        const auto number = (*one)[2].str();
        if (name == "signal_base") {
            continue;
        }
        ++seen;
        const std::regex word("\\b" + number + "\\b");
        EXPECT_TRUE(std::regex_search(man, word)) << name << " " << number;
        if (name != "ok" && name != "trouble") {
            EXPECT_TRUE(std::regex_search(readme, word)) << name << " " << number;
        }
    }
    EXPECT_GE(seen, 15);
}

TEST_F(Texts, TheManualPageIsSoundRoff) {
    if (shell(here_, "command -v groff").status != 0) {
        GTEST_SKIP() << "no groff here";
    }
    write_file(here_.file("dibs.1"), man_);
    const auto formatted = shell(here_, "groff -man -Tascii -ww dibs.1");
    EXPECT_EQ(formatted.status, 0);
    EXPECT_EQ(formatted.err, "");
    EXPECT_NE(formatted.out.find("nightly-report -- ./report.sh"), std::string::npos);
}

}  // namespace
}  // namespace dibs::testing
