// SPDX-License-Identifier: Apache-2.0
// Redis URLs, and where records lie.

#include "core/key.hpp"
#include "store/redis/address.hpp"
#include "store/redis/lock_text.hpp"
#include "store/redis/names.hpp"
#include "store/redis/refusals.hpp"
#include "store/redis/steps.hpp"
#include "store/remote/party_text.hpp"
#include "store/url.hpp"
#include "support/verbs.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dibs::store::redis {

namespace {

std::optional<address> parsed(const std::string& text, std::string& fault) {
    const auto outer = parse_url(text, fault);
    return outer ? parse_address(text, outer->options, fault) : std::nullopt;
}

}  // namespace

TEST(RedisAddress, IsTakenApart) {
    std::string fault;
    auto at = parsed("redis://localhost", fault);
    ASSERT_TRUE(at) << fault;
    EXPECT_EQ(at->host, "localhost");
    EXPECT_EQ(at->port, 6379);
    EXPECT_EQ(at->database, 0U);
    EXPECT_EQ(at->prefix, "");
    at = parsed("redis://ann:p%40ss%2Fw%3Aord@[::1]:7000/3?prefix=locks%3A&name=jobs", fault);
    ASSERT_TRUE(at) << fault;
    EXPECT_EQ(at->user, "ann");
    EXPECT_EQ(at->password, "p@ss/w:ord");
    EXPECT_EQ(at->host, "::1");
    EXPECT_EQ(at->port, 7000);
    EXPECT_EQ(at->database, 3U);
    EXPECT_EQ(at->prefix, "locks:");
    EXPECT_EQ(at->name, "jobs");
    at = parsed("redis://:secret@h/", fault);
    ASSERT_TRUE(at) << fault;
    EXPECT_EQ(at->user, "");
    EXPECT_EQ(at->password, "secret");
    at = parsed("redis+unix:///run/redis%20x.sock?db=2", fault);
    ASSERT_TRUE(at) << fault;
    EXPECT_EQ(at->socket, "/run/redis x.sock");
    EXPECT_EQ(at->database, 2U);
    at = parsed("redis+unix://u:p@/run/redis.sock", fault);
    ASSERT_TRUE(at) << fault;
    EXPECT_EQ(at->user, "u");
}

TEST(RedisAddress, StrictIsAskedForWithItsLongestTtl) {
    std::string fault;
    EXPECT_EQ(parsed("redis://h", fault)->longest_ttl, core::microseconds{0});
    EXPECT_EQ(parsed("redis://h?guarantee=strict", fault)->longest_ttl, std::chrono::minutes{1});
    EXPECT_EQ(parsed("redis://h?max_ttl=90s&guarantee=strict", fault)->longest_ttl,
              std::chrono::seconds{90});
    for (const std::string wrong : {"redis://h?max_ttl=90s",
                                    "redis://h?guarantee=best",
                                    "redis://h?guarantee=strict&max_ttl=90",
                                    "redis://h?guarantee=strict&max_ttl=0s",
                                    "redis://h?guarantee=strict&max_ttl=25h"}) {
        fault.clear();
        EXPECT_FALSE(parsed(wrong, fault)) << wrong;
        EXPECT_NE(fault, "") << wrong;
    }
}

TEST(RedisAddress, WhatIsWrongIsToldWithoutAPasswordThatWasNotEncoded) {
    std::string fault;
    EXPECT_FALSE(parsed("redis://u:hunter2/x@h", fault));
    EXPECT_EQ(fault.find("hunter2"), std::string::npos) << fault;
    EXPECT_NE(fault.find("%2F"), std::string::npos) << fault;
    EXPECT_FALSE(parsed("redis://u:12/hunter2@h/0", fault));
    EXPECT_EQ(fault.find("hunter2"), std::string::npos) << fault;
    EXPECT_FALSE(parsed("redis://h:65536", fault));
    EXPECT_NE(fault.find("65536"), std::string::npos) << fault;
}

TEST(RedisAddress, RefusesWhatItCannotUnderstand) {
    for (const std::string text :
         {"redis:",         "redis:localhost",      "redis://",
          "redis://:6379",  "redis://h:0",          "redis://h:65536",
          "redis://h:",     "redis://h:x",          "redis://h/x",
          "redis://h/-1",   "redis://a,b",          "redis://[::1",
          "redis://[::1]7", "redis://user@h",       "redis://h?prefx=a",
          "redis://h?db=x", "redis://h?name=a%20b", "redis://h?prefix=a:~dibs",
          "redis+unix://",  "redis+unix://h/path"}) {
        std::string fault;
        EXPECT_FALSE(parsed(text, fault)) << text;
        EXPECT_FALSE(fault.empty()) << text;
    }
}

