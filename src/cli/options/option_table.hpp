// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a command as a table, which feeds the parser and the help text alike.
//
// The scanning is done by libc's getopt_long. The option libraries at hand do not stop at the
// command that `run` is to execute while they allow options on both sides of the key, so that `dibs
// run --ttl 9s k sh -c 'exit 3'` needs no `--`; getopt_long stops at each operand, and goes on from
// there.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::cli {

struct option {
    std::string_view name;   ///< without the dashes
    char letter;             ///< 0: none
    std::string_view value;  ///< what to call the value in the help text; empty: a flag
    std::string_view help;
};

/// One command, as it is parsed and as it is explained.
struct command_syntax {
    std::string_view name{};
    std::string_view usage{};
    std::string_view summary{};
    std::span<const option> options{};
    std::size_t operands_max = 0;
    bool command_follows = false;  ///< whatever comes after the operands belongs to another command
    std::string_view first_operand{};  ///< an option that stands for the first operand, for those
                                       ///< that begin with `-`
    std::span<const std::string_view> choices{};  ///< what the first operand may be, for shells
    std::string_view notes{};                     ///< after the options, in the help text
    std::string_view examples{};
};

/// What was found on a command line.
class arguments {
  public:
    [[nodiscard]] bool has(std::string_view name) const { return values_.count(name) != 0; }
    /// How often a flag was given.
    [[nodiscard]] std::size_t count(std::string_view name) const;
    /// The last value given; nullptr without one.
    [[nodiscard]] const std::string* value(std::string_view name) const;
    /// All values given, in their order.
    [[nodiscard]] std::vector<std::string> all_values(std::string_view name) const;

    std::vector<std::string> operands;
    std::vector<std::string> command;

  private:
    friend class argument_parser;
    std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// Whether it begins as a handle does (client/leases/handed_over.hpp), which is a secret and no key.
[[nodiscard]] bool is_handle(std::string_view text);

/// A text of the command line as it may stand in a message: in quotes where it could be overlooked,
/// and not at all when it is a handle, which is a secret.
[[nodiscard]] std::string as_given(std::string_view text);

/// Options that say opposite things are refused, unless help is asked for.
/// Errors: usage_error, naming the option.
[[nodiscard]] arguments parse_arguments(const command_syntax& syntax,
                                        std::span<const std::string> words);

[[nodiscard]] std::string help_text(const command_syntax& syntax);

}  // namespace dibs::cli
