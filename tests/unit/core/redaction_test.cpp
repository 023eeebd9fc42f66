// SPDX-License-Identifier: Apache-2.0
// Goal: nothing that is a secret by its form or its name is shown to others. Method: command lines
// as people write them, in a table, each as words and as one text.
#include "core/redaction.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace dibs::core {
namespace {

using words = std::vector<std::string>;

struct sample {
    words given;
    words shown;
};

TEST(Redaction, BlanksWhatIsASecretByFormOrByName) {
    const std::vector<sample> table{
        // Options and variables.
        {{"app", "--password", "hunter2", "-v"}, {"app", "--password", "***", "-v"}},
        {{"app", "--password=hunter2"}, {"app", "--password=***"}},
        {{"app", "--password", "", "hunter2"}, {"app", "--password", "", "***"}},
        {{"app", "--pass", "hunter2"}, {"app", "--pass", "***"}},
        {{"PGPASSWORD=hunter2", "psql", "-h", "db"}, {"PGPASSWORD=***", "psql", "-h", "db"}},
        {{"env", "ACCESS_TOKEN=abc=def", "x"}, {"env", "ACCESS_TOKEN=***", "x"}},
        {{"docker", "run", "--env=DB_PASSWORD=x"}, {"docker", "run", "--env=DB_PASSWORD=***"}},
        {{"java", "-Dspring.datasource.password=x"}, {"java", "-Dspring.datasource.password=***"}},
        {{"app", "--passphrase", "x", "--private-key", "y"},
         {"app", "--passphrase", "***", "--private-key", "***"}},
        {{"odbc", "Server=h;Pwd=x;Database=d"}, {"odbc", "Server=h;Pwd=***"}},
        // Short options of programs that are known.
        {{"mysql", "-phunter2", "-P", "3306", "shop"}, {"mysql", "-p***", "-P", "3306", "shop"}},
        {{"dibs", "run", "k", "/usr/bin/mysqldump", "-uapp", "-phunter2"},
         {"dibs", "run", "k", "/usr/bin/mysqldump", "-uapp", "-p***"}},
        {{"mariadb-dump", "-phunter2"}, {"mariadb-dump", "-p***"}},
        {{"redis-cli", "-a", "hunter2", "ping"}, {"redis-cli", "-a", "***", "ping"}},
        {{"sshpass", "-p", "hunter2", "ssh", "-p", "22", "host"},
         {"sshpass", "-p", "***", "ssh", "-p", "***", "host"}},
        {{"curl", "-u", "ada:hunter2", "https://h"}, {"curl", "-u", "ada:***", "https://h"}},
        {{"curl", "-uada:hunter2"}, {"curl", "-uada:***"}},
        {{"curl", "--user", "ada:hun:ter2"}, {"curl", "--user", "ada:***"}},
        // Headers and bodies.
        {{"curl", "-H", "Authorization: Bearer hunter2"}, {"curl", "-H", "Authorization: ***"}},
        {{"curl", "-HAuthorization: Bearer hunter2"}, {"curl", "-HAuthorization: ***"}},
        {{"curl", "--header=Private-Token: hunter2"}, {"curl", "--header=Private-Token: ***"}},
        {{"curl", "-H", "Authorization:", "Bearer", "hunter2", "x"},
         {"curl", "-H", "Authorization:", "Bearer", "***", "x"}},
        {{"curl", "-H", "X-Api-Key:hunter2"}, {"curl", "-H", "X-Api-Key:***"}},
        {{"curl", "-H", "Cookie: id=1; s=hunter2"}, {"curl", "-H", "Cookie: ***"}},
        {{"curl", "-d", "{\"user\":\"a\",\"password\":\"x\"}"},
         {"curl", "-d", "{\"user\":\"a\",\"password\":***"}},
        {{"curl", "-d", "{\"password\": \"x y\"}"}, {"curl", "-d", "{\"password\": ***"}},
        // URLs.
        {{"app", "redis://u:hunter2@host:6379/0"}, {"app", "redis://u:***@host:6379/0"}},
        {{"app", "redis://:hunter2@host"}, {"app", "redis://:***@host"}},
        {{"app", "redis://u:hun/ter2@host/0"}, {"app", "redis://u:***@host/0"}},
        {{"app", "redis://u:hun@ter/2@host/0"}, {"app", "redis://u:***@host/0"}},
        {{"app", "redis://u:hun?t#er2@host/0"}, {"app", "redis://u:***@host/0"}},
        {{"app", "redis://u:pass word@host"}, {"app", "redis://u:***@host"}},
        {{"app", "--url=postgres://u:p@ss@host/db"}, {"app", "--url=postgres://u:***@host/db"}},
        {{"git", "clone", "https://ghp_0123456789abcdefghij@git.host/a"},
         {"git", "clone", "https://***@git.host/a"}},
        {{"curl", "https://h/x?access_token=abc&page=2#sig=q"},
         {"curl", "https://h/x?access_token=***&page=2#sig=***"}},
        {{"curl", "https://h/x?page=2&sig=abc"}, {"curl", "https://h/x?page=2&sig=***"}},
        {{"wget", "h/x?apikey=abc"}, {"wget", "h/x?apikey=***"}},
        // Scripts.
        {{"sh", "-c", "PGPASSWORD='hun ter' psql -h db && mysql -phunter2 < x"},
         {"sh", "-c", "PGPASSWORD=*** psql -h db && mysql -p*** < x"}},
        {{"sh", "-c", "curl -H \"Authorization: Bearer x\" https://u:p@h | jq ."},
         {"sh", "-c", "curl -H \"Authorization: ***\" https://u:***@h | jq ."}},
        {{"sh", "-c", "echo don't; app --token abc isn't"},
         {"sh", "-c", "echo don't; app --token *** isn't"}},
    };
    for (const auto& one : table) {
        EXPECT_EQ(redacted_words(one.given), one.shown);
        EXPECT_EQ(redacted_words(one.shown), one.shown) << "a second time changes it";
    }
}

TEST(Redaction, LeavesEverythingElseAsItIs) {
    const std::vector<words> table{
        {"app"},
        {"app", "", "  "},
        {"app", "--key=value", "http://host:80/a@b"},
        {"app", "http://[::1]:80/a@b", "mailto:someone@host"},
        {"rsync", "a", "b", "--delete", "-p"},
        {"ssh", "-p", "22", "git@host", "ssh://git@host:22/a"},
        {"app", "--no-token", "--verbose"},
        {"app", "--password-file", "/run/secret", "--password-file=/run/x"},
        {"dibs", "run", "oauth-token:crm", "make", "token:rotate"},
        {"docker", "run", "-u", "1000:1000", "-p", "80:80", "image@sha256:abc"},
        {"sh", "-c", "for f in *; do echo \"$f\"; done"},
        {"awk", "'unbalanced", "\"quotes"},
    };
    for (const auto& one : table) {
        EXPECT_EQ(redacted_words(one), one);
    }
}

TEST(Redaction, OfATextKeepsItsBlanks) {
    EXPECT_EQ(redacted_text(""), "");
    EXPECT_EQ(redacted_text(" app  --token  abc 'x  y' "), " app  --token  *** 'x  y' ");
    EXPECT_EQ(redacted_text("curl -H 'Authorization: Bearer x' y"),
              "curl -H 'Authorization: ***' y");
    // As it was told before: blanked, and then cut.
    EXPECT_EQ(redacted_text("curl -H 'Authorization: ***' y…"), "curl -H 'Authorization: ***' y…");
}

// What is shown of a URL that was written wrongly, by those who did not encode their password.
TEST(Redaction, OfAStoresUrlBlanksWhatMayBeAPassword) {
    const std::vector<std::pair<std::string, std::string>> table{
        {"redis://u:hun/ter2@h/0", "redis://u:***@h/0"},
        {"redis://u:hun?ter2@h/0", "redis://u:***@h/0"},
        {"redis://u:12?ter2@h/0", "redis://u:***@h/0"},
        {"redis://u:hun?a=b@h/0?prefix=x", "redis://u:***@h/0?prefix=x"},
        {"postgres://u:hun?ter2@h:5432/db?sslmode=require",
         "postgres://u:***@h:5432/db?sslmode=require"},
        {"redis://u:hun#ter2@h/0", "redis://u:***@h/0"},
        {"redis://u:hun@ter2?x@h/0", "redis://u:***@ter2?***"},
        {"redis://hunter2@h/0", "redis://***@h/0"},
        {"u:hunter2@h", "u:***@h"},
        {"redis:hunter2@h", "redis:***@h"},
        {"redis://u:hunter2 h", "redis://u:***"},
        {"redis://u:hunter2", "redis://u:***"},
        {"postgres:host=h password=hunter2", "postgres:***"},
        {"postgres://h/db?hunter2", "postgres://h/db?***"},
    };
    for (const auto& [given, shown] : table) {
        EXPECT_EQ(redacted_url(given), shown);
    }
    for (const std::string plain : {"redis://h:6379/0",
                                    "redis://[::1]:6379/0",
                                    "redis://[::1]",
                                    "redis+unix:///run/a@b.sock?db=1",
                                    "redis+unix:///run/a:b.sock",
                                    "postgres://u@h1:5432,h2:5433/db",
                                    "postgres://h1:5432,[::1]:5433/db?target_session_attrs=any",
                                    "postgres:///db?schema=a",
                                    "postgres://h/db?prefix=a@b",
                                    "sqlite:/a@b:c.db?create=no",
                                    "memory:a"}) {
        EXPECT_EQ(redacted_url(plain), plain);
    }
}

}  // namespace
}  // namespace dibs::core
