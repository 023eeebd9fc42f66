// SPDX-License-Identifier: Apache-2.0
// The command: finds out which of its commands is meant.
#include "cli/catalogue.hpp"
#include "cli/commands.hpp"
#include "cli/options/option_table.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

namespace {

namespace cli = dibs::cli;

/// Whoever starts us without stdin, stdout or stderr must not find one of our descriptors in their
/// place. What stands there instead can be neither read nor written, and needs no /dev.
/// Close-on-exec, so that the child finds them closed again.
void occupy_standard_descriptors() {
    for (int number = 0; number <= 2; ++number) {
        if (::fcntl(number, F_GETFD) < 0 && errno == EBADF) {
            (void)!::open("/", O_PATH | O_CLOEXEC);
        }
    }
}

int run_command_named(const std::string& name, const cli::global_options& global, cli::words rest) {
    for (const auto& known : cli::catalogue()) {
        if (known.name == name) {
            return known.run(global, rest);
        }
    }
    throw cli::usage_error("unknown command " + cli::as_given(name) + "; see dibs --help");
}

int command(const std::vector<std::string>& given) {
    const auto found = cli::parse_arguments(cli::main_syntax(), given);
    if (found.has("version")) {
        return cli::version_command({});
    }
    const bool help_command = !found.command.empty() && found.command.front() == "help";
    if (help_command && found.command.size() > 1) {
        const std::vector<std::string> asking{"--help"};
        return run_command_named(found.command[1], {}, asking);
    }
    if (found.has("help") || found.command.empty() || help_command) {
        const bool asked = found.has("help") || !found.command.empty();
        const auto text = cli::help_text(cli::main_syntax());
        if (!asked) {
            (void)!::write(STDERR_FILENO, text.data(), text.size());
            return cli::exit_status::usage;
        }
        cli::deliver(text);
        return cli::exit_status::ok;
    }
    cli::global_options global;
    global.store = found.value("store");
    return run_command_named(found.command.front(), global, cli::words(found.command).subspan(1));
}

}  // namespace

int main(int argc, char** argv) {
    try {
        occupy_standard_descriptors();
        return command({argv + 1, argv + argc});
    } catch (const cli::failure& fault) {
        cli::say(fault.what());
        return fault.status();
    } catch (const std::system_error& fault) {
        cli::say(fault.what());
        return cli::exit_status::system;
    } catch (const std::bad_alloc&) {
        cli::say("out of memory");
        return cli::exit_status::system;
    } catch (const std::exception& fault) {
        cli::say(fault.what());
        return cli::exit_status::our_bug;
    }
}
