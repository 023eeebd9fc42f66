// SPDX-License-Identifier: Apache-2.0
// Goal: commands that wait with --queue get the key in the order in which they came, and others see
// who stands in it. Method: commands behind a holder, who goes when all of them are in the queue.
#include "support.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using nlohmann::json;
using words = std::vector<std::string>;

json shown(const folder& here) {
    return json::parse(run_dibs(here, {"show", "k", "--json"}).out);
}

bool queued(const folder& here, int count) {
    return eventually([&] { return shown(here)["queued"] == count; });
}

class Queue : public ::testing::Test {
  protected:
    void hold() {
        holder_ = std::make_unique<process>(
            dibs_on(here, {"run", "k", "sh", "-c", "echo ready; exec sleep 300"}));
        ASSERT_TRUE(eventually([&] { return holder_->out() == "ready\n"; })) << holder_->err();
    }
    void let_go() {
        holder_->signal(SIGTERM);
        (void)holder_->wait();
    }
    words waiting(const std::string& command) const {
        return {"run", "--wait", "5m", "--queue", "k", "sh", "-c", command};
    }

    const folder here;
    std::unique_ptr<process> holder_;
};

TEST_F(Queue, CommandsRunInTheOrderInWhichTheyCame) {
    hold();
    std::vector<std::unique_ptr<process>> all;
    std::string expected;
    for (int number = 1; number <= 6; ++number) {
        const auto name = std::to_string(number);
        all.push_back(
            std::make_unique<process>(dibs_on(here, waiting("echo " + name + " >> order"))));
        ASSERT_TRUE(queued(here, number)) << all.back()->err();
        expected += name + "\n";
    }
    let_go();
    for (const auto& one : all) {
        EXPECT_EQ(one->wait().status, 0);
    }
    EXPECT_EQ(read_file(here.file("order")), expected);
    EXPECT_EQ(shown(here)["queued"], 0);
}

TEST_F(Queue, IsShownInOrder) {
    hold();
    process first(dibs_on(here, waiting("exit 0")));
    ASSERT_TRUE(queued(here, 1));
    process second(dibs_on(here, {"acquire", "k", "--wait", "forever", "--queue"}));
    ASSERT_TRUE(queued(here, 2));
    const auto record = shown(here);
    ASSERT_EQ(record["queue"].size(), 2U);
    EXPECT_EQ(record["queue"][0]["pid"], first.id());
    EXPECT_EQ(record["queue"][0]["command"], "sh -c 'exit 0'");
    EXPECT_GE(record["queue"][0]["waiting_for_ms"], 0);
    EXPECT_EQ(record["queue"][1]["pid"], second.id());
    const auto text = run_dibs(here, {"show", "k"}).out;
    const auto one = text.find("  1.        ");
    const auto two = text.find("  2.        ");
    EXPECT_NE(text.find("queue       2, in this order:"), std::string::npos) << text;
    EXPECT_NE(text.find("pid " + std::to_string(first.id()), one), std::string::npos) << text;
    EXPECT_NE(text.find("pid " + std::to_string(second.id()), two), std::string::npos) << text;
    EXPECT_LT(one, two);
    EXPECT_NE(run_dibs(here, {"ls"}).out.find("  2 queued  "), std::string::npos);
    let_go();
    EXPECT_EQ(first.wait().status, 0);
    EXPECT_EQ(second.wait().status, 0);
}

TEST_F(Queue, ASignalTakesTheTicketBackAtOnce) {
    hold();
    process waits(dibs_on(here, waiting("touch ran")));
    ASSERT_TRUE(queued(here, 1));
    waits.signal(SIGTERM);
    EXPECT_EQ(waits.wait().status, 128 + SIGTERM);
    EXPECT_EQ(shown(here)["queued"], 0) << "at once, not when its time is over";
    EXPECT_FALSE(exists(here.file("ran")));
    let_go();
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST_F(Queue, NobodyOvertakesAHeadThatIsAliveAndADeadOneIsPassedOver) {
    hold();
    process head(dibs_on(here, waiting("touch ran")));
    ASSERT_TRUE(queued(here, 1));
    head.signal(SIGSTOP);
    ASSERT_TRUE(eventually([&] { return state_of(head.id()) == 'T'; }));
    process next(dibs_on(here, waiting("echo $DIBS_FENCE")));
    ASSERT_TRUE(queued(here, 2));
    let_go();
    const auto refused = run_dibs(here, {"run", "-v", "k", "touch", "overtook"});
    // Its ticket's time may be over on a machine that is slow enough: then the next one's turn has
    // come, and perhaps gone.
    if (refused.status == 75 && !next.ended()) {
        EXPECT_NE(refused.err.find("goes to those in its queue first"), std::string::npos)
            << refused.err;
        EXPECT_FALSE(exists(here.file("overtook")));
    }
    head.signal(SIGKILL);
    const auto found = next.wait();
    EXPECT_EQ(found.status, 0) << found.err;
    EXPECT_FALSE(found.out.empty());
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST_F(Queue, NeedsAWait) {
    for (const auto& given : {words{"run", "--queue", "k", "true"},
                              words{"run", "--queue", "--wait", "0s", "k", "true"},
                              words{"acquire", "--queue", "k"}}) {
        const auto refused = run_dibs(here, given);
        EXPECT_EQ(refused.status, 64) << given.front();
        EXPECT_NE(refused.err.find("--queue needs --wait"), std::string::npos) << refused.err;
    }
    EXPECT_EQ(run_dibs(here, {"elect", "--queue", "k", "true"}).status, 0) << "waits anyhow";
}

}  // namespace
}  // namespace dibs::testing
