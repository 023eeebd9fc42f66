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

std::string shown_share(std::uint32_t capacity) {
    return capacity == share::unlimited ? "as readers"
                                        : "by " + std::to_string(capacity) + " permits in all";
}

}  // namespace

answer capacity_differs(std::uint32_t ruling, std::uint32_t asked) {
    const bool of_two_kinds = ruling == share::unlimited || asked == share::unlimited;
    return refused(errc::capacity_differs,
                   "its holders share it " + shown_share(ruling) +
                       ", and this call asked to share it " + shown_share(asked) +
                       (of_two_kinds ? "; readers and permits need a key each"
                                     : "; all must name the same number"));
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
