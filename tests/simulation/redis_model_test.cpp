// SPDX-License-Identifier: Apache-2.0
// The simulated server and a real one are asked the same, at the same time by their clocks: they must
// tell the same, to the byte. What is asked are the script's batches as the store writes them, and
// what other programs do to the keys meanwhile.

#include "simulation/random_verbs.hpp"
#include "simulation/stores/redis/keyspace.hpp"
#include "simulation/stores/redis/script_engine.hpp"
#include "simulation/world/random.hpp"
#include "store/redis/resp.hpp"
#include "store/redis/script.hpp"
#include "store/redis/steps.hpp"
#include "store/remote/party_text.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::simulation {

namespace {

namespace wire = store::redis;
using namespace std::chrono_literals;
using dibs::testing::redis_server;

/// Long before the limit of fences, and 16 digits.
constexpr std::int64_t start_us = 1'764'000'000'123'456;

std::string text_of(const redis::told& what) {
    switch (what.what) {
        case redis::told::form::integer:
            return std::to_string(what.number);
        case redis::told::form::nothing:
            return "(nil)";
        case redis::told::form::array: {
            std::string all = "[";
            for (std::size_t at = 0; at < what.items.size(); ++at) {
                all += (at == 0 ? "" : " ") + text_of(what.items[at]);
            }
            return all + "]";
        }
        default:
            return what.text;
    }
}

redis_server::words words_of(std::string_view command) {
    wire::reply_reader reader;
    reader.feed(command);
    EXPECT_EQ(reader.next(), wire::reply_reader::state::complete);
    redis_server::words all;
    for (const auto& one : reader.current()) {
        if (one.what == wire::kind::bulk) {
            all.emplace_back(one.text);
        }
    }
    return all;
}

struct RedisModel : ::testing::Test {
    void advance(core::microseconds by) {
        clock.advance(by.count());
        around.now_us += by.count();
    }

    redis::told ask_model(const redis_server::words& asked) {
        const std::vector<std::string_view> words(asked.begin(), asked.end());
        around.script_wrote = false;
        if (words[0] != "EVAL") {
            return data.run(words, around);
        }
        const auto name = std::to_string(std::hash<std::string_view>{}(words[1]));
        if (!scripts.knows(name)) {
            EXPECT_EQ(scripts.load(name, words[1]), "");
        }
        const auto keys = std::stoul(asked[2]);
        const auto arguments = std::span{words}.subspan(3);
        return scripts.run(
            name,
            arguments.first(keys),
            arguments.subspan(keys),
            [&](redis::keyspace::words command) { return data.run(command, around); });
    }
    /// Both must tell the same.
    void ask(const redis_server::words& asked) {
        const auto told = ask_model(asked);
        EXPECT_EQ(text_of(told), server.ask(asked)) << ::testing::PrintToString(
            redis_server::words(asked.begin() + (asked[0] == "EVAL" ? 2 : 0), asked.end()));
        for (const auto& answer : told.items) {
            heard += answer.items.empty() ? "" : answer.items.front().text;
        }
        heard += told.what == redis::told::form::error ? "!" : "";
        // What is told when everything went as usual.
        if (asked[0] == "EVAL") {
            heard += told.what == redis::told::form::text      ? "G"
                     : told.what == redis::told::form::integer ? "R"
                                                               : "";
        }
    }

    /// It is another one whenever the server becomes a primary again.
    void learn_replication_id() {
        const auto told = server.ask({"INFO", "replication"});
        replication_id = told.substr(told.find("master_replid:") + 14, 40);
        around.replication_id = replication_id;
    }

    struct mood {
        bool full = false;
        bool is_replica = false;
    };
    void set_mood(mood now) {
        around.full = now.full;
        around.takes_no_writes =
            now.is_replica ? "READONLY You can't write against a read only replica." : "";
        ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", now.full ? "1" : "0"}), "OK");
        // Of a primary that is not there: it keeps what it has.
        const auto told = now.is_replica ? server.ask({"REPLICAOF", "127.0.0.1", "1"})
                                         : server.ask({"REPLICAOF", "NO", "ONE"});
        ASSERT_TRUE(told.starts_with("OK")) << told;
        learn_replication_id();
    }

