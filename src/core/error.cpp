// SPDX-License-Identifier: Apache-2.0
#include <dibs/error.hpp>

namespace dibs {

namespace {

class code_category final : public std::error_category {
  public:
    [[nodiscard]] const char* name() const noexcept override { return "dibs"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
            case errc::store_busy:
                return "the store is busy";
            case errc::store_unreachable:
                return "the store cannot be reached";
            case errc::store_refused:
                return "the store refused the operation";
            case errc::timed_out:
                return "timed out before the operation was begun";
            case errc::not_ready:
                return "the store is not ready to grant";
            case errc::outcome_unknown:
                return "the operation may or may not have taken effect";
            case errc::lease_expired:
                return "the lease has expired";
            case errc::lease_taken:
                return "another holder has the key";
            case errc::lease_gone:
                return "the store no longer knows the lease";
            case errc::lease_revoked:
                return "an operator ended the lease";
            case errc::holder_was_asleep:
                return "the process did not run until after the deadline of its lease";
            case errc::max_hold_reached:
                return "the lease was held for as long as its max_hold allows";
            case errc::not_held:
                return "this handle holds no lease";
            case errc::store_replaced:
                return "the store's file or its log was moved, removed or replaced while the lease "
                       "was held";
            case errc::fenced_off:
                return "the resource has seen a newer fence";
            case errc::cancelled:
                return "cancelled";
            case errc::invalid_argument:
                return "invalid argument";
            case errc::invalid_key:
                return "invalid key";
            case errc::invalid_url:
                return "invalid store URL";
            case errc::capacity_differs:
                return "the key is in use with another capacity";
            case errc::unsupported:
                return "this store does not support the operation";
            case errc::newer_format:
                return "the record was written by a newer release of dibs";
            case errc::store_damaged:
                return "not a dibs store, or damaged";
            case errc::permission_denied:
                return "permission denied";
            case errc::closed:
                return "the client is closed";
            case errc::value_unavailable:
                return "there is no valid value, and the last fetch of one failed";
            case errc::value_refused:
                return "there is no valid value, and the fetch of one was refused";
            case errc::fingerprint_differs:
                return "the idempotency key was used for something else";
            case errc::work_in_doubt:
                return "the work was begun before and has not told how it ended, and may be done "
                       "once only";
        }
        return "unknown error";
    }

    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
        switch (static_cast<errc>(value)) {
            case errc::store_busy:
            case errc::store_unreachable:
            case errc::store_refused:
            case errc::timed_out:
            case errc::not_ready:
            case errc::value_unavailable:
                return condition::retryable;
            case errc::outcome_unknown:
            case errc::work_in_doubt:
                return condition::outcome_unknown;
            case errc::lease_expired:
            case errc::lease_taken:
            case errc::lease_gone:
            case errc::lease_revoked:
            case errc::holder_was_asleep:
            case errc::max_hold_reached:
            case errc::not_held:
            case errc::store_replaced:
                return condition::lease_lost;
            case errc::fenced_off:
                return condition::fenced_off;
            case errc::cancelled:
            case errc::closed:
                return condition::cancelled;
            case errc::unsupported:
            case errc::newer_format:
                return condition::unsupported;
            case errc::invalid_argument:
            case errc::invalid_key:
            case errc::invalid_url:
            case errc::capacity_differs:
            case errc::store_damaged:
            case errc::permission_denied:
            case errc::value_refused:
            case errc::fingerprint_differs:
                return condition::invalid_argument;
        }
        return {value, *this};
    }
};

class what_to_do_category final : public std::error_category {
  public:
    [[nodiscard]] const char* name() const noexcept override { return "dibs condition"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<condition>(value)) {
            case condition::retryable:
                return "surely not applied; may be tried again";
            case condition::outcome_unknown:
                return "may have been applied";
            case condition::lease_lost:
                return "the lease is lost";
            case condition::fenced_off:
                return "refused for an older fence";
            case condition::cancelled:
                return "cancelled";
            case condition::unsupported:
                return "not supported";
            case condition::invalid_argument:
                return "invalid argument";
        }
        return "unknown condition";
    }
};

}  // namespace

const std::error_category& error_category() noexcept {
    static const code_category instance;
    return instance;
}

const std::error_category& condition_category() noexcept {
    static const what_to_do_category instance;
    return instance;
}

std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), error_category()};
}

std::error_condition make_error_condition(condition what_to_do) noexcept {
    return {static_cast<int>(what_to_do), condition_category()};
}

}  // namespace dibs
