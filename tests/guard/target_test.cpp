// SPDX-License-Identifier: Apache-2.0
// Goal: what docs/targets tells to do refuses a late writer. Method: the samples are taken out of the
// pages and run on the real thing.
#include "support/places.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#ifdef DIBS_TEST_REDIS
#include "support/redis_server.hpp"
#endif

namespace dibs::testing {
namespace {

/// The sample that begins with ```WHAT.
std::string sample(const std::string& page, const std::string& what) {
    std::ifstream opened{std::string{tests::places::source_folder} + "/docs/targets/" + page};
    std::string text;
    bool inside = false;
    for (std::string line; std::getline(opened, line);) {
        if (!inside && line == "```" + what) {
            inside = true;
        } else if (inside && line == "```") {
            return text;
        } else if (inside) {
            text += line + "\n";
        }
    }
    ADD_FAILURE() << page << " has no sample " << what;
    return {};
}

class SqliteTarget : public ::testing::Test {
  protected:
    SqliteTarget() {
        sqlite3* opened = nullptr;
        sqlite3_open(":memory:", &opened);
        data_.reset(opened);
        EXPECT_EQ(run("CREATE TABLE product(id INTEGER PRIMARY KEY, price INTEGER);"
                      "INSERT INTO product VALUES(1, 100);" +
                      sample("sqlite.md", "sql trigger")),
                  "");
    }
    std::string run(const std::string& sql) {
        char* fault = nullptr;
        sqlite3_exec(data_.get(), sql.c_str(), nullptr, nullptr, &fault);
        const std::unique_ptr<char, decltype(&sqlite3_free)> owned{fault, &sqlite3_free};
        return fault == nullptr ? "" : fault;
    }
    std::string write(int fence, int price) {
        auto sql = sample("sqlite.md", "sql write");
        const auto put = [&](const std::string& name, int value) {
            sql.replace(sql.find(name), name.size(), std::to_string(value));
        };
        put(":fence", fence);
        put(":price", price);
        put(":id", 1);
        const auto told = run(sql);
        if (!told.empty()) {
            run("ROLLBACK");
        }
        return told;
    }
    std::string row() {
        std::string found;
        sqlite3_exec(
            data_.get(),
            "SELECT price || ' ' || fence FROM product",
            [](void* into, int, char** values, char**) {
                *static_cast<std::string*>(into) = values[0];
                return 0;
            },
            &found,
            nullptr);
        return found;
    }

    std::unique_ptr<sqlite3, decltype(&sqlite3_close)> data_{nullptr, &sqlite3_close};
};

TEST_F(SqliteTarget, TheTriggersRefuseALateWriter) {
    EXPECT_EQ(write(5, 120), "");
    EXPECT_EQ(row(), "120 5");
    EXPECT_EQ(write(5, 130), "");
    EXPECT_EQ(write(4, 90), "stale fence");
    EXPECT_EQ(run("UPDATE product SET price = 1"), "no fence was given");
    EXPECT_EQ(run("DELETE FROM product"), "no fence was given");
    // Not even by setting the column itself.
    run("INSERT INTO writing VALUES(4)");
    EXPECT_EQ(run("UPDATE product SET price = 1, fence = 4"), "stale fence");
    EXPECT_EQ(run("UPDATE product SET price = 1, fence = 9"), "stale fence");
    run("DELETE FROM writing");
    EXPECT_EQ(write(7, 140), "");
    EXPECT_EQ(row(), "140 7");
    // REPLACE, and a fence that was not set.
    const std::string replace = "REPLACE INTO product(id, price) VALUES(1, 2)";
    EXPECT_EQ(run(replace), "no fence was given");
    EXPECT_NE(run("INSERT INTO writing VALUES(NULL)"), "");
    run("INSERT INTO writing VALUES(6)");
    EXPECT_EQ(run(replace), "stale fence");
    EXPECT_EQ(row(), "140 7");
    run("DELETE FROM writing");
    run("INSERT INTO writing VALUES(7)");
    EXPECT_EQ(run("REPLACE INTO product(id, price) VALUES(1, 140)"), "");
    EXPECT_EQ(row(), "140 7");
    run("DELETE FROM writing");
    run("INSERT INTO writing VALUES(6)");
    EXPECT_EQ(run("DELETE FROM product"), "stale fence");
    run("DELETE FROM writing");
    EXPECT_EQ(row(), "140 7");
}

#ifdef DIBS_TEST_REDIS
TEST(RedisTarget, TheScriptRefusesALateWriter) {
    const redis_server server;
    const auto script = sample("redis.md", "lua");
    const auto write = [&](const std::string& fence, const std::string& value) {
        return server.ask({"EVAL", script, "1", "product:1", fence, value});
    };
    EXPECT_EQ(write("1764460800000005", "five"), "1");
    EXPECT_EQ(write("1764460800000005", "five again"), "1");
    EXPECT_EQ(write("1764460800000004", "four"), "0");
    EXPECT_EQ(write("999999999999999", "long ago"), "0");
    EXPECT_EQ(server.ask({"HGET", "product:1", "value"}), "five again");
    EXPECT_EQ(write("9223372036854775806", "far"), "1");
    EXPECT_EQ(write("9223372036854775805", "nearly"), "0");
}
#endif

}  // namespace
}  // namespace dibs::testing
