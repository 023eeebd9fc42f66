// SPDX-License-Identifier: Apache-2.0
// The files in examples/jobs: that systemd and cron take them, that their command lines do what they are for, and that the
// guides show them as they are.
#include "shifted_clock.hpp"
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::testing {
namespace {

std::string source(const std::string& path) {
    return read_file(std::string(tests::places::source_folder) + "/" + path);
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
        text.replace(at, what.size(), by);
    }
    return text;
}

/// With the built command, a job that leaves a trace, and the store of `here`.
std::string for_here(const std::string& text, const folder& here) {
    auto made = replaced(text, "/usr/local/bin/dibs", tests::places::command);
    for (const auto* job : {"/usr/local/bin/report",
                            "/usr/local/bin/bill",
                            "/usr/local/bin/controller",
                            "/app/report"}) {
        made = replaced(made, job, here.file("job"));
    }
    return replaced(made, "redis://redis.internal:6379", here.store());
}

void write_job(const folder& here) {
    write_file(here.file("job"), "#!/bin/sh\necho ran >> ran\n");
    ASSERT_EQ(std::system(("chmod +x " + here.file("job")).c_str()), 0);
}

bool have(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

/// Commands of ours see 2026-11-30T10:01Z, so that no slot ends in between.
outcome shell(const folder& here, const std::string& line, const std::string& slot = {}) {
    launch how;
    how.program = "/bin/sh";
    how.words = {"-c", line};
    how.cwd = here.path();
    how.variables["DIBS_STORE"] = here.store();
    if (!slot.empty()) {
        how.variables["SLOT"] = slot;
    }
    if (line.find(tests::places::command) == std::string::npos) {
        return process(how).wait();
    }
    const shifted_clock clock(here, "clock");
    clock.shift(static_cast<int>(1'796'032'860 - ::time(nullptr)));
    return process(clock.seen_by(how)).wait();
}

/// The rest of each line that begins so.
std::vector<std::string> lines_after(const std::string& text, const std::string& beginning) {
    std::vector<std::string> found;
    for (std::size_t from = 0; from < text.size();) {
        const auto end = std::min(text.find('\n', from), text.size());
        const auto line = text.substr(from, end - from);
        if (line.starts_with(beginning)) {
            found.push_back(line.substr(beginning.size()));
        }
        from = end + 1;
    }
    return found;
}

const std::vector<std::string> units{"nightly-report.service",
                                     "nightly-report.timer",
                                     "controller.service"};

TEST(JobFiles, SystemdTakesTheUnits) {
    if (!have("systemd-analyze")) {
        GTEST_SKIP() << "systemd-analyze is not there (package systemd)";
    }
    const folder here;
    write_job(here);
    std::string all;
    for (const auto& unit : units) {
        write_file(here.file(unit), for_here(source("examples/jobs/" + unit), here));
        all += " " + here.file(unit);
    }
    const auto verified = shell(here, "systemd-analyze verify --man=no" + all);
    EXPECT_EQ(verified.status, 0) << verified.err;
    EXPECT_EQ(verified.out + verified.err, "");
    // It would tell.
    write_file(here.file("nightly-report.timer"),
               replaced(source("examples/jobs/nightly-report.timer"), "*:0/10", "*:0/99:"));
    const auto refused =
        shell(here, "systemd-analyze verify --man=no " + here.file("nightly-report.timer"));
    EXPECT_NE(refused.out + refused.err, "");
}

TEST(JobFiles, CronTakesTheCrontab) {
    if (!have("crontab")) {
        GTEST_SKIP() << "crontab is not there (package cron)";
    }
    const folder here;
    const auto path = std::string(tests::places::source_folder) + "/examples/jobs/crontab";
    const auto verified = shell(here, "crontab -n " + path);
    EXPECT_EQ(verified.status, 0) << verified.err;
    write_file(here.file("bad"), replaced(source("examples/jobs/crontab"), "*/10 *", "*/10 25"));
    EXPECT_NE(shell(here, "crontab -n " + here.file("bad")).status, 0) << "it would tell";
}

TEST(JobFiles, TheLinesOfTheCrontabRunTheirJobsOnce) {
    const folder here;
    write_job(here);
    auto lines = lines_after(source("examples/jobs/crontab"), "*/10 * * * *");
    const auto others = lines_after(source("examples/jobs/crontab"), "5 * * * *");
    lines.insert(lines.end(), others.begin(), others.end());
    ASSERT_EQ(lines.size(), 2U);
    for (const auto& line : lines) {
        ASSERT_EQ(line.find('%'), std::string::npos) << "cron makes a line end of it";
        for (int host = 0; host < 2; ++host) {
            const auto ended = shell(here, for_here(line, here));
            EXPECT_EQ(ended.status, 0) << ended.err;
            EXPECT_EQ(ended.out + ended.err, "") << "cron would send a mail";
        }
    }
    EXPECT_EQ(read_file(here.file("ran")), "ran\nran\n");
}

TEST(JobFiles, TheServicesRunTheirCommands) {
    const folder here;
    write_job(here);
    const auto report = lines_after(source("examples/jobs/nightly-report.service"), "ExecStart=");
    const auto lead = lines_after(source("examples/jobs/controller.service"), "ExecStart=");
    ASSERT_EQ(report.size() + lead.size(), 2U);
    EXPECT_EQ(shell(here, for_here(report[0], here)).status, 0);
    EXPECT_EQ(shell(here, for_here(report[0], here)).status, 0);
    EXPECT_EQ(read_file(here.file("ran")), "ran\n");
    EXPECT_EQ(shell(here, for_here(lead[0], here)).status, 1)
        << "Restart=on-failure starts it again";
    EXPECT_EQ(read_file(here.file("ran")), "ran\nran\n");
}

/// A JSON array is YAML, and with its commas and brackets gone it is words for a shell.
TEST(JobFiles, TheCommandOfTheCronJobRunsOncePerPlannedTime) {
    const folder here;
    write_job(here);
    auto commands = lines_after(source("examples/jobs/cronjob.yaml"), "              command: [");
    ASSERT_EQ(commands.size(), 1U);
    auto line = for_here(replaced(replaced(commands[0], "]", ""), "\",", "\" "), here);
    line = replaced(replaced(line, "$(SLOT)", "$SLOT"), "\"dibs\"", tests::places::command);
    for (int pod = 0; pod < 2; ++pod) {
        const auto ended = shell(here, line, "nightly-report-29939460");
        EXPECT_EQ(ended.status, 0) << ended.err;
    }
    EXPECT_EQ(read_file(here.file("ran")), "ran\n");
    EXPECT_EQ(shell(here, line, "nightly-report-29940900").status, 0);
    EXPECT_EQ(read_file(here.file("ran")), "ran\nran\n");
}

TEST(JobFiles, AreShownInTheGuidesAsTheyAre) {
    const auto guides =
        source("docs/guides/scheduled-jobs.md") + source("docs/guides/leader-election.md");
    for (const auto* file : {"nightly-report.service",
                             "nightly-report.timer",
                             "controller.service",
                             "crontab",
                             "cronjob.yaml"}) {
        auto text = source(std::string("examples/jobs/") + file);
        text.erase(0, text.find('\n') + 1);  // the licence
        EXPECT_NE(guides.find("\n" + text + "```"), std::string::npos) << file;
        EXPECT_NE(guides.find(std::string("examples/jobs/") + file), std::string::npos) << file;
    }
}

}  // namespace
}  // namespace dibs::testing