TEST(RedisAddress, SpeaksTlsWhenItsSchemeSaysSoHoweverItIsWritten) {
    std::string fault;
    for (const std::string scheme : {"rediss", "REDISS", "Rediss"}) {
        const auto at = parsed(scheme + "://h:7000/1", fault);
        ASSERT_TRUE(at) << fault;
        ASSERT_TRUE(at->tls) << scheme;
        EXPECT_EQ(at->tls->ca, "");
        EXPECT_EQ(at->port, 7000);
        EXPECT_EQ(at->shown(), "rediss://h:7000/1");
    }
    for (const std::string plain : {"redis://h", "REDIS://h", "redis+unix:///run/s"}) {
        EXPECT_FALSE(parsed(plain, fault)->tls) << plain;
    }
    const auto at =
        parsed("rediss://h?ca=/a%20b/ca.pem&cert=/c.pem&key=/k.pem&sni=locks.example", fault);
    ASSERT_TRUE(at) << fault;
    EXPECT_EQ(at->tls->ca, "/a b/ca.pem");
    EXPECT_EQ(at->tls->certificate, "/c.pem");
    EXPECT_EQ(at->tls->key, "/k.pem");
    EXPECT_EQ(at->tls->server_name, "locks.example");
}

TEST(RedisAddress, RefusesTlsThatIsNone) {
    for (const auto& [text, part] :
         {std::pair<std::string, std::string>{"redis://h?ca=/ca.pem", "write rediss://"},
          {"redis+unix:///run/s?sni=h", "write rediss://"},
          {"rediss://h?verify=no", "always verified"},
          {"redis://h?verify=yes", "always verified"},
          {"rediss://h?ca=ca.pem", "whole path"},
          {"rediss://h?cert=", "whole path"},
          {"rediss://h?sni=", "host name"},
          {"rediss://h?sni=a%20b", "host name"},
          {"rediss://h?key=/k.pem", "goes with cert"},
          {"rediss://h?tls=yes", "unknown option"}}) {
        std::string fault;
        EXPECT_FALSE(parsed(text, fault)) << text;
        EXPECT_NE(fault.find(part), std::string::npos) << text << ": " << fault;
    }
}

TEST(RedisAddress, ShowsNoPassword) {
    std::string fault;
    const auto at = parsed("redis://ann:secret@h:1/2", fault);
    ASSERT_TRUE(at) << fault;
    EXPECT_EQ(at->shown(), "redis://ann@h:1/2");
}

TEST(RedisNames, AreDistinctAndLeadBack) {
    std::set<std::string> seen;
    for (const std::string key : {"a",
                                  "{a}",
                                  "{{a}}",
                                  "{a}b",
                                  "a{b}",
                                  "{}",
                                  "{}a",
                                  "a{}b",
                                  "a}",
                                  "{a",
                                  "}{",
                                  "}{a}",
                                  "a}b",
                                  "日本",
                                  "a:b",
                                  "{a}{b}",
                                  "a{b}c",
                                  "{{a}",
                                  "{a}}"}) {
        for (const std::string prefix : {"", "p:", "{t}", "{"}) {
            const names where{prefix};
            const auto rest = where.rest(key);
            EXPECT_EQ(where.lock(key), prefix + key);
            EXPECT_EQ(where.key_of_rest(rest), key) << rest;
            EXPECT_TRUE(names::fault_of(key).empty());
            if (prefix.empty()) {
                EXPECT_TRUE(seen.insert(rest).second) << rest;
            }
        }
    }
    const names locks{"locks:"};
    EXPECT_FALSE(locks.key_of_rest(names{""}.rest("a")));
    EXPECT_FALSE(locks.key_of_rest("locks:a"));
    EXPECT_FALSE(locks.key_of_rest("{locks:}:~dibs"));
    EXPECT_FALSE(names::fault_of("{a}:~dibs").empty());
    EXPECT_FALSE(names::fault_of("a:~dibs:").empty());
    EXPECT_EQ(names{""}.rest("invoice"), "{invoice}:~dibs");
    EXPECT_EQ(names{""}.rest("{a}invoice"), "{a}invoice:~dibs:");
}