    std::string replication_id;
    dibs::testing::temporary_folder folder;
    dibs::testing::server_clock clock{(folder.path() / "clock").string(), start_us};
    redis_server server{{}, &clock};
    std::string
        heard;  ///< the letters of all answers; ! for a refusal of the whole batch, G and R for
                ///< what is usual
    redis::keyspace data;
    redis::script_engine scripts;
    redis::keyspace::surroundings around{
        .now_us = start_us,
        .listeners = [](const std::string&) { return std::int64_t{0}; },
        .publish = [](const std::string&, const std::string&) { return std::int64_t{0}; },
        .takes_no_writes = {}};
};

/// Draws what a process may ask of a few keys, and what somebody else may do to them.
class questions {
  public:
    explicit questions(std::uint64_t seed) : verbs_(seed, keys(), start_us) {}

    redis_server::words batch(std::int64_t now_us) {
        const auto entries = verbs_.batch(now_us);
        std::vector<std::uint32_t> all(entries.size());
        std::iota(all.begin(), all.end(), 0U);
        std::string bytes;
        wire::write_batch(bytes,
                          wire::send_as::text,
                          where_,
                          {std::to_string(random_.below(2)),
                           store::remote::text_of({"here", 7, "u", "c"}),
                           random_.chance(300) ? verbs_.some_ttl() : core::microseconds{}},
                          entries,
                          wire::order_of(entries, all));
        return words_of(bytes);
    }
    redis_server::words look() {
        std::string bytes;
        wire::write_looks(bytes, wire::send_as::text, where_, {"0", "who"}, keys());
        return words_of(bytes);
    }
    redis_server::words meddling() {
        const auto name = random_.chance(500) ? where_.lock(key()) : where_.rest(key());
        switch (random_.below(9)) {
            case 8:
                return random_.chance(500)
                           ? redis_server::words{"DEL", wire::names::fence_mark()}
                           : redis_server::words{"SET", wire::names::fence_mark(), "not ours"};
            case 0:
                return {"DEL", name};
            case 6:
                return {"DEL", where_.rest(key()) + "q"};
            case 7:
                return {"DEL", where_.rest(key()) + "t" + holder().text()};
            case 1:
                return {"SET", where_.lock(key()), "somebody-else", "PX", "1500"};
            case 2:
                return {"SET", where_.lock(key()), "for-ever"};
            case 3:
                return {"PERSIST", name};
            case 4:
                return {"PEXPIRE", name, "700"};
            default:
                return {"SET", name, "dibs2 of a later release", "PX", "900"};
        }
    }
    core::microseconds pause() { return verbs_.pause(); }
    [[nodiscard]] bool chance(unsigned per_mille) { return random_.chance(per_mille); }

    static std::vector<std::string> all_names() {
        const wire::names where{""};
        std::vector<std::string> all{where.epoch(), wire::names::fence_mark()};
        for (const auto& key : keys()) {
            all.push_back(where.lock(key));
            all.push_back(where.rest(key));
            all.push_back(where.rest(key) + "q");
            for (std::uint64_t holder = 0; holder < random_verbs::holders; ++holder) {
                all.push_back(where.rest(key) + "t" + random_verbs::holder(holder).text());
            }
        }
        return all;
    }

  private:
    static const std::vector<std::string>& keys() {
        static const std::vector<std::string> all{"a", "b", "{c}"};
        return all;
    }
    const std::string& key() { return verbs_.key(); }
    core::holder_id holder() { return verbs_.holder(); }

    random_verbs verbs_;
    random& random_ = verbs_.chance();
    const wire::names where_{""};
};

}  // namespace

TEST_F(RedisModel, TellsTheSameAsARealServer) {
    for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        questions next{seed};
        set_mood({});
        for (int step = 0; step < 100 && !HasFailure(); ++step) {
            advance(next.pause());
            if (next.chance(100)) {
                set_mood({next.chance(300), next.chance(150)});
            }
            ask(next.chance(120) ? next.meddling() : next.batch(around.now_us));
            ask(next.look());
        }
        set_mood({});
        for (const auto& name : questions::all_names()) {
            ask({"DEL", name});
        }
    }
    for (const char kind : std::string{"ghdblnrfxvmscweq!GR"}) {
        EXPECT_NE(heard.find(kind), std::string::npos) << "nothing was answered by " << kind;
    }
}

}  // namespace dibs::simulation
