// SPDX-License-Identifier: Apache-2.0
// The table of places finds what a map would find, and keeps alive what is in it and nothing else.

#include "recipes/place_table.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <memory>
#include <string>

namespace dibs::recipes {

namespace {

struct spot {
    std::string key;
    place_entry<spot> entry;
};

using table = place_table<spot>;

std::shared_ptr<spot> spot_of(std::string key) {
    auto made = std::make_shared<spot>();
    made->key = std::move(key);
    return made;
}

TEST(PlaceTable, WhatWasRemovedIsGoneAndCanBeRemovedTwice) {
    table places;
    const auto one = spot_of("a");
    places.add(one, table::hash_of("a"));
    EXPECT_EQ(places.find("a"), one);
    EXPECT_EQ(places.find("b"), nullptr);
    places.remove(*one);
    EXPECT_EQ(places.find("a"), nullptr);
    EXPECT_EQ(one.use_count(), 1);
    const auto next = spot_of("a");
    places.add(next, table::hash_of("a"));
    places.remove(*one);
    EXPECT_EQ(places.find("a"), next) << "another one of that name stays";
    EXPECT_EQ(places.size(), 1U);
}

TEST(PlaceTable, NamesOfOneHashAreToldApart) {
    table places;
    const auto one = spot_of("a");
    const auto other = spot_of("b");
    places.add(one, 7);
    places.add(other, 7);
    EXPECT_EQ(places.find("a", 7), one);
    EXPECT_EQ(places.find("b", 7), other);
    places.remove(*one);
    EXPECT_EQ(places.find("a", 7), nullptr);
    EXPECT_EQ(places.find("b", 7), other);
}

TEST(PlaceTable, ALongRowOfOneHashGoesWithTheTable) {
    constexpr int many = 200'000;
    std::weak_ptr<spot> last;
    {
        table places;
        for (int at = 0; at < many; ++at) {
            const auto made = spot_of(std::to_string(at));
            last = made;
            places.add(made, 7);
        }
        EXPECT_EQ(places.size(), std::size_t{many});
    }
    EXPECT_TRUE(last.expired());
}

RC_GTEST_PROP(PlaceTable, FindsWhatAMapFinds, ()) {
    table places;
    std::map<std::string, std::shared_ptr<spot>> known;
    const auto steps = *rc::gen::inRange(0, 300);
    for (int step = 0; step < steps; ++step) {
        const auto key = std::to_string(*rc::gen::inRange(0, 60));
        const auto hash = table::hash_of(key);
        const auto at = known.find(key);
        RC_ASSERT(places.find(key) == (at == known.end() ? nullptr : at->second));
        if (at == known.end()) {
            const auto made = known[key] = spot_of(key);
            places.add(made, hash);
        } else if (*rc::gen::arbitrary<bool>()) {
            places.remove(*at->second);
            known.erase(at);
        }
        RC_ASSERT(places.size() == known.size());
    }
    for (const auto& [key, one] : known) {
        RC_ASSERT(places.find(key) == one);
        RC_ASSERT(one.use_count() == 2);
    }
}

}  // namespace

}  // namespace dibs::recipes
