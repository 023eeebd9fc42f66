// SPDX-License-Identifier: Apache-2.0
// Wrong command lines, files and stores, told by exit status and one line.
#include "support.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

void expect_refused(const outcome& found, int status, const std::string& part) {
    EXPECT_EQ(found.status, status) << found.err;
    EXPECT_NE(found.err.find(part), std::string::npos) << part << " in " << found.err;
    EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
    EXPECT_EQ(found.out, "");
}

TEST(RunSettings, AWrongCommandLineIs64AndNamesTheOption) {
    const folder here;
    const struct {
        std::vector<std::string> words;
        std::string part;
    } cases[] = {{{"run", "--ttl", "30", "k", "true"}, "--ttl"},
                 {{"run", "--ttl", "0s", "k", "true"}, "--ttl"},
                 {{"run", "--ttl", "-5s", "k", "true"}, "--ttl"},
                 {{"run", "--ttl", "1ms", "k", "true"}, "--ttl"},
                 {{"run", "--ttl", "3650d", "k", "true"}, "--ttl"},
                 {{"run", "--wait", "-1", "k", "true"}, "--wait"},
                 {{"run", "--grace", "20s", "k", "true"}, "--grace"},
                 {{"run", "--held-code", "256", "k", "true"}, "--held-code"},
                 {{"run", "--store", "", "k", "true"}, "--store"},
                 {{"run", "--status-file", "/no/such/folder/f", "k", "true"}, "--status-file"},
                 {{"run", "--bogus", "k", "true"}, "--bogus"},
                 {{"run", "", "true"}, "KEY"},
                 {{"run", " ", "true"}, "KEY"},
                 {{"run", "a\nb", "true"}, "KEY"},
                 {{"run"}, "KEY"},
                 {{"run", "k"}, "COMMAND"},
                 {{"runn", "k", "true"}, "runn"}};
    for (const auto& one : cases) {
        expect_refused(run_dibs(here, one.words), 64, one.part);
    }
    EXPECT_FALSE(exists(here.file("locks.db")));
}

TEST(RunSettings, TheStatusFileTellsOfARefusalToo) {
    const folder here;
    EXPECT_EQ(run_dibs(here, {"run", "--status-file", "s.json", "--ttl", "30", "k", "true"}).status,
              64);
    const auto report = read_file(here.file("s.json"));
    EXPECT_NE(report.find("\"outcome\": \"invalid\""), std::string::npos) << report;
    EXPECT_NE(report.find("--ttl"), std::string::npos) << report;
}

TEST(RunSettings, AKeyMayBeginWithADash) {
    const folder here;
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"run", "--key=--help", "sh", "-c", "printf %s \"$DIBS_KEY\""},
             {"run", "--", "--help", "sh", "-c", "printf %s \"$DIBS_KEY\""}}) {
        const auto found = run_dibs(here, words);
        EXPECT_EQ(found.status, 0) << found.err;
        EXPECT_EQ(found.out, "--help");
    }
}

