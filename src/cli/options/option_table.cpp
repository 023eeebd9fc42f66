// SPDX-License-Identifier: Apache-2.0
#include "cli/options/option_table.hpp"

#include "cli/output/failure.hpp"
#include "core/key.hpp"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace dibs::cli {

std::size_t arguments::count(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? 0 : found->second.size();
}

const std::string* arguments::value(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second.back();
}

std::vector<std::string> arguments::all_values(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::vector<std::string>{} : found->second;
}

/// Feeds getopt_long from the table. It keeps its place in globals, so this runs before threads.
class argument_parser {
  public:
    argument_parser(const command_syntax& syntax, std::span<const std::string> words)
        : syntax_(syntax) {
        argv_.push_back(const_cast<char*>("dibs"));
        for (const auto& word : words) {
            argv_.push_back(const_cast<char*>(word.c_str()));  // with `+` it moves nothing about
        }
        argv_.push_back(nullptr);
        for (const auto& known : syntax.options) {
            names_.emplace_back(known.name);
            if (known.letter != 0) {
                letters_ += known.letter;
                letters_ += known.value.empty() ? "" : ":";
            }
        }
        for (std::size_t index = 0; index < names_.size(); ++index) {
            const bool flag = syntax.options[index].value.empty();
            long_options_.push_back({names_[index].c_str(),
                                     flag ? no_argument : required_argument,
                                     nullptr,
                                     long_code(index)});
        }
        long_options_.push_back({});
        ::optind = 0;  // start anew
        ::opterr = 0;
    }

    arguments parse() {
        while (true) {
            const char* word = next_word();
            const bool ends_options = word != nullptr && std::string_view(word) == "--";
            refuse_abbreviation(word);
            const int code = ::getopt_long(static_cast<int>(argv_.size()) - 1,
                                           argv_.data(),
                                           letters_.c_str(),
                                           long_options_.data(),
                                           nullptr);
            if (code != -1) {
                take_option(code);
            } else if (ends_options) {
                take_the_rest();
                return std::move(found_);
            } else if (next_word() == nullptr) {
                return std::move(found_);
            } else if (operands_wanted() > 0) {
                take_operand();
            } else if (syntax_.command_follows) {
                take_command();
                return std::move(found_);
            } else {
                refuse_operand();
            }
        }
    }

  private:
    /// Beyond every letter.
    static int long_code(std::size_t index) { return 256 + static_cast<int>(index); }

    /// What getopt_long looks at next; nullptr at the end.
    [[nodiscard]] const char* next_word() const {
        return argv_[static_cast<std::size_t>(std::max(::optind, 1))];
    }

    [[nodiscard]] std::size_t operands_wanted() const {
        const std::size_t given =
            found_.operands.size() +
            (!syntax_.first_operand.empty() && found_.has(syntax_.first_operand) ? 1 : 0);
        return given < syntax_.operands_max ? syntax_.operands_max - given : 0;
    }

    void take_operand() {
        found_.operands.emplace_back(argv_[static_cast<std::size_t>(::optind++)]);
    }

    void take_command() {
        while (next_word() != nullptr) {
            found_.command.emplace_back(argv_[static_cast<std::size_t>(::optind++)]);
        }
    }

    /// After `--` nothing is an option any more. A second `--` may set operands and command apart.
    void take_the_rest() {
        while (next_word() != nullptr && operands_wanted() > 0) {
            take_operand();
            if (syntax_.command_follows && next_word() != nullptr &&
                std::string_view(next_word()) == "--") {
                ++::optind;
                break;
            }
        }
        if (next_word() != nullptr && !syntax_.command_follows) {
            refuse_operand();
        }
        take_command();
    }

    [[noreturn]] void refuse_operand() const {
        const auto& first = syntax_.first_operand;
        throw usage_error("unexpected operand: " + as_given(next_word()) +
                          (!first.empty() && found_.has(first)
                               ? "; --" + std::string(first) + " was given, too"
                               : ""));
    }

    [[noreturn]] void refuse(std::string_view option) const {
        throw usage_error("unknown option " + as_given(option) + "; see dibs " +
                          std::string(syntax_.name) + (syntax_.name.empty() ? "" : " ") + "--help");
    }

