// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/redis/keyspace.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <optional>

namespace dibs::simulation::redis {

namespace {

constexpr std::string_view oom = "OOM command not allowed when used memory > 'maxmemory'.";
constexpr std::string_view wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr std::string_view not_an_integer = "ERR value is not an integer or out of range";

std::optional<std::int64_t> number_in(std::string_view text) {
    std::int64_t number = 0;
    const auto* end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data(), end, number);
    if (fault != std::errc{} || at != end || text.empty()) {
        return std::nullopt;
    }
    return number;
}

bool same_word(std::string_view one, std::string_view upper) {
    return std::equal(one.begin(), one.end(), upper.begin(), upper.end(), [](char a, char b) {
        return (a >= 'a' && a <= 'z' ? static_cast<char>(a - 'a' + 'A') : a) == b;
    });
}

std::int64_t milliseconds(const keyspace::surroundings& at) {
    return at.now_us / 1000;
}

}  // namespace

struct keyspace::command {
    std::string_view name;
    std::size_t least_words;
    std::size_t most_words;
    bool writes;
    bool needs_room;
    told (keyspace::*run)(words, surroundings&);
};

const keyspace::command* keyspace::command_named(std::string_view name) {
    static constexpr std::array all{
        command{"GET", 2, 2, false, false, &keyspace::get},
        command{"MGET", 2, 1'000, false, false, &keyspace::get_all},
        command{"EXISTS", 2, 1'000, false, false, &keyspace::count_of},
        command{"SET", 3, 6, true, true, &keyspace::set},
        command{"SETRANGE", 4, 4, true, true, &keyspace::set_range},
        command{"DEL", 2, 1'000, true, false, &keyspace::remove},
        command{"PEXPIRE", 3, 3, true, false, &keyspace::expire_in},
        command{"PEXPIREAT", 3, 3, true, false, &keyspace::expire_at},
        command{"PEXPIRETIME", 2, 2, false, false, &keyspace::expiry},
        command{"PTTL", 2, 2, false, false, &keyspace::time_left},
        command{"PERSIST", 2, 2, true, false, &keyspace::persist},
        command{"ZADD", 4, 4, true, true, &keyspace::add_ranked},
        command{"ZREM", 3, 3, true, false, &keyspace::remove_ranked},
        command{"ZRANK", 3, 3, false, false, &keyspace::rank},
        command{"ZRANGE", 4, 5, false, false, &keyspace::range},
        command{"ZCARD", 2, 2, false, false, &keyspace::count_ranked},
        command{"TIME", 1, 1, false, false, &keyspace::time},
        command{"INFO", 2, 2, false, false, &keyspace::info},
        command{"PUBLISH", 3, 3, false, false, &keyspace::publish},
        command{"PUBSUB", 2, 1'000, false, false, &keyspace::pubsub},
    };
    const auto* at = std::find_if(
        all.begin(), all.end(), [&](const command& one) { return same_word(name, one.name); });
    return at == all.end() ? nullptr : at;
}

told keyspace::run(words asked, surroundings& at) {
    const auto* which = asked.empty() ? nullptr : command_named(asked.front());
    if (which == nullptr) {
        return told::error("ERR Unknown Redis command called from script");
    }
    if (asked.size() < which->least_words || asked.size() > which->most_words) {
        return told::error("ERR Wrong number of args calling Redis command from script");
    }
    if (which->writes && !at.takes_no_writes.empty()) {
        return told::error(std::string{at.takes_no_writes});
    }
    if (which->needs_room && at.full && !at.script_wrote) {
        return told::error(std::string{oom});
    }
    at.script_wrote = at.script_wrote || which->writes;
    return (this->*which->run)(asked, at);
}

keyspace::value* keyspace::find(std::string_view key, const surroundings& at) {
    const auto found = all_.find(key);
    if (found == all_.end()) {
        return nullptr;
    }
    // To the millisecond of its end a key is there.
    if (found->second.expires_ms != -1 && milliseconds(at) > found->second.expires_ms) {
        all_.erase(found);
        return nullptr;
    }
    return &found->second;
}

void keyspace::forget(std::string_view key) {
    const auto found = all_.find(key);
    if (found != all_.end()) {
        all_.erase(found);
    }
}

told keyspace::get(words asked, surroundings& at) {
    const auto* found = find(asked[1], at);
    if (found != nullptr && !found->ranked.empty()) {
        return told::error(std::string{wrong_type});
    }
    return found == nullptr ? told{} : told::of(found->text);
}

/// What is no string counts as nothing.
told keyspace::get_all(words asked, surroundings& at) {
    std::vector<told> texts;
    for (const auto key : asked.subspan(1)) {
        const auto* found = find(key, at);
        texts.push_back(found == nullptr || !found->ranked.empty() ? told{}
                                                                   : told::of(found->text));
    }
    return told::array(std::move(texts));
}

told keyspace::count_of(words asked, surroundings& at) {
    const auto all = asked.subspan(1);
    return told::of(static_cast<std::int64_t>(
        std::count_if(all.begin(), all.end(), [&](auto key) { return find(key, at) != nullptr; })));
}

told keyspace::set(words asked, surroundings& at) {
    const bool only_new = asked.size() == 6;
    if (only_new && !same_word(asked[3], "NX")) {
        return told::error("ERR syntax error");
    }
    if (only_new && find(asked[1], at) != nullptr) {
        return {};
    }
    const auto options = asked.subspan(only_new ? 4 : 3);
    value made{std::string{asked[2]}, -1};
    if (options.size() == 1 && same_word(options[0], "GET")) {
        auto was = get(asked.first(2), at);
        if (was.what != told::form::error) {
            all_.insert_or_assign(std::string{asked[1]}, std::move(made));
        }
        return was;
    }
    if (options.size() == 1) {
        if (!same_word(options[0], "KEEPTTL")) {
            return told::error("ERR syntax error");
        }
        const auto* was = find(asked[1], at);
        made.expires_ms = was == nullptr ? -1 : was->expires_ms;
    } else if (options.size() == 2) {
        const auto number = number_in(options[1]);
        if (!number) {
            return told::error(std::string{not_an_integer});
        }
        if (*number <= 0) {
            return told::error("ERR invalid expire time in 'set' command");
        }
        if (same_word(options[0], "PX")) {
            made.expires_ms = milliseconds(at) + *number;
        } else if (same_word(options[0], "PXAT")) {
            made.expires_ms = *number;
        } else {
            return told::error("ERR syntax error");
        }
    }
    if (made.expires_ms != -1 && made.expires_ms <= milliseconds(at)) {
        forget(asked[1]);
    } else {
        all_.insert_or_assign(std::string{asked[1]}, std::move(made));
    }
    return told::status("OK");
}

told keyspace::set_range(words asked, surroundings& at) {
    const auto number = number_in(asked[2]);
    if (!number) {
        return told::error(std::string{not_an_integer});
    }
    if (*number < 0) {
        return told::error("ERR offset is out of range");
    }
    const auto offset = static_cast<std::size_t>(*number);
    auto* found = find(asked[1], at);
    if (found != nullptr && !found->ranked.empty()) {
        return told::error(std::string{wrong_type});
    }
    if (asked[3].empty()) {
        return told::of(found == nullptr ? 0 : static_cast<std::int64_t>(found->text.size()));
    }
    if (found == nullptr) {
        found = &all_[std::string{asked[1]}];
    }
    auto& text = found->text;
    text.resize(std::max(text.size(), offset + asked[3].size()), '\0');
    text.replace(offset, asked[3].size(), asked[3]);
    return told::of(static_cast<std::int64_t>(text.size()));
}

told keyspace::remove(words asked, surroundings& at) {
    std::int64_t gone = 0;
    for (const auto key : asked.subspan(1)) {
        gone += find(key, at) != nullptr ? 1 : 0;
        forget(key);
    }
    return told::of(gone);
}

told keyspace::set_expiry(std::string_view key, std::int64_t when_ms, surroundings& at) {
    auto* found = find(key, at);
    if (found == nullptr) {
        return told::of(0);
    }
    if (when_ms <= milliseconds(at)) {
        forget(key);
    } else {
        found->expires_ms = when_ms;
    }
    return told::of(1);
}

told keyspace::expire_in(words asked, surroundings& at) {
    const auto number = number_in(asked[2]);
    return number ? set_expiry(asked[1], milliseconds(at) + *number, at)
                  : told::error(std::string{not_an_integer});
}

told keyspace::expire_at(words asked, surroundings& at) {
    const auto number = number_in(asked[2]);
    return number ? set_expiry(asked[1], *number, at) : told::error(std::string{not_an_integer});
}

told keyspace::expiry(words asked, surroundings& at) {
    const auto* found = find(asked[1], at);
    return told::of(found == nullptr ? -2 : found->expires_ms);
}

told keyspace::time_left(words asked, surroundings& at) {
    const auto* found = find(asked[1], at);
    if (found == nullptr || found->expires_ms == -1) {
        return told::of(found == nullptr ? -2 : -1);
    }
    return told::of(std::max(found->expires_ms - milliseconds(at), std::int64_t{0}));
}

told keyspace::persist(words asked, surroundings& at) {
    auto* found = find(asked[1], at);
    if (found == nullptr || found->expires_ms == -1) {
        return told::of(0);
    }
    found->expires_ms = -1;
    return told::of(1);
}

// --- sorted sets ---------------------------------------------------------------------------------

namespace {

auto member_of(auto& ranked, std::string_view member) {
    return std::find_if(
        ranked.begin(), ranked.end(), [&](const auto& one) { return one.second == member; });
}

}  // namespace

told keyspace::add_ranked(words asked, surroundings& at) {
    const auto score = number_in(asked[2]);
    if (!score) {
        return told::error("ERR value is not a valid float");
    }
    auto* found = find(asked[1], at);
    if (found != nullptr && found->ranked.empty()) {
        return told::error(std::string{wrong_type});
    }
    if (found == nullptr) {
        found = &all_[std::string{asked[1]}];
    }
    auto& ranked = found->ranked;
    const auto known = member_of(ranked, asked[3]);
    const bool added = known == ranked.end();
    if (!added) {
        ranked.erase(known);
    }
    ranked.emplace(*score, std::string{asked[3]});
    return told::of(added ? 1 : 0);
}

told keyspace::remove_ranked(words asked, surroundings& at) {
    auto* found = find(asked[1], at);
    if (found == nullptr) {
        return told::of(0);
    }
    if (found->ranked.empty()) {
        return told::error(std::string{wrong_type});
    }
    const auto known = member_of(found->ranked, asked[2]);
    if (known == found->ranked.end()) {
        return told::of(0);
    }
    found->ranked.erase(known);
    if (found->ranked.empty()) {
        forget(asked[1]);
    }
    return told::of(1);
}

told keyspace::rank(words asked, surroundings& at) {
    auto* found = find(asked[1], at);
    if (found == nullptr) {
        return {};
    }
    if (found->ranked.empty()) {
        return told::error(std::string{wrong_type});
    }
    const auto known = member_of(found->ranked, asked[2]);
    return known == found->ranked.end()
               ? told{}
               : told::of(static_cast<std::int64_t>(std::distance(found->ranked.begin(), known)));
}

told keyspace::range(words asked, surroundings& at) {
    auto first = number_in(asked[2]);
    auto last = number_in(asked[3]);
    if (!first || !last) {
        return told::error(std::string{not_an_integer});
    }
    const bool with_scores = asked.size() == 5;
    if (with_scores && !same_word(asked[4], "WITHSCORES")) {
        return told::error("ERR syntax error");
    }
    std::vector<told> shown;
    auto* found = find(asked[1], at);
    if (found == nullptr) {
        return told::array(std::move(shown));
    }
    if (found->ranked.empty()) {
        return told::error(std::string{wrong_type});
    }
    const auto size = static_cast<std::int64_t>(found->ranked.size());
    *first = std::max(*first < 0 ? *first + size : *first, std::int64_t{0});
    *last = *last < 0 ? *last + size : *last;
    std::int64_t index = 0;
    for (const auto& [score, member] : found->ranked) {
        if (index >= *first && index <= *last) {
            shown.push_back(told::of(member));
            if (with_scores) {
                shown.push_back(told::of(std::to_string(score)));
            }
        }
        ++index;
    }
    return told::array(std::move(shown));
}

told keyspace::count_ranked(words asked, surroundings& at) {
    const auto* found = find(asked[1], at);
    if (found != nullptr && found->ranked.empty()) {
        return told::error(std::string{wrong_type});
    }
    return told::of(found == nullptr ? 0 : static_cast<std::int64_t>(found->ranked.size()));
}

told keyspace::time(words, surroundings& at) {
    return told::array({told::of(std::to_string(at.now_us / 1'000'000)),
                        told::of(std::to_string(at.now_us % 1'000'000))});
}

/// The two lines that say which server it is.
told keyspace::info(words asked, surroundings& at) {
    return told::of(same_word(asked[1], "REPLICATION")
                        ? "# Replication\r\nrole:master\r\nmaster_replid:" +
                              std::string{at.replication_id} + "\r\n"
                        : "# Server\r\nrun_id:" + std::string{at.run_id} + "\r\n");
}

told keyspace::publish(words asked, surroundings& at) {
    return told::of(at.publish(std::string{asked[1]}, std::string{asked[2]}));
}

told keyspace::pubsub(words asked, surroundings& at) {
    if (!same_word(asked[1], "NUMSUB")) {
        return told::error("ERR Unknown subcommand");
    }
    std::vector<told> counts;
    for (const auto channel : asked.subspan(2)) {
        counts.push_back(told::of(std::string{channel}));
        counts.push_back(told::of(at.listeners(std::string{channel})));
    }
    return told::array(std::move(counts));
}

}  // namespace dibs::simulation::redis