TEST(RunSettings, ABrokenFileIs78WithFileAndLine) {
    const folder here;
    write_file(here.file("dibs.toml"), "ttl = \"30s\"\nstor = \"sqlite:x\"\n");
    expect_refused(
        run_dibs(here, {"run", "k", "touch", "ran"}), 78, "dibs.toml:2: unknown key: stor");
    write_file(here.file("dibs.toml"), "ttl = 30s\n");
    expect_refused(run_dibs(here, {"run", "k", "touch", "ran"}), 78, "dibs.toml:1: ");
    write_file(here.file("dibs.toml"), "store = sqlite:x\n");
    const auto bare = run_dibs(here, {"run", "k", "touch", "ran"});
    expect_refused(bare, 78, "dibs.toml:1: ");
    EXPECT_NE(bare.err.find("a text is written in quotes"), std::string::npos) << bare.err;
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST(RunSettings, AFileThatIsNoneIs78AndNeverAWait) {
    const folder here;
    const auto path = here.file("dibs.toml");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    expect_refused(run_dibs(here, {"run", "k", "touch", "ran"}), 78, "dibs.toml: is not a file");
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    expect_refused(run_dibs(here, {"run", "k", "touch", "ran"}), 78, "dibs.toml: is not a file");
    std::filesystem::remove(path);
    std::filesystem::create_symlink("nowhere", path);
    expect_refused(run_dibs(here, {"run", "k", "touch", "ran"}), 78, "leads nowhere");
    std::filesystem::remove(path);
    std::filesystem::create_symlink("/dev/null", path);
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(RunSettings, AFileThatOthersMayWriteIs78) {
    const folder here;
    const auto path = here.file("dibs.toml");
    write_file(path, "ttl = \"30s\"\n");
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    expect_refused(
        run_dibs(here, {"run", "k", "touch", "ran"}), 78, "dibs.toml: can be written by everybody");
    ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
    if (::chown(path.c_str(), 65'533, static_cast<gid_t>(-1)) != 0) {
        GTEST_SKIP() << "only root gives files to others";
    }
    expect_refused(
        run_dibs(here, {"run", "k", "touch", "ran"}), 78, "dibs.toml: belongs to user 65533");
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST(RunSettings, TheFileChoosesTheStoreUnlessTheEnvironmentDoes) {
    const folder here;
    write_file(here.file("dibs.toml"), "store = \"sqlite:" + here.file("from-file.db") + "\"\n");
    auto how = dibs_on(here, {"run", "k", "true"});
    how.variables.erase("DIBS_STORE");
    EXPECT_EQ(process(how).wait().status, 0);
    EXPECT_TRUE(exists(here.file("from-file.db")));
    how.variables["DIBS_STORE"] = "sqlite:" + here.file("from-environment.db");
    EXPECT_EQ(process(how).wait().status, 0);
    EXPECT_TRUE(exists(here.file("from-environment.db")));
    how.words = {"run", "--store", "sqlite:" + here.file("from-flag.db"), "k", "true"};
    EXPECT_EQ(process(how).wait().status, 0);
    EXPECT_TRUE(exists(here.file("from-flag.db")));
    how.words = {"--store", "sqlite:" + here.file("from-front.db"), "run", "k", "true"};
    EXPECT_EQ(process(how).wait().status, 0);
    EXPECT_TRUE(exists(here.file("from-front.db")));
}

TEST(RunSettings, AStoreThatIsNoneIs78) {
    const folder here;
    write_file(here.file("text"), std::string(5'000, 'x'));
    const struct {
        std::string url;
        std::string part;
    } cases[] = {{"nonsense", "nonsense"},
                 {"gopher://h", "gopher"},
                 {"sqlite:" + here.file("x.db") + "?bogus=1", "bogus"},
                 {"sqlite:" + here.file("text"), here.file("text")}};
    for (const auto& one : cases) {
        const auto found = run_dibs(
            here, {"run", "--store", one.url, "--status-file", "s.json", "k", "touch", "ran"});
        expect_refused(found, 78, one.part);
        EXPECT_NE(read_file(here.file("s.json")).find("\"outcome\": \"invalid\""),
                  std::string::npos);
    }
    EXPECT_EQ(read_file(here.file("text")), std::string(5'000, 'x'));
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST(RunSettings, AnEmptyVariableIs78) {
    const folder here;
    auto how = dibs_on(here, {"run", "k", "true"});
    how.variables["DIBS_STORE"] = "";
    expect_refused(process(how).wait(), 78, "DIBS_STORE");
}

/// As an ordinary user, whatever the test runs as.
class RunAsUser : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) {
            return;
        }
        user_ = 65'534;
        ::chmod(here_.path().c_str(), 0755);
        launch probe;
        probe.words = {"version"};
        probe.user = user_;
        if (process(probe).wait().status != 0) {
            GTEST_SKIP() << "another user cannot execute the built command here";
        }
    }
    [[nodiscard]] launch as_user(const std::vector<std::string>& words) const {
        launch how;
        how.words = words;
        how.user = user_;
        how.cwd = "/";
        how.variables["XDG_STATE_HOME"] = here_.file("state");
        how.variables["HOME"] = here_.path();
        return how;
    }
    folder here_;
    uid_t user_ = 0;
};

TEST_F(RunAsUser, TheDefaultStoreIsMadeAndToldOnce) {
    ASSERT_EQ(::mkdir(here_.file("state").c_str(), 0777), 0);
    ::chmod(here_.file("state").c_str(), 0777);
    const auto first = process(as_user({"run", "k", "true"})).wait();
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_NE(first.err.find("this host and for this user only"), std::string::npos) << first.err;
    EXPECT_TRUE(exists(here_.file("state/dibs/locks.db")));
    const auto second = process(as_user({"run", "k", "true"})).wait();
    EXPECT_EQ(second.status, 0);
    EXPECT_EQ(second.err, "");
}

TEST_F(RunAsUser, AStoreWithoutPermissionIs78) {
    const auto url = "sqlite:" + here_.file("locked/locks.db");
    ASSERT_EQ(::mkdir(here_.file("locked").c_str(), 0700), 0);
    if (user_ == 0) {
        ::chmod(here_.file("locked").c_str(), 0);
    }
    const auto found = process(as_user({"run", "--store", url, "k", "true"})).wait();
    ::chmod(here_.file("locked").c_str(), 0700);
    expect_refused(found, 78, "locked");
}

TEST(RunSettings, NoMessageShowsASecretOfTheStore) {
    const folder here;
    for (const char* url : {"postgres://127.0.0.1:1/db?password=hunter2",  // where nobody listens
                            "redis://u:hun/ter2@h/0?x=hunter2",
                            "redis:u:hunter2@h",
                            "host=x password=hunter2",
                            "sqlite:x.db?key=hunter2"}) {
        for (const char* command : {"run", "once"}) {
            std::vector<std::string> words{command, "--store", url, "--status-file", "s.json", "k"};
            if (std::string(command) == "once") {
                words.insert(words.end(), {"--slot", "s"});
            }
            words.push_back("true");
            const auto ended = run_dibs(here, words);
            EXPECT_TRUE(ended.status == 78 || ended.status == 69) << url;
            const auto told = ended.err + ended.out + read_file(here.file("s.json"));
            EXPECT_EQ(told.find("ter2"), std::string::npos) << told;
        }
    }
}

}  // namespace
}  // namespace dibs::testing