    /// getopt_long takes `--tt` for `--ttl`. In a crontab that would change its meaning, or break,
    /// with the next option we add.
    void refuse_abbreviation(const char* word) const {
        const std::string_view text = word != nullptr ? word : "";
        if (text.size() <= 2 || !text.starts_with("--")) {
            return;
        }
        const auto option = text.substr(0, text.find('='));
        if (std::find(names_.begin(), names_.end(), option.substr(2)) == names_.end()) {
            refuse(option);
        }
    }

    [[nodiscard]] const option& option_of(int code) const {
        for (std::size_t index = 0; index < syntax_.options.size(); ++index) {
            const auto& candidate = syntax_.options[index];
            if (code == long_code(index) ||
                (candidate.letter != 0 && code == static_cast<unsigned char>(candidate.letter))) {
                return candidate;
            }
        }
        refuse("-" + std::string(1, static_cast<char>(code)));
    }

    void take_option(int code) {
        const bool wrong = code == '?' || code == ':';
        const auto& chosen = option_of(wrong ? ::optopt : code);
        const std::string name(chosen.name);
        if (code == ':') {
            throw usage_error("--" + name + " needs a value (" + std::string(chosen.value) + ")");
        }
        if (code == '?') {
            throw usage_error("--" + name + " takes no value");
        }
        found_.values_[name].emplace_back(chosen.value.empty() ? "" : ::optarg);
    }

    const command_syntax& syntax_;
    std::vector<char*> argv_;
    std::vector<std::string> names_;
    std::string letters_ = "+:";  ///< stop at the first operand; tell a missing value apart
    std::vector<::option> long_options_;
    arguments found_;
};

namespace {

constexpr std::string_view handle_begins = "dibs1:";

/// Of options with these names no command can do both.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> contradictions{{
    {"quiet", "verbose"},
    {"shared", "permits"},
    {"dry-run", "condition"},
    {"every", "slot"},
    {"every", "cron"},
    {"cron", "slot"},
    {"status-file", "status-fd"},
    {"lift", "for"},
    {"lift", "reason"},
    {"at-most-once", "retries"},
}};

void refuse_contradictions(const arguments& found) {
    for (const auto& [one, other] : contradictions) {
        if (found.has(one) && found.has(other)) {
            throw usage_error("--" + std::string(one) + " and --" + std::string(other) +
                              " contradict each other");
        }
    }
}

}  // namespace

bool is_handle(std::string_view text) {
    return text.starts_with(handle_begins);
}

std::string as_given(std::string_view text) {
    if (text.find(handle_begins) != std::string_view::npos) {
        return "(a handle, not shown)";
    }
    const bool plain = !text.empty() && text.find_first_of(" \"'") == std::string_view::npos;
    return plain ? core::printable(text) : "\"" + core::printable(text) + "\"";
}

arguments parse_arguments(const command_syntax& syntax, std::span<const std::string> words) {
    auto found = argument_parser(syntax, words).parse();
    if (!found.has("help")) {
        refuse_contradictions(found);
    }
    return found;
}

std::string help_text(const command_syntax& syntax) {
    constexpr std::size_t help_column = 28;
    std::string text =
        "usage: " + std::string(syntax.usage) + "\n\n" + std::string(syntax.summary) + "\n";
    if (!syntax.options.empty()) {
        text += "\noptions:\n";
    }
    for (const auto& shown : syntax.options) {
        std::string left = "  ";
        left += shown.letter != 0 ? std::string{'-', shown.letter, ',', ' '} : std::string(4, ' ');
        left += "--" + std::string(shown.name);
        if (!shown.value.empty()) {
            left += " " + std::string(shown.value);
        }
        left += left.size() + 1 < help_column ? std::string(help_column - left.size(), ' ')
                                              : "\n" + std::string(help_column, ' ');
        text += left;
        for (const char character : shown.help) {
            text += character;
            if (character == '\n') {
                text += std::string(help_column, ' ');
            }
        }
        text += '\n';
    }
    if (!syntax.notes.empty()) {
        text += "\n" + std::string(syntax.notes) + "\n";
    }
    if (!syntax.examples.empty()) {
        text += "\nexamples:\n" + std::string(syntax.examples) + "\n";
    }
    return text;
}

}  // namespace dibs::cli
