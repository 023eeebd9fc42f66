// SPDX-License-Identifier: Apache-2.0
// guarantee=strict in the URL of a store.

#include "store/remote/strict_options.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dibs::store::remote {

namespace {

using namespace std::chrono_literals;
using named = std::vector<std::pair<std::string, std::string>>;

std::optional<core::microseconds> taken(const named& options, std::string& fault) {
    strict_options strict;
    for (const auto& [name, value] : options) {
        if (!strict.take(name, value, fault)) {
            return std::nullopt;
        }
    }
    return strict.longest_ttl(fault);
}

}  // namespace

TEST(StrictOptions, GoInAnyOrder) {
    std::string fault;
    EXPECT_EQ(taken({}, fault), 0us) << "nobody asked for it";
    EXPECT_EQ(taken({{"guarantee", "strict"}}, fault), 1min);
    EXPECT_EQ(taken({{"guarantee", "strict"}, {"max_ttl", "90s"}}, fault), 90s);
    EXPECT_EQ(taken({{"max_ttl", "90s"}, {"guarantee", "strict"}}, fault), 90s);
    EXPECT_EQ(fault, "");
}

TEST(StrictOptions, SayWhatIsWrong) {
    for (const auto& [options, words] : std::vector<std::pair<named, std::string>>{
             {{{"guarantee", "best"}}, "guarantee is strict, or left out, not best"},
             {{{"guarantee", ""}}, "guarantee is strict"},
             {{{"max_ttl", "90s"}}, "max_ttl goes with guarantee=strict"},
             {{{"guarantee", "strict"}, {"max_ttl", "90"}}, "max_ttl "},
             {{{"guarantee", "strict"}, {"max_ttl", "0s"}}, "between 1s and 24h"},
             {{{"guarantee", "strict"}, {"max_ttl", "25h"}}, "between 1s and 24h"}}) {
        std::string fault;
        EXPECT_FALSE(taken(options, fault)) << words;
        EXPECT_NE(fault.find(words), std::string::npos) << fault;
    }
}

}  // namespace dibs::store::remote
