// SPDX-License-Identifier: Apache-2.0
// dibs completion: scripts for shells, from the tables that the parser goes by.
#include "cli/catalogue.hpp"
#include "cli/options/command_support.hpp"
#include "cli/output/speech.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace dibs::cli {

namespace {

constexpr std::array options{
    help_option,
};

constexpr std::array<std::string_view, 3> shells{"bash", "zsh", "fish"};

const command_syntax syntax{
    .name = "completion",
    .usage = "dibs completion bash | zsh | fish",
    .summary = "Writes a script that completes commands and options in that shell.",
    .options = options,
    .operands_max = 1,
    .choices = shells,
    .notes = "exit status: 0; 64 usage.",
    .examples =
        "  dibs completion bash > ~/.local/share/bash-completion/completions/dibs\n"
        "  dibs completion zsh > \"${fpath[1]}/_dibs\"\n"
        "  dibs completion fish > ~/.config/fish/completions/dibs.fish",
};

/// As one line, fit to stand between single quotes in each of the shells.
std::string quotable(std::string_view text) {
    std::string safe;
    for (const char character : text) {
        switch (character) {
            case '\n':
                safe += ' ';
                break;
            case '\'':
            case '\\':
                break;  // no help text depends on them
            default:
                safe += character;
        }
    }
    return safe;
}

std::string words_for_bash(std::span<const option> known) {
    std::string all;
    for (const auto& one : known) {
        all += (all.empty() ? "--" : " --") + std::string(one.name);
        if (one.letter != 0) {
            all += std::string(" -") + one.letter;
        }
    }
    return all;
}

std::string joined(std::span<const std::string_view> words) {
    std::string all;
    for (const auto word : words) {
        all += (all.empty() ? "" : " ") + std::string(word);
    }
    return all;
}

std::string names() {
    std::string all;
    for (const auto& one : catalogue()) {
        if (!one.brief.empty()) {
            all += (all.empty() ? "" : " ") + std::string(one.name);
        }
    }
    return all;
}

std::string for_bash() {
    std::string script =
        "# bash completion for dibs\n"
        "_dibs() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} command= words= choices= at\n"
        "    for ((at = 1; at < COMP_CWORD; at++)); do\n"
        "        case ${COMP_WORDS[at]} in\n"
        "            --store) ((at++)) ;;\n"
        "            -*) ;;\n"
        "            *) command=${COMP_WORDS[at]}; break ;;\n"
        "        esac\n"
        "    done\n"
        "    case $command in\n"
        "        '') words='" +
        names() + " " + words_for_bash(main_syntax().options) + "' ;;\n";
    for (const auto& one : catalogue()) {
        if (!one.brief.empty()) {
            script +=
                "        " + std::string(one.name) + ") words='" +
                words_for_bash(one.syntax().options) + "'" +
                (one.syntax().choices.empty() ? std::string{}
                                              : " choices='" + joined(one.syntax().choices) + "'") +
                " ;;\n";
        }
    }
    return script +
           "    esac\n"
           "    if [[ -z $command || $current == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "    elif [[ -n $choices && $at -eq COMP_CWORD-1 ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
           "    fi\n"
           "}\n"
           "complete -o default -F _dibs dibs\n";
}

/// One argument of zsh's _arguments.
std::string specs_for_zsh(std::span<const option> known, std::string_view indent) {
    std::string all;
    for (const auto& one : known) {
        std::string help;
        for (const char character : quotable(one.help)) {
            help += character == '[' || character == ']' || character == ':'
                        ? std::string{'\\', character}
                        : std::string(1, character);
        }
        const std::string value = one.value.empty() ? "" : ":" + quotable(one.value) + ":";
        all += std::string(indent) + "'--" + std::string(one.name) + (value.empty() ? "" : "=") +
               "[" + help + "]" + value + "' \\\n";
        if (one.letter != 0) {
            all += std::string(indent) + "'-" + one.letter + "[" + help + "]" + value + "' \\\n";
        }
    }
    return all;
}

std::string for_zsh() {
    std::string script =
        "#compdef dibs\n"
        "_dibs() {\n"
        "    local -a commands=(\n";
    for (const auto& one : catalogue()) {
        if (!one.brief.empty()) {
            script += "        '" + std::string(one.name) + ":" + quotable(one.brief) + "'\n";
        }
    }
    script +=
        "    )\n"
        "    local state line\n"
        "    _arguments -C \\\n" +
        specs_for_zsh(main_syntax().options, "        ") +
        "        '1:command:->command' '*::argument:->argument'\n"
        "    if [[ $state == command ]]; then\n"
        "        _describe command commands\n"
        "        return\n"
        "    fi\n"
        "    case $line[1] in\n";
    for (const auto& one : catalogue()) {
        if (!one.brief.empty()) {
            const auto choices = joined(one.syntax().choices);
            script += "        " + std::string(one.name) + ")\n            _arguments \\\n" +
                      specs_for_zsh(one.syntax().options, "                ") +
                      "                '" +
                      (choices.empty() ? "*: :_default" : "1: :(" + choices + ")") + "' ;;\n";
        }
    }
    return script +
           "    esac\n"
           "}\n"
           "_dibs \"$@\"\n";
}

std::string options_for_fish(std::span<const option> known, const std::string& when) {
    std::string all;
    for (const auto& one : known) {
        all += "complete -c dibs -n '" + when + "' -l " + std::string(one.name);
        if (one.letter != 0) {
            all += std::string(" -s ") + one.letter;
        }
        all += (one.value.empty() ? "" : " -r") + (" -d '" + quotable(one.help)) + "'\n";
    }
    return all;
}

std::string for_fish() {
    std::string script = "# fish completion for dibs\n" +
                         options_for_fish(main_syntax().options, "__fish_use_subcommand");
    for (const auto& one : catalogue()) {
        if (!one.brief.empty()) {
            const std::string name(one.name);
            script += "complete -c dibs -f -n '__fish_use_subcommand' -a " + name + " -d '" +
                      quotable(one.brief) + "'\n" +
                      options_for_fish(one.syntax().options, "__fish_seen_subcommand_from " + name);
            if (!one.syntax().choices.empty()) {
                script += "complete -c dibs -f -n '__fish_seen_subcommand_from " + name + "' -a '" +
                          joined(one.syntax().choices) + "'\n";
            }
        }
    }
    return script;
}

}  // namespace

const command_syntax& completion_syntax() {
    return syntax;
}

int completion_command(words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const std::string shell = found.operands.empty() ? "" : found.operands.front();
    if (shell == "bash") {
        deliver(for_bash());
    } else if (shell == "zsh") {
        deliver(for_zsh());
    } else if (shell == "fish") {
        deliver(for_fish());
    } else {
        throw usage_error("completion for which shell? there are: bash, zsh, fish");
    }
    return exit_status::ok;
}

}  // namespace dibs::cli
