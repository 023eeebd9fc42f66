// SPDX-License-Identifier: Apache-2.0
#include "cli/run/child_environment.hpp"

#include "cli/output/redact.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <system_error>

namespace dibs::cli {

namespace {

constexpr std::string_view held_keys_name = "DIBS_HELD_KEYS";

std::string inherited_value(const std::vector<std::string>& inherited, std::string_view name) {
    for (const auto& entry : inherited) {
        if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
            return entry.substr(name.size() + 1);
        }
    }
    return {};
}

/// Calls `use(fence, key)` for each line `FENCE KEY`; keys hold no control characters, so lines are
/// unambiguous.
template <typename Use>
bool any_line(std::string_view held_keys, Use use) {
    while (!held_keys.empty()) {
        const auto end = held_keys.find('\n');
        const auto line = held_keys.substr(0, end);
        std::uint64_t fence = 0;
        const auto parsed = std::from_chars(line.data(), line.data() + line.size(), fence);
        const auto digits = static_cast<std::size_t>(parsed.ptr - line.data());
        if (digits > 0 && digits < line.size() && line[digits] == ' ' &&
            use(fence, line.substr(digits + 1))) {
            return true;
        }
        held_keys = end == std::string_view::npos ? std::string_view{} : held_keys.substr(end + 1);
    }
    return false;
}

}  // namespace

std::vector<std::string> child_environment(const std::vector<std::string>& inherited,
                                           const lease_facts& facts) {
    constexpr std::array<std::string_view, 8> ours{"DIBS_KEY=",
                                                   "DIBS_KEY_",
                                                   "DIBS_FENCE=",
                                                   "DIBS_FENCE_",
                                                   "DIBS_TTL_MS=",
                                                   "DIBS_DEADLINE_BOOTTIME_NS=",
                                                   "DIBS_RUN_ID=",
                                                   "DIBS_HELD_KEYS="};
    const bool store_stays = facts.store.from == store_choice::source::environment;
    std::vector<std::string> environment;
    for (const auto& entry : inherited) {
        bool replaced = !store_stays && entry.starts_with("DIBS_STORE=");
        for (const auto name : ours) {
            replaced = replaced || entry.starts_with(name);
        }
        if (!replaced) {
            environment.push_back(entry);
        }
    }
    environment.push_back("DIBS_KEY=" + facts.key);
    environment.push_back("DIBS_FENCE=" + std::to_string(facts.fence));
    environment.push_back("DIBS_TTL_MS=" + std::to_string(facts.ttl.count()));
    environment.push_back("DIBS_DEADLINE_BOOTTIME_NS=" +
                          std::to_string(facts.deadline_boottime_ns));
    environment.push_back("DIBS_RUN_ID=" + facts.run_id);
    if (!store_stays && !has_secret(facts.store.url)) {
        environment.push_back("DIBS_STORE=" + facts.store.url);
    }
    auto held = std::to_string(facts.fence) + " " + facts.key;
    for (std::size_t at = 0; at < facts.also.size(); ++at) {
        const auto& [key, fence] = facts.also[at];
        const auto number = std::to_string(at + 2);
        environment.push_back("DIBS_KEY_" + number + "=" + key);
        environment.push_back("DIBS_FENCE_" + number + "=" + std::to_string(fence));
        held += "\n" + std::to_string(fence) + " " + key;
    }
    const auto outer = inherited_value(inherited, held_keys_name);
    environment.push_back("DIBS_HELD_KEYS=" + held + (outer.empty() ? "" : "\n" + outer));
    return environment;
}

std::vector<std::string> own_environment() {
    std::vector<std::string> all;
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
        all.emplace_back(*entry);
    }
    return all;
}

bool held_by_outer_run(std::string_view held_keys, std::string_view key, std::uint64_t fence) {
    return any_line(held_keys, [&](std::uint64_t outer_fence, std::string_view outer_key) {
        return outer_fence == fence && outer_key == key;
    });
}

bool named_by_outer_run(std::string_view held_keys, std::string_view key) {
    return any_line(held_keys,
                    [&](std::uint64_t, std::string_view outer_key) { return outer_key == key; });
}

std::string new_run_id() {
    std::array<unsigned char, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        throw std::system_error(errno, std::generic_category(), "cannot draw a random number");
    }
    std::string text;
    for (const auto byte : bytes) {
        text += "0123456789abcdef"[byte >> 4U];
        text += "0123456789abcdef"[byte & 0xFU];
    }
    return text;
}

}  // namespace dibs::cli
