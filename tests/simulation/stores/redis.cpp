// SPDX-License-Identifier: Apache-2.0
// The Redis store: the very script that we ship, in Lua 5.1, on the data of a server in memory, asked
// and answered in the words that the real store uses. What the real store adds around them, the
// connections and their thread, is a remote_store here.

#include "simulation/stores/redis/keyspace.hpp"
#include "simulation/stores/redis/script_engine.hpp"
#include "simulation/stores/replicated_server.hpp"
#include "store/redis/lock_text.hpp"
#include "store/redis/names.hpp"
#include "store/redis/redis_store.hpp"
#include "store/redis/requests.hpp"
#include "store/redis/resp.hpp"
#include "store/redis/script.hpp"
#include "store/redis/steps.hpp"
#include "store/remote/party_text.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace dibs::simulation {

namespace {

namespace wire = store::redis;

/// Why a server carries out less than it is asked for.
struct mood {
    std::string_view refuses_all{};  ///< the error for every command; empty: none
    std::string_view takes_no_writes{};
    bool full = false;
};

constexpr std::array moods{
    mood{.refuses_all = "LOADING Redis is loading the dataset in memory"},
    mood{.refuses_all = "BUSY Redis is busy running a script."},
    mood{.takes_no_writes = "MISCONF Redis is configured to save RDB snapshots, but it's currently "
                            "unable to persist to disk."},
    mood{.takes_no_writes = "READONLY You can't write against a read only replica."},
    mood{.takes_no_writes = "NOREPLICAS Not enough good replicas to write."},
    mood{.full = true},
};

class redis_model final : public replicated_server<redis::keyspace> {
  public:
    explicit redis_model(store_context context)
        : replicated_server(context),
          names_(random_.chance(500) ? "" : "app:"),
          longest_ttl_(random_.chance(500) ? std::chrono::ceil<core::microseconds>(context.ttl)
                                           : core::microseconds{0}),
          caps_(store::redis_capabilities(longest_ttl_)) {}

    // --- to the simulator ------------------------------------------------------------------------

    /// By `appendfsync always`: what was acknowledged is on the disk.
    consequence lose_power(core::nanoseconds down_for) override { return restart(down_for); }

    consequence restart(core::nanoseconds down_for) override {
        run_id_ = new_id();
        return replicated_server::restart(down_for);
    }

    /// Or by `appendfsync everysec`, which loses what is younger than a second. A strict store grants
    /// nothing then until what was forgotten is over.
    consequence fail_over() override {
        if (random_.chance(300)) {
            return of_forgetting(replicated_server::lose_power(
                random_.between(core::milliseconds{1}, core::milliseconds{500})));
        }
        auto primary = std::exchange(other_run_id_, run_id_);
        const auto fallen = replicated_server::fail_over();
        run_id_ = std::move(primary);
        return of_forgetting(fallen);
    }

    /// A key goes by itself, be it a lock or the rest of a record; at times all do (FLUSHALL).
    consequence evict(random& chosen_by) override {
        auto without = data_;
        if (chosen_by.chance(100)) {
            without.forget_all();
        } else if (!data_.all().empty()) {
            without.forget(
                std::next(data_.all().begin(),
                          static_cast<std::ptrdiff_t>(chosen_by.below(data_.all().size())))
                    ->first);
        }
        become(std::move(without));
        return forgotten();
    }

    // --- to the network --------------------------------------------------------------------------

    [[nodiscard]] const store::capabilities& caps() const override { return caps_; }

    [[nodiscard]] store::answers execute(session from,
                                         sim_time sent,
                                         const std::vector<core::entry>& batch) override {
        std::optional<store::answers> given;
        auto asked = wire::batch_request::make(
            speaker(from), batch, [&](store::answers told) { given = std::move(told); });
        ask(std::move(asked));
        std::vector<std::uint32_t> all(batch.size());
        std::iota(all.begin(), all.end(), 0U);
        for (const auto at : wire::order_of(batch, all)) {
            log_.carried_out(batch[at].what, given->at(at), {from, sent});
        }
        // A later step may have taken back the ticket of one who was woken by an earlier one.
        for (const auto& [key, process] : std::exchange(woken_, {})) {
            log_.woken(key, process, clock().lease);
        }
        return std::move(*given);
    }

    void hear_notices(session from, notice tell) override { hear_notices_[from] = std::move(tell); }

    void leave(session from) override {
        replicated_server::leave(from);
        hear_notices_.erase(from);
    }

