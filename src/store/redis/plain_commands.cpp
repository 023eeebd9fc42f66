// SPDX-License-Identifier: Apache-2.0
#include "store/redis/plain_commands.hpp"

#include "core/key.hpp"
#include "store/url.hpp"

#include <poll.h>
#include <time.h>

#include <chrono>
#include <stdexcept>

namespace dibs::store::redis {

namespace {

constexpr auto patience = std::chrono::seconds{2};

core::instant now() {
    timespec read{};
    ::clock_gettime(CLOCK_BOOTTIME, &read);
    return core::instant{std::chrono::seconds{read.tv_sec} +
                         std::chrono::nanoseconds{read.tv_nsec}};
}

address address_of(std::string_view text) {
    std::string why;
    if (const auto parts = parse_url(text, why)) {
        if (auto where = parse_address(text, parts->options, why)) {
            return std::move(*where);
        }
    }
    throw std::runtime_error(why);
}

}  // namespace

plain_commands::plain_commands(std::string_view url) : where_(address_of(url)), line_(where_) {}

/// One step of the connection, which may be closed afterwards.
void plain_commands::wait_for_link(const char* what) {
    if (line_.at() == link::phase::closed) {
        throw std::runtime_error(where_.shown() + ": " + what + ": " + line_.fault_text());
    }
    pollfd ready{line_.descriptor(), line_.wanted(), 0};
    if (::poll(&ready, 1, 100) > 0) {
        static_cast<void>(line_.go_on(ready.revents, now()));
    }
    if (line_.at() == link::phase::connecting && now() >= line_.patience_ends()) {
        static_cast<void>(line_.lose_patience(now()));
    }
}

std::string plain_commands::ask(std::initializer_list<std::string_view> words) {
    const auto until = now() + patience;
    if (!line_.ready() || !line_.still_there()) {
        line_.open(now());
    }
    while (!line_.ready()) {
        wait_for_link("cannot be reached");
        if (now() > until) {
            line_.fail({}, "no answer in time");
        }
    }
    write_command(line_.out(), words);
    static_cast<void>(line_.flush());
    while (line_.next() != reply_reader::state::complete) {
        wait_for_link("does not answer");
        if (now() > until) {
            line_.fail({}, "no answer in time");
        }
    }
    const auto& head = line_.current().front();
    if (head.what == kind::error) {
        throw std::runtime_error(where_.shown() + ": " + core::printable(head.text));
    }
    const auto& shown = head.children > 0 ? line_.current()[1] : head;
    return shown.what == kind::integer ? std::to_string(shown.number) : std::string{shown.text};
}

}  // namespace dibs::store::redis
