// SPDX-License-Identifier: Apache-2.0
// A forked child knows that it is one, and so does its own.

#include "store/process_mark.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dibs::store {

namespace {

/// What a forked child answers.
template <typename Question>
bool in_a_child(Question asked) {
    const auto child = ::fork();
    if (child == 0) {
        ::_exit(asked() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

}  // namespace

TEST(ProcessMark, AChildKnowsThatItIsOne) {
    const process_mark mark;
    EXPECT_FALSE(mark.forked());
    EXPECT_TRUE(in_a_child([&] { return mark.forked(); }));
    EXPECT_FALSE(mark.forked()) << "the parent stays what it was";
}

TEST(ProcessMark, WhatAChildMakesIsItsOwn) {
    const process_mark of_parent;
    EXPECT_TRUE(in_a_child([&] {
        const process_mark own;
        return !own.forked() && of_parent.forked();
    }));
}

TEST(ProcessMark, AGrandchildIsNeitherParentNorChild) {
    const process_mark of_parent;
    EXPECT_TRUE(in_a_child([&] {
        const process_mark of_child;
        return in_a_child([&] { return of_parent.forked() && of_child.forked(); });
    }));
}

}  // namespace dibs::store
