// SPDX-License-Identifier: Apache-2.0
#include "store/redis/lock_text.hpp"

#include "store/remote/party_text.hpp"

#include <algorithm>
#include <charconv>

namespace dibs::store::redis {

namespace {

constexpr char share_end = '\x1e';
/// Behind the text of a lock: the processes that left word with it.
constexpr char word_begins = '\x1e';

std::string_view cut(std::string_view& text, char at) noexcept {
    const auto end = std::min(text.find(at), text.size());
    const auto found = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return found;
}

template <typename Number>
bool parse(std::string_view text, Number& number) noexcept {
    const auto* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, number);
    return fault == std::errc{} && stop == end && !text.empty();
}

/// What stands behind the holder.
std::optional<lock_value> parse_grant(std::string_view value) {
    lock_value found;
    const bool sound = parse(cut(value, ' '), found.fences.first) &&
                       parse(cut(value, ' '), found.fences.last) &&
                       parse(cut(value, ' '), found.granted_us);
    auto how = cut(value, ' ');
    const char letter = how.empty() ? ' ' : how.front();
    how.remove_prefix(how.empty() ? 0 : 1);
    std::int64_t ttl_ms = 0;
    const bool has_ttl = letter == 'U' || letter == 'V';
    if (!sound || std::string_view{"ADUVad"}.find(letter) == std::string_view::npos ||
        (has_ttl ? !parse(how, ttl_ms) : !how.empty())) {
        return std::nullopt;
    }
    found.attached = std::string_view{"AUa"}.find(letter) != std::string_view::npos
                         ? core::attachment::attached
                         : core::attachment::detached;
    found.process = cut(value, ' ');
    found.who = remote::party_of(value);
    return found;
}

}  // namespace

std::optional<lock_value> parse_lock(std::string_view value) {
    value = value.substr(0, value.find(word_begins));
    if (cut(value, ' ') != "dibs1") {
        return std::nullopt;
    }
    cut(value, ' ');
    return parse_grant(value);
}

std::optional<shares_value> parse_shares(std::string_view value) {
    if (cut(value, ' ') != "dibs1" || cut(value, ' ') != "s") {
        return std::nullopt;
    }
    shares_value found;
    if (!parse(cut(value, ' '), found.capacity)) {
        return std::nullopt;
    }
    while (!value.empty()) {
        auto text = cut(value, share_end);
        shares_value::share one;
        const bool sound =
            parse(cut(text, ' '), one.weight) && parse(cut(text, ' '), one.expires_us);
        one.holder = cut(text, ' ');
        auto grant = parse_grant(text);
        if (!sound || !grant) {
            return std::nullopt;
        }
        one.value = std::move(*grant);
        found.shares.push_back(std::move(one));
    }
    return found;
}

std::optional<ticket_value> parse_ticket(std::string_view value) {
    if (cut(value, ' ') != "t1") {
        return std::nullopt;
    }
    cut(value, ' ');
    ticket_value found;
    if (!parse(cut(value, ' '), found.entered_us)) {
        return std::nullopt;
    }
    found.process = cut(value, ' ');
    found.who = remote::party_of(value);
    return found;
}

}  // namespace dibs::store::redis
