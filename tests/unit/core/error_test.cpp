// SPDX-License-Identifier: Apache-2.0
// Every code leads to the condition that its comment in error.hpp promises.

#include <dibs/error.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dibs {

namespace {

const std::vector<std::pair<errc, condition>>& promises() {
    static const std::vector<std::pair<errc, condition>> all{
        {errc::store_busy, condition::retryable},
        {errc::store_unreachable, condition::retryable},
        {errc::store_refused, condition::retryable},
        {errc::timed_out, condition::retryable},
        {errc::not_ready, condition::retryable},
        {errc::outcome_unknown, condition::outcome_unknown},
        {errc::lease_expired, condition::lease_lost},
        {errc::lease_taken, condition::lease_lost},
        {errc::lease_gone, condition::lease_lost},
        {errc::lease_revoked, condition::lease_lost},
        {errc::holder_was_asleep, condition::lease_lost},
        {errc::max_hold_reached, condition::lease_lost},
        {errc::not_held, condition::lease_lost},
        {errc::store_replaced, condition::lease_lost},
        {errc::fenced_off, condition::fenced_off},
        {errc::cancelled, condition::cancelled},
        {errc::closed, condition::cancelled},
        {errc::value_unavailable, condition::retryable},
        {errc::value_refused, condition::invalid_argument},
        {errc::fingerprint_differs, condition::invalid_argument},
        {errc::work_in_doubt, condition::outcome_unknown},
        {errc::unsupported, condition::unsupported},
        {errc::newer_format, condition::unsupported},
        {errc::invalid_argument, condition::invalid_argument},
        {errc::invalid_key, condition::invalid_argument},
        {errc::invalid_url, condition::invalid_argument},
        {errc::capacity_differs, condition::invalid_argument},
        {errc::store_damaged, condition::invalid_argument},
        {errc::permission_denied, condition::invalid_argument},
    };
    return all;
}

}  // namespace

TEST(Error, EachCodeHasItsConditionAndNoOther) {
    const condition all[] = {condition::retryable,
                             condition::outcome_unknown,
                             condition::lease_lost,
                             condition::fenced_off,
                             condition::cancelled,
                             condition::unsupported,
                             condition::invalid_argument};
    for (const auto& [code, promised] : promises()) {
        const auto made = make_error_code(code);
        for (const auto one : all) {
            EXPECT_EQ(made == one, one == promised) << made.message();
        }
    }
}

TEST(Error, NoCodeIsLeftOut) {
    // The codes are counted on from 1; the first number without a text is behind the last one.
    int last = 0;
    while (error_category().message(last + 1) != "unknown error") {
        ++last;
    }
    EXPECT_EQ(promises().size(), static_cast<std::size_t>(last));
}

TEST(Error, EachCodeSpeaks) {
    std::set<std::string> texts;
    for (const auto& [code, promised] : promises()) {
        const auto made = make_error_code(code);
        EXPECT_TRUE(made);
        EXPECT_EQ(&made.category(), &error_category());
        EXPECT_TRUE(texts.insert(made.message()).second) << made.message() << " twice";
        EXPECT_NE(make_error_condition(promised).message(), "unknown condition");
    }
    EXPECT_EQ(error_category().message(0), "unknown error");
}

TEST(Error, ForeignCodesMeanNothingHere) {
    EXPECT_FALSE(std::make_error_code(std::errc::timed_out) == condition::retryable);
    EXPECT_FALSE(std::error_code{} == condition::retryable);
    EXPECT_EQ(error_category().default_error_condition(9999).value(), 9999);
}

TEST(Error, IsThrownAsASystemError) {
    try {
        throw error(make_error_code(errc::store_busy), "key k (store memory:): busy");
    } catch (const std::system_error& caught) {
        EXPECT_EQ(caught.code(), condition::retryable);
        EXPECT_NE(std::string(caught.what()).find("key k"), std::string::npos);
    }
}

}  // namespace dibs
