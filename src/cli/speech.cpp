// SPDX-License-Identifier: Apache-2.0
#include "cli/speech.hpp"

#include "cli/duration.hpp"
#include "cli/failure.hpp"
#include "core/key.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

namespace dibs::cli {

void say(std::string_view text) noexcept {
    try {
        const std::string line = "dibs: " + std::string(text) + "\n";
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    } catch (...) {
        // Out of memory: the line is not worth ending for.
    }
}

void deliver(std::string_view text) {
    while (!text.empty()) {
        const auto got = ::write(STDOUT_FILENO, text.data(), text.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            throw failure(exit_status::input_output,
                          std::string("the output cannot be written: ") + std::strerror(errno));
        }
        text.remove_prefix(static_cast<std::size_t>(got));
    }
}

std::string describe_holder(const dibs::holder& who) {
    const auto since = std::chrono::system_clock::to_time_t(
        std::chrono::system_clock::now() -
        std::chrono::duration_cast<std::chrono::system_clock::duration>(who.held_for));
    std::tm parts{};
    ::localtime_r(&since, &parts);
    std::array<char, 32> stamp{};
    std::strftime(stamp.data(), stamp.size(), "%Y-%m-%d %H:%M:%S", &parts);
    std::string text = core::printable(who.host) + " (pid " + std::to_string(who.pid) + ", user " +
                       core::printable(who.user) + ") since " + stamp.data() + " (" +
                       show_duration(who.held_for) + "), " + show_duration(who.remaining) +
                       " left, fence " + std::to_string(who.fence);
    if (!who.command.empty()) {
        text += ": " + core::printable(who.command);
    }
    return text;
}

std::string quoted_key(std::string_view key) {
    return "\"" + core::printable(key) + "\"";
}

}  // namespace dibs::cli