TEST(RedisNames, PartiesSurviveTheirText) {
    core::party who;
    who.host = "host a";
    who.pid = 4711;
    who.user =
        "some\x1f"
        "body";
    who.command = "x \x1f y\nz";
    const auto back = store::remote::party_of(store::remote::text_of(who));
    EXPECT_EQ(back.host, who.host);
    EXPECT_EQ(back.pid, who.pid);
    EXPECT_EQ(back.user, core::printable(who.user));
    EXPECT_EQ(back.command, core::printable(who.command));
    EXPECT_FALSE(parse_lock("0123456789abcdef"));
    EXPECT_FALSE(parse_lock("dibs1 ab x 2 3 a p w"));
    EXPECT_TRUE(parse_lock("dibs1 ab 1 2 3 a p w"));
}

TEST(RedisSteps, RefuseAFloorThatNoLuaNumberHolds) {
    auto asked = testing::acquire_of("k", testing::holder_of(1));
    asked.floor = fence_limit;
    const auto refusal = fault_of(core::verb{asked});
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->took, core::effect::no);
    EXPECT_EQ(refusal->error, errc::invalid_argument);
    asked.floor = fence_limit - 1;
    EXPECT_FALSE(fault_of(core::verb{asked}));
}

TEST(RedisSteps, TellWhatWasSurelyNotExecuted) {
    for (const auto* text :
         {"LOADING x", "BUSY x", "READONLY x", "OOM x", "NOPERM x", "MISCONF x", "NOSCRIPT x"}) {
        EXPECT_TRUE(surely_not_executed(text)) << text;
        EXPECT_EQ(answer_to_error(text, false).took, core::effect::no) << text;
        EXPECT_FALSE(answer_to_error(text, false).detail.empty()) << text;
    }
    EXPECT_FALSE(surely_not_executed("ERR Error running script"));
    EXPECT_EQ(answer_to_error("ERR x", true).took, core::effect::unknown);
}

// A reply that is not of our script, or of another number of entries, is doubt and nothing else.
TEST(RedisSteps, BelieveNoReplyThatIsNotOfTheScript) {
    std::vector<core::entry> batch(1);
    batch[0].what = testing::acquire_of("k", testing::holder_of(1));
    const std::vector<std::uint32_t> order{0};
    std::vector<core::answer> answers(1);
    const auto believed = [&](std::string_view bytes) {
        reply_reader reader;
        reader.feed(bytes);
        return reader.next() == reply_reader::state::complete &&
               read_batch(reader.current(), {"p", "w"}, batch, order, answers);
    };
    EXPECT_TRUE(believed("*2\r\n:5\r\n*6\r\n$1\r\nd\r\n:0\r\n:0\r\n:0\r\n$-1\r\n$-1\r\n"));
    for (const auto* bytes : {"+OK\r\n",
                              "*0\r\n",
                              "*1\r\n:5\r\n",
                              "*2\r\n:5\r\n:1\r\n",
                              "*2\r\n:5\r\n*0\r\n",
                              "*2\r\n:5\r\n*1\r\n$1\r\ng\r\n",
                              "*2\r\n$1\r\n5\r\n*6\r\n$1\r\nd\r\n:0\r\n:0\r\n:0\r\n$-1\r\n$-1\r\n",
                              "*3\r\n:5\r\n*1\r\n$1\r\nv\r\n*1\r\n$1\r\nv\r\n"}) {
        EXPECT_FALSE(believed(bytes)) << bytes;
    }
    // The short way: a fence, which is not behind the server's time, or the first and the last of a
    // block.
    EXPECT_TRUE(believed("*2\r\n:5\r\n:5\r\n"));
    EXPECT_EQ(answers[0].what, core::verdict::granted);
    EXPECT_EQ(answers[0].fences, (core::fence_block{5, 5}));
    EXPECT_TRUE(believed("*2\r\n:5\r\n$3\r\n2 5\r\n"));
    EXPECT_EQ(answers[0].fences, (core::fence_block{2, 5}));
    EXPECT_TRUE(believed("*2\r\n:5\r\n:9\r\n")) << "the clock was set back";
    for (const auto* bytes : {"*2\r\n:5\r\n$3\r\n2 4\r\n",
                              "*2\r\n:5\r\n$3\r\n6 5\r\n",
                              "*2\r\n:5\r\n$3\r\n0 5\r\n",
                              "*2\r\n:5\r\n$1\r\n5\r\n",
                              "*2\r\n:5\r\n$5\r\n2 5 5\r\n"}) {
        EXPECT_FALSE(believed(bytes)) << bytes;
    }
    batch[0].what = testing::renew_of("k", testing::holder_of(1));
    EXPECT_TRUE(believed("*2\r\n:5\r\n$5\r\n1 2 3\r\n"));
    EXPECT_EQ(answers[0].what, core::verdict::renewed);
    EXPECT_EQ(answers[0].fences, (core::fence_block{2, 3}));
    EXPECT_TRUE(answers[0].waiters);
    EXPECT_FALSE(believed("*2\r\n:5\r\n$5\r\n1 3 2\r\n"));
    EXPECT_FALSE(believed("*2\r\n:5\r\n:1\r\n"));
    batch[0].what = testing::release_of("k", testing::holder_of(1));
    EXPECT_TRUE(believed("*2\r\n:5\r\n:1\r\n"));
    EXPECT_EQ(answers[0].what, core::verdict::released);
    EXPECT_TRUE(answers[0].waiters);
    EXPECT_FALSE(believed("*2\r\n:5\r\n:-1\r\n"));
    // How many listen to what was given back, where it was alone.
    EXPECT_TRUE(believed(":2\r\n"));
    EXPECT_EQ(answers[0].what, core::verdict::released);
    EXPECT_TRUE(answers[0].waiters);
    EXPECT_FALSE(believed(":-1\r\n"));
    batch[0].what = testing::renew_of("k", testing::holder_of(1));
    EXPECT_FALSE(believed(":1\r\n"));
    EXPECT_FALSE(believed("$1\r\n9\r\n"));
    batch[0].what = testing::revoke_of("k", 1);
    EXPECT_FALSE(believed(":1\r\n"));
    EXPECT_FALSE(believed("*2\r\n:5\r\n:1\r\n")) << "this one has no short way";
}

