// SPDX-License-Identifier: Apache-2.0
// Programs of others and dibs on one key of one server: whoever sets a value of its own with SET NX
// PX, and compares before it touches the key again, and dibs exclude each other, and leave each
// other's locks alone. What those break that do not compare, dibs notices.

#include "peer_process.hpp"
#include "support.hpp"
#include "support/places.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::testing {
namespace {

using json = nlohmann::json;

constexpr const char* key = "invoice:process";

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

/// A server, and on it dibs and another program.
class Peers : public ::testing::Test {
  protected:
    /// Empty when it cannot run here; then the test is skipped, or fails where it must not be.
    std::unique_ptr<peer_process> start(const std::string& kind) {
        const auto port = std::to_string(server.port());
        std::vector<std::string> command{
            DIBS_NODE, std::string{tests::places::peers} + "/peer.js", kind, port, key};
        if (kind == "redis-py") {
            command = {DIBS_PYTHON, std::string{tests::places::peers} + "/redis_py.py", port, key};
        } else if (kind == "library") {
            command = {tests::places::library_peer, port, key};
        }
        auto made = std::make_unique<peer_process>(command, tests::places::node_modules);
        const auto told = made->hear();
        if (told == "ready") {
            return made;
        }
        const char* wish = std::getenv("DIBS_INTEROP");
        if (wish != nullptr && std::string_view{wish} == "required") {
            ADD_FAILURE() << kind << ": " << told;
        } else {
            why_not = kind + " cannot run here, scripts/test installs what it needs: " + told;
        }
        return nullptr;
    }

    [[nodiscard]] launch dibs_at(const std::vector<std::string>& words) const {
        launch how;
        how.words = words;
        how.variables["DIBS_STORE"] = server.url();
        how.cwd = here.path();
        return how;
    }
    [[nodiscard]] outcome dibs(const std::vector<std::string>& words) const {
        return process(dibs_at(words)).wait();
    }
    [[nodiscard]] std::string value() const { return server.ask({"GET", key}); }
    [[nodiscard]] long left_ms() const { return std::stol(server.ask({"PTTL", key})); }
    [[nodiscard]] bool has_waiter() const {
        const auto shown = dibs({"show", key, "--json"});
        return shown.status == 0 && json::parse(shown.out)["waiters"] == 1;
    }

    redis_server server;
    folder here;
    std::string why_not;
};

class ComparingPeers : public Peers, public ::testing::WithParamInterface<const char*> {
  protected:
    void SetUp() override {
        other = start(GetParam());
        if (!other && !why_not.empty()) {
            GTEST_SKIP() << why_not;
        }
        ASSERT_TRUE(other);
    }
    [[nodiscard]] static bool renews() { return GetParam() != std::string_view{"skippingJob"}; }

    std::unique_ptr<peer_process> other;
};

std::string kind_of(const ::testing::TestParamInfo<const char*>& tested) {
    std::string name = tested.param;
    std::erase(name, '-');
    return name;
}

INSTANTIATE_TEST_SUITE_P(
    Of,
    ComparingPeers,
    ::testing::Values("redlock4", "redlock5", "skippingJob", "redis-py", "library"),
    kind_of);

/// Those that are not dibs.
class Strangers : public ComparingPeers {};

INSTANTIATE_TEST_SUITE_P(Of,
                         Strangers,
                         ::testing::Values("redlock4", "redlock5", "skippingJob", "redis-py"),
                         kind_of);

}  // namespace

