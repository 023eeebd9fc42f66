// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data of a Redis server, and the commands that our script uses on it, as the server carries
// them out. A copy of it is a replica, or what lies on a disk. tests/fault/redis_model_test.cpp holds
// it to a real server.

#include "simulation/stores/redis/told.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::simulation::redis {

class keyspace {
  public:
    /// What a command sees of the server around the data.
    struct surroundings {
        std::int64_t now_us = 0;  ///< the server's calendar: stands still within a script
        /// How many hear a channel.
        std::function<std::int64_t(const std::string& channel)> listeners;
        /// Tells them; as many as there are.
        std::function<std::int64_t(const std::string& channel, const std::string& message)> publish;
        /// The error with which it refuses to write; empty: it takes writes.
        std::string_view takes_no_writes;
        /// Its memory is full: what needs more is refused, but to a script that wrote already.
        bool full = false;
        bool script_wrote = false;
        /// Told by INFO, of 40 digits.
        std::string_view replication_id{};
        std::string_view run_id{};
    };

    using words = std::span<const std::string_view>;
    [[nodiscard]] told run(words command, surroundings& at);

    struct value {
        std::string text;
        std::int64_t expires_ms = -1;  ///< -1: never
        /// A sorted set: its members by their scores, which are whole, and which two may share. Not
        /// empty: then it is no string.
        std::set<std::pair<std::int64_t, std::string>> ranked{};
    };
    /// Also what has expired and was not touched since.
    using all_values = std::map<std::string, value, std::less<>>;
    [[nodiscard]] const all_values& all() const noexcept { return all_; }
    void forget(std::string_view key);
    void forget_all() noexcept { all_.clear(); }

  private:
    struct command;
    [[nodiscard]] static const command* command_named(std::string_view name);

    [[nodiscard]] told get(words asked, surroundings& at);
    [[nodiscard]] told get_all(words asked, surroundings& at);
    [[nodiscard]] told count_of(words asked, surroundings& at);
    [[nodiscard]] told set(words asked, surroundings& at);
    [[nodiscard]] told set_range(words asked, surroundings& at);
    [[nodiscard]] told remove(words asked, surroundings& at);
    [[nodiscard]] told expire_in(words asked, surroundings& at);
    [[nodiscard]] told expire_at(words asked, surroundings& at);
    [[nodiscard]] told expiry(words asked, surroundings& at);
    [[nodiscard]] told time_left(words asked, surroundings& at);
    [[nodiscard]] told persist(words asked, surroundings& at);
    [[nodiscard]] told time(words asked, surroundings& at);
    [[nodiscard]] told publish(words asked, surroundings& at);
    [[nodiscard]] told info(words asked, surroundings& at);
    [[nodiscard]] told pubsub(words asked, surroundings& at);

    [[nodiscard]] told add_ranked(words asked, surroundings& at);
    [[nodiscard]] told remove_ranked(words asked, surroundings& at);
    [[nodiscard]] told rank(words asked, surroundings& at);
    [[nodiscard]] told range(words asked, surroundings& at);
    [[nodiscard]] told count_ranked(words asked, surroundings& at);

    [[nodiscard]] value* find(std::string_view key, const surroundings& at);
    [[nodiscard]] told set_expiry(std::string_view key, std::int64_t when_ms, surroundings& at);

    all_values all_;
};

}  // namespace dibs::simulation::redis
