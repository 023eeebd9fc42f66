// SPDX-License-Identifier: Apache-2.0
// A boxed value behaves as an optional one does, and a copy is a value of its own.

#include "core/boxed.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace dibs::core {

namespace {

TEST(Boxed, IsOfOneWord) {
    EXPECT_EQ(sizeof(boxed<std::string>), sizeof(void*));
}

TEST(Boxed, ACopyIsAValueOfItsOwn) {
    boxed<std::string> one{std::string{"one"}};
    auto other = one;
    *other += " and more";
    EXPECT_EQ(*one, "one");
    EXPECT_EQ(*other, "one and more");
    one = other;
    other.reset();
    ASSERT_TRUE(one);
    EXPECT_EQ(one->size(), 12U);
    const auto& itself = one;
    one = itself;
    EXPECT_EQ(*one, "one and more");
}

TEST(Boxed, NothingIsCopiedAsNothing) {
    boxed<std::string> none;
    EXPECT_FALSE(none.has_value());
    boxed<std::string> one{std::string{"one"}};
    one = none;
    EXPECT_FALSE(one);
    one = std::string{"again"};
    EXPECT_EQ(*one, "again");
    one = std::nullopt;
    EXPECT_FALSE(one);
}

TEST(Boxed, WhatWasMovedAwayIsEmpty) {
    boxed<std::string> one{std::string{"one"}};
    const auto taken = std::move(one);
    EXPECT_EQ(*taken, "one");
    EXPECT_FALSE(one);  // NOLINT(bugprone-use-after-move): it is promised
}

}  // namespace

}  // namespace dibs::core
