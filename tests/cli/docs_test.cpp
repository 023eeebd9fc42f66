// SPDX-License-Identifier: Apache-2.0
// Goal: what the documentation tells to type can be typed. Method: each `dibs …` in a sample or
// between backticks is taken apart, and its command and options are looked up in the help texts,
// which are made from the table of the parser; each link to another page is followed.
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

namespace fs = std::filesystem;

const fs::path root{tests::places::source_folder};

/// What a user reads; the pages about the inside name commands of other tools, too.
std::vector<fs::path> pages() {
    std::vector<fs::path> all{root / "README.md", root / "SECURITY.md"};
    for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
        const auto& path = entry.path();
        if (path.extension() == ".md" && path.parent_path().filename() != "internals") {
            all.push_back(path);
        }
    }
    return all;
}

/// The code of a page: one line for each line of a sample, and one for each text in backticks.
std::vector<std::string> code_of(const std::string& page) {
    std::vector<std::string> code;
    std::istringstream stream(page);
    std::string text;
    bool sample = false;
    bool programs = false;
    for (std::string line; std::getline(stream, line);) {
        if (line.starts_with("```")) {
            sample = !sample;
            programs = sample && (line == "```cpp" || line == "```cmake");
        } else if (sample && !programs) {
            code.push_back(line);
        } else if (!sample) {
            text += line + "\n";
        }
    }
    static const std::regex quoted("`([^`]+)`");
    for (std::sregex_iterator one(text.begin(), text.end(), quoted), end; one != end; ++one) {
        code.push_back(std::regex_replace((*one)[1].str(), std::regex("\n"), " "));
    }
    return code;
}

/// The words of a line, the marks of YAML and of quoting taken off.
std::vector<std::string> words_of(std::string line) {
    for (auto& character : line) {
        if (std::string_view("\"',[]()|;").find(character) != std::string_view::npos) {
            character = character == '|' || character == ';' ? '\n' : ' ';
        }
    }
    line = std::regex_replace(line, std::regex("\n"), " \n ");
    std::vector<std::string> words;
    std::string word;
    for (const char character : line + " ") {
        if (character == ' ' || character == '\t') {
            if (!word.empty()) {
                words.push_back(std::exchange(word, {}));
            }
        } else {
            word += character;
        }
    }
    return words;
}

class dictionary {
  public:
    bool knows(const std::string& command) { return !help(command).empty(); }
    bool knows(const std::string& command, const std::string& option) {
        const std::regex whole("(^|[ \n])" + option + "(,|[ \n])");
        return std::regex_search(help(command), whole);
    }
    bool any_knows(const std::string& option) {
        const auto all = commands();
        return std::any_of(all.begin(), all.end(), [&](const std::string& command) {
            return knows(command, option);
        });
    }
    /// Those that `dibs --help` lists.
    std::vector<std::string> commands() const {
        std::vector<std::string> all;
        std::istringstream help(run_dibs(here_, {"--help"}).out);
        for (std::string line; std::getline(help, line) && line != "options:";) {
            if (line.starts_with("  ") && line[2] != ' ') {
                all.push_back(line.substr(2, line.find(' ', 2) - 2));
            }
        }
        return all;
    }

  private:
    /// The list of options; empty for what is no command.
    const std::string& help(const std::string& command) {
        const auto [at, fresh] = helps_.try_emplace(command);
        if (fresh) {
            const auto told = command.empty() ? run_dibs(here_, {"--help"})
                                              : run_dibs(here_, {command, "--help"});
            if (told.status == 0) {
                const auto begin = told.out.find("\noptions:\n");
                at->second = told.out.substr(begin, told.out.find("\n\n", begin + 1) - begin + 1);
            }
        }
        return at->second;
    }

    const folder here_;
    std::map<std::string, std::string> helps_;
};

struct reading {
    std::size_t commands = 0;
    std::size_t options = 0;
    std::set<std::string> named;  ///< commands
    std::vector<std::string> complaints;
};

/// One invocation, from the word after `dibs`.
void read_invocation(const std::vector<std::string>& words,
                     std::size_t at,
                     const std::string& line,
                     dictionary& known,
                     reading& found) {
    static const std::regex end(R"(--|&&?|\n|#|<|>|2>.*|\\)");
    static const std::regex option("(--[a-z][a-z-]*|-[a-zA-Z])(=.*)?");
    std::string command;
    for (; at < words.size() && !std::regex_match(words[at], end); ++at) {
        const auto& word = words[at];
        std::smatch parts;
        if (std::regex_match(word, parts, option)) {
            ++found.options;
            if (!known.knows(command, parts[1])) {
                found.complaints.push_back("dibs " + command + " has no " + word + ": " + line);
            }
            at += command.empty() && word == "--store" ? 1 : 0;
        } else if (command.empty()) {
            if (word == "COMMAND" || word == "help" || word == "…") {
                return;
            }
            command = word;
            ++found.commands;
            found.named.insert(command);
            if (!known.knows(command)) {
                found.complaints.push_back("there is no dibs " + command + ": " + line);
                return;
            }
        }
    }
}

