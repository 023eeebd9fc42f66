// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/handle_input.hpp"

#include "cli/output/failure.hpp"
#include "cli/output/json.hpp"
#include "client/leases/handed_over.hpp"
#include "core/key.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <istream>

namespace dibs::cli {

namespace {

/// A key has 1,024 bytes at most, and JSON may write six for one of them.
constexpr std::size_t text_bytes_max = 16 * 1024;

/// `named`: for people.
std::string read_some(std::istream& from, const std::string& named) {
    std::string text(text_bytes_max + 1, '\0');
    errno = 0;
    from.read(text.data(), static_cast<std::streamsize>(text.size()));
    // A folder opens like a file, and fails only now.
    if (from.bad()) {
        throw configuration_error(named + ": " + std::strerror(errno != 0 ? errno : EIO));
    }
    text.resize(static_cast<std::size_t>(from.gcount()));
    return text;
}

/// Without the end of the line; out of the object, if it is one.
std::string handle_in(std::string text) {
    if (text.starts_with("{")) {
        return text_field(text, "handle");
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
        text.pop_back();
    }
    return text;
}

std::string read_handle_file(const std::string& path) {
    const auto named = "--handle-file " + core::printable(path);
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw configuration_error(named + ": " + std::strerror(errno != 0 ? errno : EIO));
    }
    return handle_in(read_some(file, named));
}

}  // namespace

std::string handle_given(const command_syntax& syntax, const arguments& found) {
    const auto* path = found.value("handle-file");
    if (path != nullptr && !found.operands.empty()) {
        throw usage_error("the handle was given twice: as an operand and with --handle-file");
    }
    std::string handle;
    if (path != nullptr) {
        handle = read_handle_file(*path);
    } else if (!found.operands.empty()) {
        handle = found.operands.front() == "-" ? handle_in(read_some(std::cin, "standard input"))
                                               : found.operands.front();
    } else if (const char* variable = std::getenv("DIBS_HANDLE")) {
        handle = handle_in(variable);
    } else {
        throw usage_error("HANDLE is missing; see dibs " + std::string(syntax.name) + " --help");
    }
    if (handle.empty()) {
        throw usage_error("the handle is empty; did dibs acquire get the key?");
    }
    if (!detail::handed_over::parse(handle)) {
        throw usage_error("this is not a handle, or more than one; dibs acquire prints one");
    }
    return handle;
}

}  // namespace dibs::cli
