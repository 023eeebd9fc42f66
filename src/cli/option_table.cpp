// SPDX-License-Identifier: Apache-2.0
#include "cli/option_table.hpp"

#include "cli/failure.hpp"
#include "core/key.hpp"

#include <utility>

namespace dibs::cli {

std::size_t arguments::count(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? 0 : found->second.size();
}

const std::string* arguments::value(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second.back();
}

class argument_parser {
  public:
    argument_parser(const command_syntax& syntax, std::span<const std::string> words)
        : syntax_(syntax), words_(words) {}

    arguments parse() {
        while (at_ < words_.size()) {
            const std::string& word = words_[at_];
            if (word == "--") {
                ++at_;
                take_the_rest();
                break;
            }
            if (word.size() > 2 && word.starts_with("--")) {
                ++at_;
                take_long(word.substr(2));
            } else if (word.size() > 1 && word[0] == '-') {
                ++at_;
                take_letters(word);
            } else if (operands_wanted() > 0) {
                found_.operands.push_back(word);
                ++at_;
            } else if (syntax_.command_follows) {
                found_.command.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_),
                                      words_.end());
                break;
            } else {
                throw usage_error("unexpected operand: " + core::printable(word));
            }
        }
        return std::move(found_);
    }

  private:
    [[nodiscard]] std::size_t operands_wanted() const {
        const std::size_t given =
            found_.operands.size() +
            (!syntax_.first_operand.empty() && found_.has(syntax_.first_operand) ? 1 : 0);
        return given < syntax_.operands_max ? syntax_.operands_max - given : 0;
    }

    /// After `--` nothing is an option any more. A second `--` may set operands and command apart.
    void take_the_rest() {
        while (at_ < words_.size() && operands_wanted() > 0) {
            found_.operands.push_back(words_[at_++]);
            if (at_ < words_.size() && words_[at_] == "--" && syntax_.command_follows) {
                ++at_;
                break;
            }
        }
        if (at_ < words_.size() && !syntax_.command_follows) {
            throw usage_error("unexpected operand: " + core::printable(words_[at_]));
        }
        found_.command.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    }

    [[nodiscard]] const option& known(std::string_view name) const {
        for (const auto& candidate : syntax_.options) {
            if (candidate.name == name) {
                return candidate;
            }
        }
        throw usage_error("unknown option --" + core::printable(name) + "; see dibs " +
                          std::string(syntax_.name) + " --help");
    }

    [[nodiscard]] const option& known(char letter) const {
        for (const auto& candidate : syntax_.options) {
            if (candidate.letter != 0 && candidate.letter == letter) {
                return candidate;
            }
        }
        throw usage_error("unknown option -" + core::printable(std::string(1, letter)) +
                          "; see dibs " + std::string(syntax_.name) + " --help");
    }

    void add(const option& chosen, std::string value) {
        found_.values_[std::string(chosen.name)].push_back(std::move(value));
    }

    std::string next_word(const option& chosen) {
        if (at_ == words_.size()) {
            throw usage_error("--" + std::string(chosen.name) + " needs a value (" +
                              std::string(chosen.value) + ")");
        }
        return words_[at_++];
    }

    void take_long(const std::string& text) {
        const auto equals = text.find('=');
        const auto& chosen = known(std::string_view(text).substr(0, equals));
        if (chosen.value.empty()) {
            if (equals != std::string::npos) {
                throw usage_error("--" + std::string(chosen.name) + " takes no value");
            }
            add(chosen, {});
        } else {
            add(chosen, equals == std::string::npos ? next_word(chosen) : text.substr(equals + 1));
        }
    }

    void take_letters(const std::string& word) {
        for (std::size_t index = 1; index < word.size(); ++index) {
            const auto& chosen = known(word[index]);
            if (chosen.value.empty()) {
                add(chosen, {});
                continue;
            }
            add(chosen, index + 1 < word.size() ? word.substr(index + 1) : next_word(chosen));
            return;
        }
    }

    const command_syntax& syntax_;
    std::span<const std::string> words_;
    std::size_t at_ = 0;
    arguments found_;
};

arguments parse_arguments(const command_syntax& syntax, std::span<const std::string> words) {
    return argument_parser(syntax, words).parse();
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