    [[nodiscard]] core::page list(session from,
                                  const std::string& prefix,
                                  const std::string& after,
                                  std::size_t limit) override {
        std::set<std::string> found;
        for (const auto& [name, kept] : data_.all()) {
            auto key = names_.key_of_rest(name);
            if (!key && kept.text.starts_with("dibs1 ")) {
                key = names_.key_of_lock(name);
            }
            if (key && key->starts_with(prefix) && *key > after) {
                found.insert(std::move(*key));
            }
        }
        std::vector<std::string> keys(found.begin(), found.end());
        core::page shown;
        if (keys.size() > limit) {
            keys.resize(limit);
            shown.more = true;
        }
        if (!keys.empty()) {
            std::string bytes;
            wire::write_looks(bytes, wire::send_as::text, names_, self(from), keys);
            wire::reply_reader reader;
            reader.feed(answer_to(bytes));
            if (reader.next() != wire::reply_reader::state::complete ||
                !wire::read_looks(reader.current(), self(from), keys, shown.records)) {
                shown.error = errc::store_refused;
                shown.more = false;
            }
        }
        return shown;
    }

  private:
    [[nodiscard]] bool is_strict() const { return longest_ttl_ > core::microseconds{0}; }
    [[nodiscard]] consequence of_forgetting(consequence fallen) const {
        return is_strict() ? consequence{""} : fallen;
    }

    [[nodiscard]] wire::caller self(session of) const {
        core::party told;
        told.host = "simulated";
        told.pid = static_cast<std::int64_t>(of);
        return {
            std::to_string(of),
            store::remote::text_of(told),
            longest_ttl_,
            [this, of](std::string_view key) { return watchers_of(std::string{key}).contains(of); },
            [this, of] { return hear_notices_.contains(of); }};
    }
    [[nodiscard]] const std::shared_ptr<const wire::speaker>& speaker(session of) {
        auto& known = speakers_[of];
        if (!known) {
            known = std::make_shared<const wire::speaker>(wire::speaker{names_, self(of)});
        }
        return known;
    }

    /// Asks until it is answered: a script that the server has forgotten is sent once more.
    void ask(std::unique_ptr<wire::request> first) {
        std::vector<core::task> letters;
        std::vector<std::unique_ptr<wire::request>> next;
        next.push_back(std::move(first));
        while (!next.empty()) {
            const auto asked = std::move(next.back());
            next.pop_back();
            std::string bytes;
            // Whether it is worth sending was for the client to know, before the line.
            while (asked->write(bytes, core::instant{}, {letters, next})) {
                wire::reply_reader reader;
                reader.feed(answer_to(bytes));
                if (reader.next() != wire::reply_reader::state::complete) {
                    throw std::logic_error{"the model of the server does not keep to the protocol"};
                }
                if (asked->answered(reader.current(), {letters, next})) {
                    break;
                }
                bytes.clear();
            }
        }
        for (auto& letter : letters) {
            letter();
        }
    }

    [[nodiscard]] std::string answer_to(std::string_view command) {
        wire::reply_reader reader;
        reader.feed(command);
        if (reader.next() != wire::reply_reader::state::complete) {
            throw std::logic_error{"the store does not keep to the protocol"};
        }
        std::vector<std::string_view> words;
        for (const auto& one : reader.current()) {
            if (one.what == wire::kind::bulk) {
                words.push_back(one.text);
            }
        }
        std::string bytes;
        redis::write(bytes, evaluate(words));
        return bytes;
    }

    /// EVALSHA or EVAL.
    [[nodiscard]] redis::told evaluate(std::span<const std::string_view> words) {
        const auto how = refuses_now() ? moods.at(random_.below(moods.size())) : mood{};
        if (!how.refuses_all.empty()) {
            return redis::told::error(std::string{how.refuses_all});
        }
        const auto name = wire::script_name();
        if (random_.chance(forgets_scripts_per_mille)) {
            scripts_.forget_all();
        }
        if (words[0] == "EVAL") {
            if (auto fault = scripts_.load(name, words[1]); !fault.empty()) {
                throw std::logic_error{fault};
            }
        } else if (!scripts_.knows(name)) {
            return redis::told::error("NOSCRIPT No matching script. Please use EVAL.");
        }
        redis::keyspace::surroundings around;
        around.now_us = clock().wall.time_since_epoch().count();
        around.takes_no_writes = how.takes_no_writes;
        around.full = how.full;
        around.replication_id = replication_id_;
        around.run_id = run_id_;
        around.listeners = [this](const std::string& channel) {
            if (const auto told = wire::names::process_of_notices(channel); !told.empty()) {
                return std::int64_t{hear_notices_.contains(std::stoull(std::string{told})) ? 1 : 0};
            }
            const auto key = names_.key_of_rest(channel);
            return key ? static_cast<std::int64_t>(watchers_of(*key).size()) : 0;
        };
        around.publish = [this](const std::string& channel, const std::string& message) {
            const auto process = wire::names::process_of_channel(channel);
            if (!process.empty()) {
                return wake_head(process, message);
            }
            const auto told = wire::names::process_of_notices(channel);
            if (!told.empty()) {
                return notify(told, message);
            }
            const auto key = names_.key_of_rest(channel);
            if (!key) {
                return std::int64_t{0};
            }
            wake(*key,
                 message.empty() ? std::nullopt : std::optional<session>{std::stoull(message)});
            return static_cast<std::int64_t>(watchers_of(*key).size());
        };
        const auto keys = static_cast<std::size_t>(std::stoul(std::string{words[2]}));
        return scripts_.run(
            name,
            words.subspan(3, keys),
            words.subspan(3 + keys),
            [&](redis::keyspace::words command) { return data_.run(command, around); });
    }