TEST_P(ComparingPeers, ExcludeDibsAndAreExcluded) {
    ASSERT_EQ(other->ask("acquire 60000"), "granted");
    const auto theirs = value();
    EXPECT_EQ(dibs({"acquire", key}).status, 75);
    EXPECT_EQ(dibs({"run", key, "--", "touch", here.file("ran")}).status, 75);
    EXPECT_EQ(dibs({"once", "job", "--slot", "s", "--", "true"}).status, 0) << "another key";
    EXPECT_FALSE(exists(here.file("ran")));
    EXPECT_EQ(value(), theirs);
    if (renews()) {
        EXPECT_EQ(other->ask("renew 90000"), "renewed") << "nothing of ours stands in its way";
        EXPECT_GT(left_ms(), 80'000);
    }
    EXPECT_EQ(other->ask("release"), "released");

    const auto taken = dibs({"acquire", key, "--ttl", "60s"});
    ASSERT_EQ(taken.status, 0) << taken.err;
    EXPECT_EQ(other->ask("acquire 60000"), "held");
    EXPECT_EQ(dibs({"renew", first_line(taken.out), "--ttl", "90s"}).status, 0);
    EXPECT_EQ(dibs({"release", first_line(taken.out)}).status, 0);
    EXPECT_EQ(other->ask("acquire 60000"), "granted");
}

TEST_P(ComparingPeers, KeepTheirHandsOffALockOfDibs) {
    ASSERT_EQ(other->ask("acquire 200"), "granted");
    // Theirs is over, and they do not know it.
    const auto taken = dibs({"acquire", key, "--ttl", "60s", "--wait", "20s"});
    ASSERT_EQ(taken.status, 0) << taken.err;
    const auto ours = value();
    if (renews()) {
        EXPECT_EQ(other->ask("renew 900000"), "not_held");
    }
    EXPECT_EQ(other->ask("release"), "not_held");
    EXPECT_EQ(value(), ours);
    EXPECT_LE(left_ms(), 60'000);
    EXPECT_EQ(dibs({"release", first_line(taken.out)}).status, 0);
}

TEST_P(ComparingPeers, AreLeftAloneByALeaseThatIsOver) {
    const auto taken = dibs({"acquire", key, "--ttl", "100ms"});
    ASSERT_EQ(taken.status, 0) << taken.err;
    ASSERT_TRUE(eventually([&] { return other->ask("acquire 60000") == "granted"; }));
    const auto theirs = value();
    const auto handle = first_line(taken.out);
    EXPECT_EQ(dibs({"renew", handle, "--ttl", "15m"}).status, 79);
    EXPECT_EQ(dibs({"release", handle}).status, 79);
    EXPECT_NE(dibs({"break", key, "--fence", "1", "--yes"}).status, 0) << "it has no fence";
    EXPECT_EQ(value(), theirs);
    EXPECT_LE(left_ms(), 60'000);
    EXPECT_EQ(other->ask("release"), "released");
}

TEST_P(ComparingPeers, AreFollowedByAWaiterWhenTheyLetGo) {
    ASSERT_EQ(other->ask("acquire 600000"), "granted");
    process waiter{dibs_at({"run", key, "--wait", "10m", "--", "true"})};
    ASSERT_TRUE(eventually([&] { return has_waiter(); })) << waiter.err();
    EXPECT_EQ(other->ask("release"), "released");
    EXPECT_EQ(waiter.wait().status, 0) << "it has minutes left, and yet is not waited for";
}

TEST_P(ComparingPeers, AreFollowedByAWaiterWhenTheyDie) {
    ASSERT_EQ(other->ask("acquire 2000"), "granted");
    process waiter{dibs_at({"run", key, "--wait", "10m", "--", "true"})};
    ASSERT_TRUE(eventually([&] { return has_waiter() || waiter.ended(); })) << waiter.err();
    other->kill();
    EXPECT_EQ(waiter.wait().status, 0);
}

TEST_P(ComparingPeers, LoseNoCountWhenAllTakeTurns) {
    constexpr int rounds = 30;
    constexpr int runs = 8;
    write_file(here.file("count"), "0");
    auto second = start(GetParam());
    auto library = start("library");
    ASSERT_TRUE(second);
    ASSERT_TRUE(library);
    const auto order = "contend " + std::to_string(rounds) + " 60000 " + here.path();
    for (auto* one : {other.get(), second.get(), library.get()}) {
        one->tell(order);
    }
    for (int run = 0; run < runs; ++run) {
        const auto ended = dibs({"run",
                                 key,
                                 "--wait",
                                 "10m",
                                 "--",
                                 std::string{tests::places::peers} + "/work.sh",
                                 here.path()});
        ASSERT_EQ(ended.status, 0) << ended.err;
    }
    for (auto* one : {other.get(), second.get(), library.get()}) {
        EXPECT_EQ(one->hear(), "done");
    }
    EXPECT_EQ(read_file(here.file("overlaps")), "");
    EXPECT_EQ(std::stoi(read_file(here.file("count"))), 3 * rounds + runs);
    EXPECT_EQ(server.ask({"EXISTS", key}), "0");
}

TEST_P(Strangers, AreShownAsWhatTheyAre) {
    ASSERT_EQ(other->ask("acquire 60000"), "granted");
    const auto shown = dibs({"show", key});
    EXPECT_NE(shown.out.find("another program"), std::string::npos) << shown.out;
    EXPECT_EQ(shown.out.find("pid"), std::string::npos) << "nothing is known of it: " << shown.out;
    EXPECT_NE(shown.out.find("none: the store knows of no grant"), std::string::npos) << shown.out;
    const auto listed = dibs({"ls", key});
    EXPECT_NE(listed.out.find("(another program)"), std::string::npos) << listed.out;
    const auto refused = dibs({"run", "-v", key, "--", "true"});
    EXPECT_NE(refused.err.find("is held by another program, "), std::string::npos) << refused.err;
    EXPECT_EQ(refused.err.find(value()), std::string::npos) << "their secret is told";
    const auto broken = dibs({"break", key, "--fence", "1", "--yes"});
    EXPECT_NE(broken.err.find("is ended by its own means"), std::string::npos) << broken.err;
    const auto record = json::parse(dibs({"show", key, "--json"}).out);
    EXPECT_EQ(record["holders"].at(0)["fence"], 0);
    EXPECT_LE(record["holders"].at(0)["remaining_ms"], 60'000);
    EXPECT_GT(record["holders"].at(0)["remaining_ms"], 30'000);
}

// --- those that do not compare -------------------------------------------------------------------

TEST_F(Peers, ABlindReleaseOfAnotherProgramIsNoticed) {
    const auto other = start("blindRelease");
    if (!other) {
        GTEST_SKIP() << why_not;
    }
    ASSERT_EQ(other->ask("acquire 200"), "granted");
    process run{dibs_at({"run", key, "--ttl", "3s", "--wait", "20s", "--", "sleep", "60"})};
    ASSERT_TRUE(eventually([&] { return value().starts_with("dibs1 "); })) << run.err();
    EXPECT_EQ(other->ask("release"), "released") << "what it took away was ours";
    const auto ended = run.wait();
    EXPECT_EQ(ended.status, 79) << ended.err;
    EXPECT_NE(ended.err.find("no longer knows the lease"), std::string::npos) << ended.err;
}

TEST_F(Peers, ABlindWatchdogOfAnotherProgramCannotKeepALeaseAlive) {
    const auto other = start("blindWatchdog");
    if (!other) {
        GTEST_SKIP() << why_not;
    }
    ASSERT_EQ(other->ask("acquire 200"), "granted");
    const auto taken = dibs({"acquire", key, "--ttl", "3s", "--wait", "20s"});
    ASSERT_EQ(taken.status, 0) << taken.err;
    // It takes our key for its own. The lease was promised for 3 s, and its holder goes by that; the
    // key stays for as long as the watchdog says.
    EXPECT_EQ(other->ask("renew 6000"), "renewed");
    EXPECT_GT(left_ms(), 4'000);
    EXPECT_EQ(other->ask("release"), "not_held") << "at least that compares";
    const auto next = dibs({"run", key, "--wait", "20s", "--", "true"});
    EXPECT_EQ(next.status, 0) << "nobody is locked out for good: " << next.err;
}

TEST_F(Peers, ABlindWatchdogThatShortensALeaseIsNoticed) {
    const auto other = start("blindWatchdog");
    if (!other) {
        GTEST_SKIP() << why_not;
    }
    ASSERT_EQ(other->ask("acquire 200"), "granted");
    process run{dibs_at({"run", key, "--ttl", "9s", "--wait", "20s", "--", "sleep", "60"})};
    ASSERT_TRUE(eventually([&] { return value().starts_with("dibs1 "); })) << run.err();
    ASSERT_EQ(other->ask("renew 100"), "renewed");
    const auto ended = run.wait();
    EXPECT_EQ(ended.status, 79) << ended.err;
    EXPECT_NE(ended.err.find("no longer knows the lease"), std::string::npos) << ended.err;
}

TEST_F(Peers, ALockWithoutATtlIsWaitedForAndShownAsSuch) {
    ASSERT_EQ(server.ask({"SETNX", key, "1"}), "1");
    EXPECT_EQ(dibs({"acquire", key}).status, 75);
    const auto shown = dibs({"show", key});
    EXPECT_NE(shown.out.find("for ever: it has no ttl"), std::string::npos) << shown.out;
    process waiter{dibs_at({"run", key, "--wait", "10m", "--", "true"})};
    ASSERT_TRUE(eventually([&] { return has_waiter(); })) << waiter.err();
    ASSERT_EQ(server.ask({"DEL", key}), "1");
    EXPECT_EQ(waiter.wait().status, 0);
}

}  // namespace dibs::testing
