// SPDX-License-Identifier: Apache-2.0
#include "checker/builder.hpp"
#include "checker/grammar.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace dibs_checker {
namespace {

class assembler {
  public:
    explicit assembler(history& what) : all_(what) {}

    void run() {
        for (position at = 0; at < all_.events.size(); ++at) {
            take(at);
        }
    }

  private:
    [[noreturn]] static void complain(const event& about, const std::string& why) {
        throw bad_history(about.line, why);
    }

    void take(position at) {
        const auto& now = all_.events[at];
        check_order(at, now);
        if (now.has(field::proc)) {
            if (killed_.contains(now[field::proc]) && !is_fault_report(now)) {
                complain(now, "\"" + all_.text(now, field::proc) + "\" was killed before");
            }
        }
        if (now.has(field::fence_last) && now[field::fence_last] < now[field::fence] &&
            now.has(field::fence)) {
            complain(now, "the block of fences ends before it begins");
        }
        if (is_call(now.what)) {
            take_call(at);
            return;
        }
        switch (now.what) {
            case op::plan:
                take_plan(now);
                break;
            case op::fault:
                take_fault(at);
                break;
            case op::clock:
                check_clock(now);
                break;
            case op::end:
                check_word(now, field::why, end_words);
                break;
            case op::refuse:
                check_word(now, field::verb, verb_words);
                break;
            case op::stored:
                check_stored(now);
                break;
            case op::slot:
                take_slot(now);
                break;
            default:
                break;
        }
    }

    void check_order(position at, const event& now) const {
        if ((at == 0) != (now.what == op::plan)) {
            complain(now, at == 0 ? "the first event must be the plan" : "a second plan");
        }
        if (at == 0) {
            return;
        }
        const auto& before = all_.events[at - 1];
        if (now[field::seq] <= before[field::seq]) {
            complain(now, "seq does not rise");
        }
        if (now.sim() < before.sim()) {
            complain(now, "sim_ns falls");
        }
        if (before.what == op::over) {
            complain(now, "an event after \"over\"");
        }
    }

    /// A killed process does nothing, but things may still be told about it.
    static bool is_fault_report(const event& now) {
        return now.what == op::fault || now.what == op::clock || is_store_step(now.what);
    }

    void take_plan(const event& now) const {
        if (now[field::format] != 1) {
            complain(now, "format " + std::to_string(now[field::format]) + " is not known");
        }
    }

    void take_call(position at) {
        auto& now = all_.events[at];
        const auto call = now[field::call];
        if (now.ph == phase::inv) {
            if (!calls_.emplace(call, at).second) {
                complain(now, "call " + std::to_string(call) + " began before");
            }
            if (now.what == op::write && now[field::value] == null_value) {
                complain(now, "null cannot be written");
            }
            if (now.what == op::job && !slots_.contains(now[field::key])) {
                complain(now, "a job without its slot");
            }
            return;
        }
        const auto found = calls_.find(call);
        if (found == calls_.end()) {
            complain(now, "call " + std::to_string(call) + " ends and never began");
        }
        auto& inv = all_.events[found->second];
        if (inv.partner != nowhere) {
            complain(now, "call " + std::to_string(call) + " ends twice");
        }
        check_same_call(inv, now);
        if (now.ph == phase::ok && (now.what == op::acquire || now.what == op::adopt)) {
            check_grant_told(now);
        }
        if (now.is_ok(op::count) && (now[field::value] == null_value ||
                                     all_.texts.text(now[field::value]).front() == '"')) {
            complain(now, "a counter is a number");
        }
        inv.partner = at;
        now.partner = found->second;
    }