    /// A process, if it listens to a key, by a channel of its own.
    std::int64_t wake_head(std::string_view process, const std::string& rest) {
        const auto key = names_.key_of_rest(rest);
        if (!key) {
            throw std::logic_error{"a process is told of what is no key"};
        }
        const auto& all = watchers_of(*key);
        const auto at = all.find(std::stoull(std::string{process}));
        if (at == all.end()) {
            return 0;
        }
        woken_[*key] = at->first;
        at->second(store::wake_by::unknown);
        return 1;
    }

    /// A process that left word with a lock.
    std::int64_t notify(std::string_view process, const std::string& rest) {
        const auto key = names_.key_of_rest(rest);
        if (!key) {
            throw std::logic_error{"a process is told of what is no key"};
        }
        const auto at = hear_notices_.find(std::stoull(std::string{process}));
        if (at == hear_notices_.end()) {
            return 0;
        }
        at->second(*key);
        return 1;
    }

    [[nodiscard]] std::map<std::string, core::record> records_of(
        const redis::keyspace& copy) const override {
        std::map<std::string, core::record> found;
        const auto prefix = names_.lock("");
        for (const auto& [name, kept] : copy.all()) {
            if (names_.key_of_rest(name) || !name.starts_with(prefix)) {
                continue;
            }
            if (const auto shared = wire::parse_shares(kept.text)) {
                auto& record = found[name.substr(prefix.size())];
                record.capacity = shared->capacity;
                for (const auto& one : shared->shares) {
                    core::grant held;
                    held.holder = core::holder_id::parse(one.holder).value_or(core::holder_id{});
                    held.fences = one.value.fences;
                    held.weight = one.weight;
                    held.expires = core::store_instant{core::microseconds{one.expires_us}};
                    record.grants.push_back(held);
                }
                continue;
            }
            const auto value = wire::parse_lock(kept.text);
            if (!value) {
                continue;
            }
            core::grant held;
            held.holder = core::holder_id::parse(std::string_view{kept.text}.substr(6, 32))
                              .value_or(core::holder_id{});
            held.fences = value->fences;
            held.expires = core::store_instant{core::milliseconds{kept.expires_ms}};
            found[name.substr(prefix.size())].grants.push_back(held);
        }
        return found;
    }

    void restarted() override {
        scripts_.forget_all();
        hear_notices_.clear();
        replication_id_ = new_id();
    }

    [[nodiscard]] std::string new_id() {
        auto digits = std::to_string(++ids_);
        return digits.insert(0, 40 - digits.size(), '0');
    }

    static constexpr unsigned forgets_scripts_per_mille = 10;

    const wire::names names_;
    std::map<session, notice> hear_notices_;
    std::map<std::string, session> woken_;  ///< by the batch under way, as the head of a queue
    const core::microseconds longest_ttl_;  ///< 0: not strict
    const store::capabilities caps_;
    redis::script_engine scripts_;
    std::map<session, std::shared_ptr<const wire::speaker>> speakers_;
    std::uint64_t ids_ = 0;
    std::string replication_id_ = new_id();  ///< new whenever a server begins to be the primary
    std::string run_id_ = new_id();          ///< new whenever a server begins
    std::string other_run_id_ = new_id();    ///< of the one that may take over
};

}  // namespace

std::unique_ptr<store_model> make_redis_store(store_context context) {
    return std::make_unique<redis_model>(context);
}

}  // namespace dibs::simulation
