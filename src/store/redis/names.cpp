// SPDX-License-Identifier: Apache-2.0
#include "store/redis/names.hpp"

namespace dibs::store::redis {

namespace {

constexpr std::string_view ending = ":~dibs";
constexpr std::string_view tagged_ending = ":~dibs:";
constexpr std::string_view process_beginning = ":~dibs@";
constexpr char notices_ending = '!';

/// As a Cluster sees it: the first brace and the first closing one after it, with something between.
bool has_hash_tag(std::string_view name) noexcept {
    const auto open = name.find('{');
    if (open == std::string_view::npos) {
        return false;
    }
    const auto close = name.find('}', open + 1);
    return close != std::string_view::npos && close > open + 1;
}

}  // namespace

void names::put_lock(std::string& name, std::string_view key) const {
    name.assign(prefix_);
    name += key;
}

void names::put_rest(std::string& name, std::string_view key) const {
    name.assign(1, '{');
    name += prefix_;
    name += key;
    if (has_hash_tag(std::string_view{name}.substr(1))) {
        name.erase(0, 1);
        name += tagged_ending;
        return;
    }
    name += '}';
    name += ending;
}

std::size_t names::lock_size(std::string_view key) const noexcept {
    return prefix_.size() + key.size();
}

std::size_t names::rest_size_max(std::string_view key) const noexcept {
    return lock_size(key) + 2 + tagged_ending.size();
}

std::string names::lock(std::string_view key) const {
    std::string name;
    put_lock(name, key);
    return name;
}

std::string names::rest(std::string_view key) const {
    std::string name;
    put_rest(name, key);
    return name;
}

std::string names::epoch() const {
    // No key's: those may not hold the ending.
    return prefix_ + std::string{ending} + "=epoch";
}

std::string names::fence_mark() {
    return std::string{ending} + "=fence";
}

std::optional<std::string> names::key_of_rest(std::string_view name) const {
    if (name.ends_with(tagged_ending)) {
        name.remove_suffix(tagged_ending.size());
        if (!has_hash_tag(name)) {
            return std::nullopt;
        }
    } else if (name.ends_with(ending) && name.starts_with('{')) {
        name.remove_suffix(ending.size());
        if (!name.ends_with('}') || name.size() < 3) {
            return std::nullopt;
        }
        name = name.substr(1, name.size() - 2);
        if (has_hash_tag(name)) {
            return std::nullopt;
        }
    } else {
        return std::nullopt;
    }
    if (!name.starts_with(prefix_) || name.size() == prefix_.size()) {
        return std::nullopt;
    }
    return std::string{name.substr(prefix_.size())};
}

std::optional<std::string> names::key_of_lock(std::string_view name) const {
    if (!name.starts_with(prefix_) || name.size() == prefix_.size() || !fault_of(name).empty()) {
        return std::nullopt;
    }
    return std::string{name.substr(prefix_.size())};
}

std::string names::channel_of_process(std::string_view process) {
    std::string name{process_beginning};
    name += process;
    return name;
}

std::string names::channel_of_notices(std::string_view process) {
    return channel_of_process(process) + notices_ending;
}

std::string_view names::process_of_channel(std::string_view channel) noexcept {
    return channel.starts_with(process_beginning) && !channel.ends_with(notices_ending)
               ? channel.substr(process_beginning.size())
               : std::string_view{};
}

std::string_view names::process_of_notices(std::string_view channel) noexcept {
    return channel.ends_with(notices_ending)
               ? process_of_channel(channel.substr(0, channel.size() - 1))
               : std::string_view{};
}

std::string names::fault_of(std::string_view key) {
    if (key.find(ending) != std::string_view::npos) {
        return "keys that hold " + std::string{ending} + " belong to dibs itself in this store";
    }
    return "";
}

std::string names::pattern_of_rests(std::string_view key_prefix) const {
    auto glob = pattern(key_prefix);
    glob += ending;
    glob += "*";
    return glob;
}

std::string names::pattern(std::string_view key_prefix) const {
    std::string glob = "*";
    for (const char letter : lock(key_prefix)) {
        if (std::string_view{"*?[]\\^-"}.find(letter) != std::string_view::npos) {
            glob += '\\';
        }
        glob += letter;
    }
    glob += "*";
    return glob;
}

}  // namespace dibs::store::redis