void read_page(const std::string& page, dictionary& known, reading& found) {
    static const std::regex program("(.*/)?dibs");
    for (const auto& line : code_of(page)) {
        const auto words = words_of(line);
        for (std::size_t at = 0; at < words.size(); ++at) {
            // In SQL that is the name of a schema.
            const bool is_schema = at > 0 && words[at - 1] == "SCHEMA";
            if (!is_schema && std::regex_match(words[at], program) &&
                words[at].find(':') == std::string::npos) {
                read_invocation(words, at + 1, line, known, found);
            }
        }
        // `--wait` alone, in a sentence.
        static const std::regex alone("(--[a-z][a-z-]*)( [A-Za-z0-9]+)?");
        std::smatch parts;
        if (std::regex_match(line, parts, alone)) {
            ++found.options;
            if (!known.any_knows(parts[1])) {
                found.complaints.push_back("no command has " + line);
            }
        }
    }
}

/// The text of a page, without its samples.
std::string prose_of(const std::string& page) {
    std::istringstream stream(page);
    std::string text;
    bool sample = false;
    for (std::string line; std::getline(stream, line);) {
        sample = line.starts_with("```") ? !sample : sample;
        text += sample ? "\n" : line + "\n";
    }
    return text;
}

std::string anchor_of(const std::string& heading) {
    std::string anchor;
    for (const char character : heading) {
        if (std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_' ||
            character == '-') {
            anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
        } else if (character == ' ') {
            anchor += '-';
        }
    }
    return anchor;
}

bool has_heading(const std::string& page, const std::string& anchor) {
    std::istringstream stream(page);
    for (std::string line; std::getline(stream, line);) {
        const auto text = line.find_first_not_of('#');
        if (line.starts_with("#") && text != std::string::npos &&
            anchor_of(line.substr(text + 1)) == anchor) {
            return true;
        }
    }
    return false;
}

TEST(Docs, NameOnlyCommandsAndOptionsThatThereAre) {
    dictionary known;
    reading found;
    for (const auto& page : pages()) {
        const auto before = found.complaints.size();
        read_page(read_file(page.string()), known, found);
        for (auto at = before; at < found.complaints.size(); ++at) {
            ADD_FAILURE() << page.lexically_relative(root).string() << ": " << found.complaints[at];
        }
    }
    EXPECT_GT(found.commands, 100U) << "the samples are not found";
    EXPECT_GT(found.options, 80U) << "the options are not found";
    const auto listed = known.commands();
    EXPECT_GE(listed.size(), 19U);
    for (const auto& command : listed) {
        EXPECT_EQ(found.named.count(command), 1U) << "no page tells of dibs " << command;
    }
}

TEST(Docs, AWrongNameInThemIsFound) {
    const std::vector<std::pair<std::string, std::size_t>> wrong{
        {"Say `dibs unlock k`.", 1},
        {"```sh\ndibs run k --waits 5m -- true\n```", 1},
        {"```\n0 3 * * *  /usr/local/bin/dibs once j --every day --zone UTC -- dibs runs -x\n```",
         2},
        {"```yaml\ncommand: [\"dibs\", \"once\", \"j\", \"--slots\", \"x\", \"--\", "
         "\"/app/report\"]\n```",
         1},
        {"```ini\nExecCondition=/usr/bin/dibs once j --every day --conditions\n```", 1},
        {"With `--for-ever 5m` it waits.", 1},
        {"`DROP SCHEMA dibs CASCADE`", 0},
        {"`h=$(dibs acquire k --till 1m) || exit`", 1},
        {"`dibs --store sqlite:x.db run k --wait 5m -- ls --no-option | grep --no-option`", 0},
    };
    for (const auto& [text, complaints] : wrong) {
        dictionary known;
        reading found;
        read_page(text, known, found);
        EXPECT_EQ(found.complaints.size(), complaints) << text;
    }
}

TEST(Docs, LinkToPagesThatThereAre) {
    auto all = pages();
    all.push_back(root / "CONTRIBUTING.md");
    for (const auto& entry : fs::directory_iterator(root / "docs" / "internals")) {
        all.push_back(entry.path());
    }
    static const std::regex link(R"(\]\(([^)#]*)(?:#([^)]*))?\))");
    std::size_t followed = 0;
    for (const auto& page : all) {
        const auto text = prose_of(read_file(page.string()));
        for (std::sregex_iterator one(text.begin(), text.end(), link), end; one != end; ++one) {
            const auto where = (*one)[1].str();
            if (where.find("://") != std::string::npos) {
                continue;
            }
            ++followed;
            const auto leads_to = where.empty() ? page : page.parent_path() / where;
            EXPECT_TRUE(fs::exists(leads_to)) << page << " links to " << where;
            if ((*one)[2].matched) {
                EXPECT_TRUE(has_heading(read_file(leads_to.string()), (*one)[2]))
                    << page << " links to " << one->str();
            }
        }
    }
    EXPECT_GT(followed, 50U);
}

}  // namespace
}  // namespace dibs::testing
