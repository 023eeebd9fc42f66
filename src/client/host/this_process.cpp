// SPDX-License-Identifier: Apache-2.0
#include "client/host/this_process.hpp"

#include "core/redaction.hpp"
#include "store/text_file.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace dibs::detail {

namespace {

constexpr std::size_t command_bytes_max = 300;

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string user_name() {
    const auto uid = ::geteuid();
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
        return found->pw_name;
    }
    return std::to_string(uid);
}

std::vector<std::string> command_line() {
    const auto all = store::read_text_file("/proc/self/cmdline").text;
    std::vector<std::string> words;
    for (std::size_t at = 0; at < all.size();) {
        const auto end = std::min(all.find('\0', at), all.size());
        words.push_back(all.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

}  // namespace

std::string blanked(const std::vector<std::string>& words) {
    std::string shown;
    bool first = true;
    for (const auto& word : core::redacted_words(words)) {
        shown += std::exchange(first, false) ? "" : " ";
        shown += word;
    }
    return shown;
}

std::string blanked(std::string_view command) {
    return core::redacted_text(command);
}

core::party this_process(std::string command) {
    // A word of the command line may hold blanks, and is one secret then.
    command = command.empty() ? blanked(command_line()) : blanked(command);
    if (command.size() > command_bytes_max) {
        command.resize(command_bytes_max);
        // Not in the middle of a character.
        while (!command.empty() && (static_cast<unsigned char>(command.back()) & 0xC0U) == 0x80U) {
            command.pop_back();
        }
        if (!command.empty() && (static_cast<unsigned char>(command.back()) & 0x80U) != 0) {
            command.pop_back();
        }
        command += "…";
    }
    return {host_name(), ::getpid(), user_name(), std::move(command)};
}

}  // namespace dibs::detail
