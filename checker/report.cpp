// SPDX-License-Identifier: Apache-2.0
#include "checker/report.hpp"

#include "checker/checks/checks.hpp"
#include "checker/event_text.hpp"
#include "checker/words.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>

namespace dibs_checker {
namespace {

/// An excerpt is short by nature, but a lost update in a large set need not be.
constexpr std::size_t excerpt_max = 40;

void write_excerpt(std::ostream& into, const history& of, const finding& what) {
    const auto shown = std::min(what.events.size(), excerpt_max);
    for (std::size_t index = 0; index < shown; ++index) {
        const auto& now = of.events[what.events[index]];
        into << "      line " << now.line << "  " << at_text(now.sim()) << "  " << event_name(now)
             << "  " << event_fields(of, now) << '\n';
    }
    if (shown < what.events.size()) {
        into << "      and " << what.events.size() - shown << " more events\n";
    }
}

void write_findings(std::ostream& into,
                    const history& of,
                    const finding_list& list,
                    std::string_view kind) {
    for (const auto& what : list.kept()) {
        into << "    " << kind << ": " << what.what << '\n';
        write_excerpt(into, of, what);
    }
    if (list.count() > list.kept().size()) {
        into << "    " << kind << ": and " << list.count() - list.kept().size() << " more\n";
    }
}

nlohmann::json findings_json(const history& of, const finding_list& list) {
    auto shown = nlohmann::json::array();
    for (const auto& what : list.kept()) {
        auto events = nlohmann::json::array();
        for (const auto at : what.events) {
            const auto& now = of.events[at];
            events.push_back({{"line", now.line},
                              {"seq", now[field::seq]},
                              {"sim_ns", now.sim()},
                              {"event", event_name(now)},
                              {"fields", event_fields(of, now)}});
        }
        shown.push_back({{"what", what.what}, {"events", std::move(events)}});
    }
    return {{"count", list.count()}, {"shown", std::move(shown)}};
}

}  // namespace

std::string_view title_of(check_id which) noexcept {
    const auto found = std::find_if(all_checks.begin(),
                                    all_checks.end(),
                                    [&](const check_entry& entry) { return entry.id == which; });
    return found->title;
}

std::string_view name_of(outcome what) noexcept {
    switch (what) {
        case outcome::clean:
            return "clean";
        case outcome::violated:
            return "violated";
        case outcome::undecided:
            return "undecided";
        case outcome::not_judged:
            return "not judged";
    }
    return "";
}

outcome worst_of(const std::vector<verdict>& found) noexcept {
    auto worst = outcome::clean;
    for (const auto& one_of : found) {
        if (one_of.outcome() == outcome::violated) {
            return outcome::violated;
        }
        if (one_of.outcome() == outcome::undecided) {
            worst = outcome::undecided;
        }
    }
    return worst;
}

void write_text(std::ostream& into, const history& of, const std::vector<verdict>& found) {
    into << of.events.size() << " events, " << time_text(of.end_ns()) << '\n';
    for (const auto& one_of : found) {
        into << std::left << std::setw(4) << name_of(one_of.check) << std::setw(11)
             << name_of(one_of.outcome()) << title_of(one_of.check);
        if (one_of.judged > 0) {
            into << " (" << one_of.judged << " judged";
            if (one_of.excused.count() > 0) {
                into << ", " << one_of.excused.count() << " excused by unbounded faults";
            }
            into << ")";
        } else {
            into << ": "
                 << (one_of.not_judged.empty() ? "nothing of its kind is in the history"
                                               : one_of.not_judged);
        }
        into << '\n';
        write_findings(into, of, one_of.violations, "violation");
        write_findings(into, of, one_of.undecided, "undecided");
        write_findings(into, of, one_of.excused, "excused");
    }
}

void write_json(std::ostream& into, const history& of, const std::vector<verdict>& found) {
    auto checks = nlohmann::json::array();
    for (const auto& one_of : found) {
        nlohmann::json made{{"check", name_of(one_of.check)},
                            {"title", title_of(one_of.check)},
                            {"outcome", name_of(one_of.outcome())},
                            {"judged", one_of.judged},
                            {"violations", findings_json(of, one_of.violations)},
                            {"undecided", findings_json(of, one_of.undecided)},
                            {"excused", findings_json(of, one_of.excused)}};
        if (!one_of.not_judged.empty()) {
            made["not_judged"] = one_of.not_judged;
        }
        checks.push_back(std::move(made));
    }
    into << nlohmann::json{{"events", of.events.size()},
                           {"end_ns", of.end_ns()},
                           {"outcome", name_of(worst_of(found))},
                           {"checks", std::move(checks)}}
                .dump(2)
         << '\n';
}

}  // namespace dibs_checker
