// SPDX-License-Identifier: Apache-2.0
#include "simulation/history/recorder.hpp"

#include "checker/writer.hpp"

#include <array>

namespace dibs::simulation {

// Half of a holder id tells the few of one run apart.
recorder::line& recorder::line::holder(field_word name, const core::holder_id& value) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<char, 16> shown{};
    for (std::size_t at = 0; at < shown.size() / 2; ++at) {
        const auto byte = std::to_integer<unsigned>(value.bytes[at]);
        shown[2 * at] = digits[byte >> 4U];
        shown[2 * at + 1] = digits[byte & 15U];
    }
    return text(name, {shown.data(), shown.size()});
}

recorder::line& recorder::line::values(field_word name, std::span<const std::int64_t> all) {
    auto& made = to_->made_;
    bool understood = made.field_begins(name.which) && made.array_begins();
    for (const auto one : all) {
        understood = understood && made.number(one);
    }
    made.array_ends();
    return say(understood);
}

recorder::line& recorder::line::checks(field_word name, std::string_view all) {
    auto& made = to_->made_;
    bool understood = made.field_begins(name.which) && made.array_begins();
    while (understood && !all.empty()) {
        const auto one = all.substr(0, all.find(','));
        all.remove_prefix(one.size() < all.size() ? one.size() + 1 : one.size());
        understood = one.size() > 2 && made.text(one.substr(1, one.size() - 2));
    }
    made.array_ends();
    return say(understood);
}

recorder::line recorder::event(op_word op, std::string_view phase) {
    made_.begin(++begun_);
    const auto ph = phase.empty() ? dibs_checker::phase::none : dibs_checker::phase_named(phase);
    if (!op.which || !ph) {
        made_.complain("the format does not know this op, or no ph \"" + std::string{phase} + '"');
        complain();
    } else {
        made_.kind(*op.which, *ph);
    }
    line begun{*this};
    begun.number("seq", begun_ - 1).time("sim_ns", world_.now());
    return begun;
}

void recorder::complain() {
    if (complaint_.empty()) {
        complaint_ = "line " + std::to_string(begun_) + ": " + made_.complaint();
    }
}

std::string recorder::text(std::size_t first) const {
    return dibs_checker::lines_of(made_.so_far(), static_cast<dibs_checker::position>(first));
}

written_history recorder::take() {
    written_history told;
    told.events = made_.take();
    told.complaint = std::move(complaint_);
    try {
        dibs_checker::assemble(told.events);
    } catch (const dibs_checker::bad_history& fault) {
        told.complaint = told.complaint.empty() ? fault.what() : told.complaint;
    }
    return told;
}

std::string written_history::text() const {
    return dibs_checker::lines_of(events);
}

std::uint64_t digest(std::string_view text) noexcept {
    std::uint64_t sum = 0xCBF29CE484222325U;
    for (const char letter : text) {
        sum = (sum ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
    }
    return sum;
}

}  // namespace dibs::simulation