// One reply for a whole batch: nobody listens to what was given back, and the fences follow each
// other, up to the server's time or from the one that is named.
TEST(RedisSteps, ReadWhatIsUsualFromTheTimeAlone) {
    std::vector<core::entry> batch(4);
    batch[0].what = testing::acquire_of("a", testing::holder_of(1));
    batch[1].what = testing::release_of("b", testing::holder_of(2));
    batch[2].what = testing::acquire_of("c", testing::holder_of(3));
    batch[3].what = testing::release_of("d", testing::holder_of(4));
    const std::vector<std::uint32_t> all{0, 1, 2, 3};
    auto order = order_of(batch, all);
    std::vector<core::answer> answers;
    const auto believed = [&](std::string_view bytes) {
        answers = std::vector<core::answer>(batch.size());
        reply_reader reader;
        reader.feed(bytes);
        return reader.next() == reply_reader::state::complete &&
               read_batch(reader.current(), {"p", "w"}, batch, order, answers);
    };
    ASSERT_TRUE(believed("$16\r\n1764000000123456\r\n"));
    constexpr core::fence_number time = 1'764'000'000'123'456;
    EXPECT_EQ(answers[0].what, core::verdict::granted);
    EXPECT_EQ(answers[0].fences, (core::fence_block{time - 1, time - 1}));
    EXPECT_EQ(answers[2].fences, (core::fence_block{time, time}));
    EXPECT_GT(answers[2].expires, answers[2].now.lease);
    for (const auto& one : answers) {
        EXPECT_EQ(one.took, core::effect::yes);
        EXPECT_EQ(one.now.lease.time_since_epoch().count(), static_cast<std::int64_t>(time));
    }
    for (const auto at : {1U, 3U}) {
        EXPECT_EQ(answers[at].what, core::verdict::released);
        EXPECT_FALSE(answers[at].waiters);
    }
    ASSERT_TRUE(believed("$21\r\n1764000000123456 1764\r\n") == false) << "behind the time";
    ASSERT_TRUE(believed("$33\r\n1764000000123456 1764000000999999\r\n"))
        << "the clock was set back";
    EXPECT_EQ(answers[0].fences, (core::fence_block{1'764'000'000'999'999, 1'764'000'000'999'999}));
    EXPECT_EQ(answers[2].fences, (core::fence_block{1'764'000'001'000'000, 1'764'000'001'000'000}));
    for (const auto* bytes : {":5\r\n",
                              "+OK\r\n",
                              "$-1\r\n",
                              "$0\r\n\r\n",
                              "$1\r\n1\r\n",
                              "$2\r\nno\r\n",
                              "$3\r\n5 x\r\n",
                              "$5\r\n5 5 5\r\n",
                              "$3\r\n5 0\r\n"}) {
        EXPECT_FALSE(believed(bytes)) << bytes;
    }
    batch[1].what = testing::renew_of("b", testing::holder_of(2));
    order = order_of(batch, all);
    EXPECT_FALSE(believed("$16\r\n1764000000123456\r\n")) << "a renewal is never told like that";
}

}  // namespace dibs::store::redis