    /// What an end repeats must be what its beginning said, and what it leaves out is copied.
    void check_same_call(const event& inv, event& now) const {
        if (inv.what != now.what) {
            complain(now, "the call began as \"" + std::string{name_of(inv.what)} + "\"");
        }
        constexpr auto own = one(field::seq) | one(field::sim_ns) | one(field::op) |
                             one(field::ph) | one(field::local_ns) | one(field::note) |
                             one(field::node) | one(field::deadline_local_ns);
        for (auto left = inv.present & ~own; left != 0; left &= left - 1) {
            const auto which = static_cast<field>(std::countr_zero(left));
            if (!now.has(which)) {
                now.learn(which, inv[which]);
            } else if (inv[which] != now[which]) {
                complain(now,
                         "\"" + std::string{rule_of(which).name} + "\" differs from the call's");
            }
        }
        if (inv.has(field::fence) && !now.has(field::fence_last)) {
            now.learn(field::fence_last, now[field::fence]);
        }
    }

    void check_grant_told(const event& now) const {
        const bool handed_on = now[field::handed_on] != 0;
        for (const field which : {field::sent_local_ns, field::deadline_local_ns}) {
            if (now.has(which) == handed_on) {
                complain(
                    now,
                    "field \"" + std::string{rule_of(which).name} + "\" is " +
                        (handed_on ? "that of the block, and may not be repeated" : "missing"));
            }
        }
    }

    void take_fault(position at) {
        auto& now = all_.events[at];
        if (now.ph == phase::begin) {
            if (!faults_.emplace(now[field::id], at).second) {
                complain(now, "fault " + std::to_string(now[field::id]) + " began before");
            }
        } else if (now.ph == phase::end) {
            const auto found = faults_.find(now[field::id]);
            if (found == faults_.end()) {
                complain(now, "fault " + std::to_string(now[field::id]) + " never began");
            }
            auto& begin = all_.events[found->second];
            if (begin.partner != nowhere) {
                complain(now, "fault " + std::to_string(now[field::id]) + " ends twice");
            }
            if (begin[field::name] != now[field::name]) {
                complain(now, "the fault began as \"" + all_.text(begin, field::name) + "\"");
            }
            begin.partner = at;
            now.partner = found->second;
        } else if (all_.text(now, field::name) == "kill") {
            if (!now.has(field::proc)) {
                complain(now, "whom does it kill?");
            }
            killed_.insert(now[field::proc]);
        }
    }

    void check_clock(const event& now) const {
        const bool of_process = now.has(field::proc) && now.has(field::local_ns);
        if (of_process == now.has(field::store_ns)) {
            complain(now, "a clock event needs either proc and local_ns, or store_ns");
        }
    }

    template <std::size_t Size>
    void check_word(const event& now,
                    field which,
                    const std::array<std::string_view, Size>& known) const {
        const auto& word = all_.text(now, which);
        if (std::find(known.begin(), known.end(), word) == known.end()) {
            complain(now, "unknown " + std::string{rule_of(which).name} + " \"" + word + "\"");
        }
    }

    void check_stored(const event& now) const {
        const auto told =
            now.has(field::holder) + now.has(field::fence) + now.has(field::store_expires_ns);
        if (told != 0 && told != 3) {
            complain(now, "a stored grant has holder, fence and store_expires_ns");
        }
    }

    void take_slot(const event& now) {
        static constexpr std::array<std::string_view, 2> policies{"at_most_once", "at_least_once"};
        check_word(now, field::policy, policies);
        if (!slots_.insert(now[field::key]).second) {
            complain(now, "the slot is told twice");
        }
    }

    static constexpr std::array<std::string_view, 5> end_words{"released",
                                                               "revoked",
                                                               "died",
                                                               "expired",
                                                               "lost"};
    static constexpr std::array<std::string_view, 3> verb_words{"acquire", "renew", "release"};

    history& all_;
    std::unordered_map<std::int64_t, position> calls_;
    std::unordered_map<std::int64_t, position> faults_;
    std::unordered_set<text_id> killed_;
    std::unordered_set<text_id> slots_;
};

}  // namespace

void assemble(history& what) {
    assembler{what}.run();
}

}  // namespace dibs_checker
