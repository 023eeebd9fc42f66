// SPDX-License-Identifier: Apache-2.0
#include "cli/run/waiting_line.hpp"

#include "cli/options/duration.hpp"
#include "cli/output/speech.hpp"
#include "client/operator/listing.hpp"
#include "core/key.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

/// A key that is had within this time was not waited for.
constexpr auto worth_telling = milliseconds{300};
constexpr auto look_every = std::chrono::seconds{1};

constexpr std::string_view erase_line = "\r\x1b[K";

void put(std::string_view text) noexcept {
    (void)!::write(STDERR_FILENO, text.data(), text.size());
}

std::size_t columns_of_terminal() {
    winsize size{};
    constexpr std::size_t usual = 80;
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

/// How many come before this process, where it stands in a queue.
std::string place_in_queue(const dibs::record& of) {
    const auto mine =
        std::find_if(of.queue.begin(), of.queue.end(), [](const auto& one) { return one.self; });
    return mine == of.queue.end()
               ? std::string{}
               : ", number " + std::to_string(mine - of.queue.begin() + 1) + " in the queue";
}

/// A job in the background must not write over what the user types.
bool in_front() {
    const auto front = ::tcgetpgrp(STDERR_FILENO);
    return front < 0 || front == ::getpgrp();
}

}  // namespace

/// What the last look at the store found.
struct waiting_line::sight {
    std::mutex mutex;
    bool looking = false;
    bool known = false;
    dibs::record key;
    dibs::record also;
    clock::time_point at;
    std::string trouble;  ///< what the store has against it; empty: nothing
    std::optional<clock::time_point> trouble_since;
};

waiting_line::manner waiting_line::fitting(bool verbose, bool quiet) {
    if (quiet) {
        return manner::silent;
    }
    const char* kind = std::getenv("TERM");
    const std::string_view terminal = kind != nullptr ? kind : "";
    const bool at_terminal = ::isatty(STDERR_FILENO) == 1;
    if (at_terminal && !terminal.empty() && terminal != "dumb") {
        return manner::in_place;
    }
    return verbose || at_terminal ? manner::once : manner::trouble;
}

waiting_line::waiting_line(client& through, terms what)
    : through_(through), terms_(std::move(what)) {
    if (terms_.how != manner::silent && terms_.wait > milliseconds::zero()) {
        seen_ = std::make_shared<sight>();
        thread_ = std::thread([this] { live(); });
    }
}

waiting_line::~waiting_line() {
    end();
}

void waiting_line::end() noexcept {
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
    }
    over_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void waiting_line::live() {
    bool drawn = false;
    bool begun = false;
    std::unique_lock lock(mutex_);
    auto next = began_ + worth_telling;
    auto next_look = next;
    while (!over_.wait_until(lock, next, [this] { return ended_; })) {
        const auto now = clock::now();
        if (now >= next_look) {
            look();
            next_look = now + look_every;
        }
        const bool known = [this] {
            const std::lock_guard sight_lock(seen_->mutex);
            return seen_->known;
        }();
        // The first answer is awaited in short steps; then the line counts by the second.
        next = now + (known ? milliseconds(look_every) : milliseconds{20});
        if (!known && terms_.how != manner::trouble) {
            continue;
        }
        if (terms_.how != manner::in_place) {
            if (terms_.how == manner::once && !std::exchange(begun, true)) {
                say(text());
            }
            tell_trouble();
            continue;
        }
        if (in_front()) {
            const auto columns = columns_of_terminal();
            put(std::string(erase_line) + cut_to_columns("dibs: " + text(), columns - 1));
            drawn = true;
        } else {
            drawn = false;
        }
    }
    if (drawn && in_front()) {
        put(erase_line);
    }
}

/// Where it stays: once for each thing that the store says.
void waiting_line::tell_trouble() {
    std::string text;
    {
        const std::lock_guard lock(seen_->mutex);
        const bool lasts =
            seen_->trouble_since && clock::now() - *seen_->trouble_since >= trouble_worth_telling;
        if (!lasts || seen_->trouble == told_trouble_) {
            return;
        }
        text = told_trouble_ = seen_->trouble;
    }
    say("waiting for " + quoted_key(terms_.key) +
        ", which the store does not grant for now: " + core::printable(text, 500) + "; trying on");
}

void waiting_line::look() {
    detail::look_for_trouble(through_, terms_.key, [seen = seen_](std::string trouble) {
        const std::lock_guard lock(seen->mutex);
        if (trouble.empty()) {
            seen->trouble_since.reset();
        } else if (!seen->trouble_since) {
            seen->trouble_since = clock::now();
        }
        seen->trouble = std::move(trouble);
    });
    if (terms_.how == manner::trouble) {
        return;
    }
    {
        const std::lock_guard lock(seen_->mutex);
        if (std::exchange(seen_->looking, true)) {
            return;  // the store takes its time; nothing waits for it here
        }
    }
    detail::look_at_keys(
        through_, {terms_.key, terms_.also}, [seen = seen_](std::vector<dibs::record> found) {
            const std::lock_guard lock(seen->mutex);
            seen->looking = false;
            if (found.size() == 2) {
                seen->key = std::move(found[0]);
                seen->also = std::move(found[1]);
                seen->known = true;
                seen->at = clock::now();
            }
        });
}

std::string waiting_line::text() const {
    const auto waited =
        show_duration(std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - began_));
    const auto limit =
        terms_.wait == dibs::forever ? std::string{} : " of " + show_duration(terms_.wait);
    std::string told = "waiting for " + quoted_key(terms_.key) + " (" + waited + limit + ")";
    const std::lock_guard lock(seen_->mutex);
    const auto since =
        std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - seen_->at);
    if (!seen_->key.holders.empty()) {
        auto who = seen_->key.holders.front();
        who.held_for += since;
        who.remaining = std::max(who.remaining - since, std::chrono::microseconds{0});
        return told + place_in_queue(seen_->key) + ": held by " + describe_holder(who);
    }
    if (seen_->trouble_since) {
        return told +
               ": the store does not grant it for now: " + core::printable(seen_->trouble, 500);
    }
    for (const auto* record : {&seen_->key, &seen_->also}) {
        if (record->blocked_for.count() > 0) {
            return told + ": on hold " +
                   describe_hold(record->blocked_reason, record->blocked_for - since);
        }
    }
    return told;
}

std::string cut_to_columns(std::string text, std::size_t columns) {
    std::size_t used = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
        if (begins && used == columns) {
            // One back, for the sign that something is missing.
            while (at > 0 && (static_cast<unsigned char>(text[--at]) & 0xC0U) == 0x80U) {
            }
            text.resize(at);
            return text + "…";
        }
        used += begins ? 1 : 0;
    }
    return text;
}

}  // namespace dibs::cli
