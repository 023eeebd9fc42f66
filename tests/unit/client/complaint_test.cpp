// SPDX-License-Identifier: Apache-2.0
// A message names the store once, whatever the store says of itself.
#include "client/complaint.hpp"

#include <gtest/gtest.h>

namespace dibs::detail {
namespace {

TEST(Complaint, NamesTheStoreOnce) {
    EXPECT_EQ(complaint("k", "sqlite:/d/a.db", "/d/a.db: another process kept the file locked"),
              "key k (store sqlite:/d/a.db): another process kept the file locked");
    EXPECT_EQ(
        complaint(
            "k", "postgres://h:1/d?schema=s", "postgres://h:1/d?schema=s: read-only: a standby"),
        "key k (store postgres://h:1/d?schema=s): read-only: a standby");
}

TEST(Complaint, LeavesWhatIsOfSomethingElse) {
    for (const auto* what :
         {"/d/a.db.holders: not a folder", "the server refused: a.db", "b: c", ": x", "plain"}) {
        EXPECT_EQ(complaint("k", "sqlite:/d/a.db", what),
                  std::string("key k (store sqlite:/d/a.db): ") + what);
    }
}

}  // namespace
}  // namespace dibs::detail
