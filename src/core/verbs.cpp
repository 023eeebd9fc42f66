// SPDX-License-Identifier: Apache-2.0
#include "core/verbs.hpp"

namespace dibs::core {

const std::string& key_of(const verb& what) noexcept {
    return std::visit([](const auto& asked) -> const std::string& { return asked.key; }, what);
}

answer refused(std::error_code error, std::string detail) {
    answer given;
    given.took = effect::no;
    given.error = error;
    given.detail = std::move(detail);
    return given;
}

namespace {

std::string shown_capacity(std::uint32_t capacity) {
    return capacity == share::unlimited ? "no limit (readers)"
                                        : std::to_string(capacity) + " permits";
}

}  // namespace

answer capacity_differs(std::uint32_t ruling, std::uint32_t asked) {
    return refused(errc::capacity_differs,
                   "its holders share it with a capacity of " + shown_capacity(ruling) +
                       ", and this call asked for one of " + shown_capacity(asked) +
                       "; all must name the same");
}

answer in_doubt(std::string detail) {
    answer given;
    given.took = effect::unknown;
    given.error = errc::outcome_unknown;
    given.detail = std::move(detail);
    return given;
}

errc reason_of(loss what) noexcept {
    switch (what) {
        case loss::expired:
            return errc::lease_expired;
        case loss::taken:
            return errc::lease_taken;
        case loss::revoked:
            return errc::lease_revoked;
        case loss::replaced:
            return errc::store_replaced;
        case loss::none:
        case loss::gone:
            break;
    }
    return errc::lease_gone;
}

}  // namespace dibs::core
