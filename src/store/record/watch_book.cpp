// SPDX-License-Identifier: Apache-2.0
#include "store/record/watch_book.hpp"

#include <utility>

namespace dibs::store {

watch_book::added watch_book::add(std::string_view key,
                                  watch_completion ready,
                                  wake_callback wake) {
    std::string name{key};
    added made;
    made.id = ++next_;
    auto& at = places_[name];
    if (at.which == 0) {
        at.which = ++next_stay_;
        made.begins = at.which;
    }
    made.ready_now = at.entered;
    at.watchers.emplace(made.id, watcher{std::move(ready), std::move(wake)});
    keys_.emplace(made.id, std::move(name));
    return made;
}

watch_id watch_book::add_listener(std::string_view key, wake_callback wake) {
    const auto id = ++next_;
    std::string name{key};
    places_[name].watchers.emplace(id, watcher{{}, std::move(wake)});
    keys_.emplace(id, std::move(name));
    return id;
}

std::string watch_book::remove(watch_id id) {
    const auto key = keys_.find(id);
    if (key == keys_.end()) {
        return {};
    }
    auto name = std::move(key->second);
    keys_.erase(key);
    const auto at = places_.find(name);
    at->second.watchers.erase(id);
    if (!at->second.watchers.empty()) {
        return {};
    }
    const bool was_entered = at->second.which != 0;
    places_.erase(at);
    return was_entered ? name : std::string{};
}

void watch_book::entered(const std::string& key, stay which, std::error_code outcome) {
    const auto at = places_.find(key);
    if (at == places_.end() || at->second.which != which) {
        return;
    }
    at->second.entered = true;
    at->second.outcome = outcome;
    std::vector<watch_id> waiting;
    for (const auto& [id, one] : at->second.watchers) {
        waiting.push_back(id);
    }
    for (const auto id : waiting) {
        ready(id);
    }
}

// A callback may add and remove watchers, its own included: nothing of the book is held while it
// runs.
void watch_book::ready(watch_id id) {
    const auto key = keys_.find(id);
    if (key == keys_.end()) {
        return;
    }
    auto& at = places_.find(key->second)->second;
    auto told = std::exchange(at.watchers.at(id).ready, {});
    if (told) {
        told(at.outcome);
    }
}

void watch_book::wake(const std::string& key, wake_by whose) {
    if (!key.empty()) {
        wake_all_of(key, whose);
        return;
    }
    std::vector<std::string> all;
    for (const auto& [name, at] : places_) {
        all.push_back(name);
    }
    for (const auto& name : all) {
        wake_all_of(name, whose);
    }
}

void watch_book::wake_all_of(const std::string& key, wake_by whose) {
    const auto at = places_.find(key);
    if (at == places_.end()) {
        return;
    }
    std::vector<watch_id> woken;
    for (const auto& [id, one] : at->second.watchers) {
        woken.push_back(id);
    }
    for (const auto id : woken) {
        const auto known = keys_.find(id);
        if (known == keys_.end()) {
            continue;
        }
        auto& one = places_.find(known->second)->second.watchers.at(id);
        auto callback = std::move(one.wake);
        callback(whose);
        if (keys_.contains(id)) {
            places_.find(key)->second.watchers.at(id).wake = std::move(callback);
        }
    }
}

void watch_book::clear() {
    places_.clear();
    keys_.clear();
}

}  // namespace dibs::store
