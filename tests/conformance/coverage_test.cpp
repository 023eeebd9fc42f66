// SPDX-License-Identifier: Apache-2.0
// No store escapes the suite: every store in src/store has an instantiation under the name of its
// folder, and each folder in there, a store of its own that shares most, one under both names.

#include "suite.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace dibs::conformance {

namespace {

/// Stores in a folder laid out as src/store: a private folder each. `record` and `remote` hold what
/// they share.
std::set<std::string> stores_in(const std::filesystem::path& folder) {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator{folder}) {
        const auto name = entry.path().filename().string();
        if (entry.is_directory() && name != "record" && name != "remote") {
            found.insert(name);
            for (const auto& within : std::filesystem::directory_iterator{entry.path()}) {
                if (within.is_directory()) {
                    found.insert(name + "_" + within.path().filename().string());
                }
            }
        }
    }
    return found;
}

std::set<std::string> instantiated() {
    std::set<std::string> found;
    const auto& all = *::testing::UnitTest::GetInstance();
    constexpr std::string_view suite = "/Conformance";
    for (int at = 0; at < all.total_test_suite_count(); ++at) {
        const std::string name = all.GetTestSuite(at)->name();
        if (name.ends_with(suite)) {
            found.insert(name.substr(0, name.size() - suite.size()));
        }
    }
    return found;
}

std::set<std::string> left_out(const std::set<std::string>& stores) {
    const auto covered = instantiated();
    std::set<std::string> missing;
    for (const auto& store : stores) {
        if (!covered.contains(store)) {
            missing.insert(store);
        }
    }
    return missing;
}

}  // namespace

TEST(Coverage, EveryStoreIsInTheSuite) {
    auto stores = stores_in(std::filesystem::path{tests::places::source_folder} / "src/store");
    ASSERT_TRUE(stores.contains("memory")) << "looked in " << tests::places::source_folder;
    ASSERT_TRUE(stores.contains("postgres_advisory"));
    for (const auto& switched_off : {DIBS_STORES_SWITCHED_OFF}) {
        stores.erase(switched_off);
    }
    EXPECT_EQ(left_out(stores), std::set<std::string>{});
}

TEST(Coverage, AStoreWithoutAnInstantiationIsFound) {
    EXPECT_EQ(left_out({"memory", "no such store"}), std::set<std::string>{"no such store"});
}

}  // namespace dibs::conformance
