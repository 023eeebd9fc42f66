// SPDX-License-Identifier: Apache-2.0
#include "cli/output/speech.hpp"

#include "cli/options/duration.hpp"
#include "cli/output/failure.hpp"
#include "core/key.hpp"

#include <dibs/options.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

namespace dibs::cli {

namespace {
/// A reason has 500 at most, and says who gave it behind that.
constexpr std::size_t reason_bytes_shown = 1'000;
}  // namespace

void say(std::string_view text) noexcept {
    try {
        const std::string line = "dibs: " + std::string(text) + "\n";
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    } catch (...) {
        // Out of memory: the line is not worth ending for.
    }
}

void say_at_terminal(std::string_view text) noexcept {
    if (::isatty(STDERR_FILENO) == 1) {
        say(text);
    }
}

void deliver(std::string_view text) {
    while (!text.empty()) {
        const auto got = ::write(STDOUT_FILENO, text.data(), text.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            const int error = errno;
            const auto text_of_it =
                std::string("the output cannot be written: ") + std::strerror(error);
            if (error == EPIPE) {
                throw reader_gone(text_of_it);
            }
            throw failure(exit_status::input_output, text_of_it);
        }
        text.remove_prefix(static_cast<std::size_t>(got));
    }
}

std::string local_time(std::chrono::system_clock::time_point when) {
    const auto stamp = std::chrono::system_clock::to_time_t(when);
    std::tm parts{};
    ::localtime_r(&stamp, &parts);
    std::array<char, 64> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S %Z", &parts);
    return text.data();
}

std::size_t columns_of(std::string_view text) noexcept {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
    }));
}

std::string padded(std::string text, std::size_t columns) {
    const auto used = columns_of(text);
    text.append(columns - std::min(columns, used), ' ');
    return text;
}

bool is_stranger(const dibs::holder& who) noexcept {
    return who.fence == 0;
}

bool ends_by_time(const dibs::holder& who) noexcept {
    // Somebody who counts down from for ever arrives nowhere.
    constexpr auto for_ever = std::chrono::hours{24 * 365'000};
    return who.remaining <= for_ever;
}

std::string describe_time_left(const dibs::holder& who) {
    return ends_by_time(who) ? show_duration(who.remaining) : "for ever";
}

std::string describe_holder(const dibs::holder& who) {
    const auto left = describe_time_left(who);
    if (is_stranger(who)) {
        return "another program, " + (ends_by_time(who) ? left + " left" : "without a ttl");
    }
    const auto since =
        std::chrono::system_clock::now() -
        std::chrono::duration_cast<std::chrono::system_clock::duration>(who.held_for);
    std::string text = core::printable(who.host) + " (pid " + std::to_string(who.pid) + ", user " +
                       core::printable(who.user) + ") since " + local_time(since) + " (" +
                       show_duration(who.held_for) + "), " +
                       (ends_by_time(who) ? left + " left" : "until its session ends") +
                       ", fence " + std::to_string(who.fence);
    if (!who.command.empty()) {
        text += ": " + core::printable(who.command);
    }
    return text;
}

std::string describe_holders(const std::vector<dibs::holder>& all) {
    const auto others = all.size() - 1;
    return describe_holder(all.front()) +
           (others == 0 ? "" : " (and by " + std::to_string(others) + " more)");
}

std::string describe_share(std::uint32_t weight, std::uint32_t capacity) {
    if (capacity == 1) {
        return {};
    }
    return capacity == mode::unlimited
               ? "reader"
               : std::to_string(weight) + " of " + std::to_string(capacity) + " permits";
}

std::string describe_hold(std::string_view reason, std::chrono::microseconds left) {
    const auto end = std::chrono::system_clock::now() +
                     std::chrono::duration_cast<std::chrono::system_clock::duration>(left);
    return "until " + local_time(end) + " (" + show_duration(left) +
           " left): " + core::printable(reason, reason_bytes_shown);
}

std::string shell_word(std::string_view name) {
    auto shown = core::printable(name);
    if (shown.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./_-") != std::string::npos) {
        for (auto at = shown.find('\''); at != std::string::npos; at = shown.find('\'', at + 4)) {
            shown.replace(at, 1, "'\\''");
        }
        shown = "'" + shown + "'";
    }
    return shown;
}

std::string how_to_lift(std::string_view key) {
    return "`dibs hold " + std::string(key.starts_with("-") ? "--key " : "") + shell_word(key) +
           " --lift` ends the hold";
}

std::string not_started(std::string_view key, std::string_view why) {
    return quoted_key(key) + ": " + std::string(why) + "; the command was not started";
}

std::string quoted_key(std::string_view key) {
    return "\"" + core::printable(key) + "\"";
}

}  // namespace dibs::cli
