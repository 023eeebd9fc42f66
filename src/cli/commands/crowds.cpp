// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/crowds.hpp"

#include "cli/options/duration.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/settings/store_access.hpp"
#include "client/operator/listing.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

namespace dibs::cli {

namespace {

using store::finding;

constexpr std::size_t keys_told = 10;

struct crowd {
    std::size_t waiting = 0;
    std::string what;
};

/// Those in the queue are counted as callers, those who race as processes.
std::size_t waiting_for(const record& of) {
    return std::max<std::size_t>(of.waiters, of.queued);
}

std::string described(const record& of) {
    auto text = quoted_key(of.key) + ": " + std::to_string(waiting_for(of)) + " wait";
    if (!of.queue.empty()) {
        text += ", the first of them for " + show_duration(of.queue.front().waiting_for);
    }
    if (!of.holders.empty()) {
        text += "; " + describe_holder(of.holders.front()) + " has it since " +
                show_duration(of.holders.front().held_for);
    } else if (of.blocked_for.count() > 0) {
        text += "; on hold by an operator";
    }
    return text;
}

}  // namespace

std::vector<finding> crowded_keys(client& through) {
    std::vector<crowd> found;
    std::error_code error;
    std::string message;
    const auto take = [&](const record& one) {
        if (waiting_for(one) >= crowd_min) {
            found.push_back({waiting_for(one), described(one)});
        }
    };
    if (!detail::for_each_record(through, {}, take, error, message)) {
        throw failure(status_of(error), message);
    }
    if (found.empty()) {
        return {{"waiting",
                 finding::grade::ok,
                 "no key has " + std::to_string(crowd_min) + " or more who wait for it",
                 {}}};
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& one, const auto& other) {
        return one.waiting > other.waiting;
    });
    std::vector<finding> told;
    for (auto& one : found) {
        if (told.size() == keys_told) {
            break;
        }
        told.push_back({"waiting",
                        finding::grade::warning,
                        std::move(one.what),
                        "one key per thing that must not be worked on twice, not one for all; hold "
                        "it shorter, or let a queue of tasks keep what must be done"});
    }
    return told;
}

}  // namespace dibs::cli
