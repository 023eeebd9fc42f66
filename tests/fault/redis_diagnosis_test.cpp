// SPDX-License-Identifier: Apache-2.0
// What `dibs doctor` finds on a real server.

#include "redis_peer.hpp"

#include <algorithm>
#include <string>

namespace dibs::testing {

namespace {

using grade = store::finding::grade;

struct RedisDiagnosis : ::testing::Test {
    std::optional<store::finding> about(const std::string& subject) {
        for (auto& one : peer.opened->diagnose()) {
            if (one.subject == subject) {
                return one;
            }
        }
        return std::nullopt;
    }

    redis_server server;
    redis_peer peer{server};
};

}  // namespace

TEST_F(RedisDiagnosis, FindsLocksThatNeverExpire) {
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    ASSERT_EQ(peer.insist(acquire_of("nightly-lock", holder_of(1))).what, verdict::granted);
    EXPECT_FALSE(about("locks without expiry")) << "ours have one";
    ASSERT_EQ(server.ask({"SETNX", "lock:invoice", "me"}), "1");
    ASSERT_EQ(server.ask({"SET", "Lock:other", "me", "PX", "60000"}), "OK");
    ASSERT_EQ(server.ask({"HSET", "lock:settings", "a", "b"}), "1");
    const auto found = about("locks without expiry");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->state, grade::warning);
    EXPECT_NE(found->what.find("lock:invoice"), std::string::npos) << found->what;
    EXPECT_EQ(found->what.find("Lock:other"), std::string::npos) << found->what;
    EXPECT_EQ(found->what.find("settings"), std::string::npos) << found->what;
    EXPECT_EQ(found->what.find("nightly"), std::string::npos) << found->what;
    EXPECT_NE(found->advice.find("PX"), std::string::npos) << found->advice;
}

TEST_F(RedisDiagnosis, NamesTheOldestHolder) {
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    EXPECT_EQ(about("locks")->what, "0 held");
    ASSERT_EQ(peer.insist(acquire_of("first", holder_of(1))).what, verdict::granted);
    ASSERT_EQ(peer.insist(acquire_of("second", holder_of(2))).what, verdict::granted);
    const auto found = about("locks");
    EXPECT_EQ(found->what.find("2 held, the longest for"), 0U) << found->what;
    EXPECT_NE(found->what.find("first by here"), std::string::npos) << found->what;
    ASSERT_EQ(server.ask({"SET", "second", "theirs"}), "OK");
    const auto both = about("locks")->what;
    EXPECT_NE(both.find("2 held, the longest for"), std::string::npos) << both;
    EXPECT_NE(both.find(", 1 of them by other programs"), std::string::npos) << both;
}

TEST_F(RedisDiagnosis, TellsWhichRightsAreMissing) {
    ASSERT_EQ(server.ask({"ACL", "SETUSER", "default", "-publish", "-setrange"}), "OK");
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    const auto script = about("script");
    ASSERT_TRUE(script);
    EXPECT_EQ(script->state, grade::problem);
    EXPECT_NE(script->what.find("setrange"), std::string::npos) << script->what;
    const auto messages = about("messages");
    ASSERT_TRUE(messages);
    EXPECT_EQ(messages->state, grade::warning);
    ASSERT_EQ(server.ask({"ACL", "SETUSER", "default", "+publish", "+setrange", "-scan"}), "OK");
    EXPECT_EQ(about("script")->state, grade::ok);
    EXPECT_FALSE(about("messages"));
    EXPECT_EQ(about("listing")->state, grade::warning);
    ASSERT_EQ(server.ask({"ACL", "SETUSER", "default", "+scan", "resetkeys", "~app:*"}), "OK");
    EXPECT_EQ(about("script")->state, grade::ok)
        << "the user may have no other keys than the app's";
}

}  // namespace dibs::testing
