// SPDX-License-Identifier: Apache-2.0
#include "checker/picture.hpp"

#include "checker/event_text.hpp"
#include "checker/report.hpp"
#include "checker/timeline.hpp"
#include "checker/words.hpp"

#include <algorithm>

namespace dibs_checker {
namespace {

constexpr std::size_t around = 8;       ///< events shown before and after each one that matters
constexpr std::size_t shown_max = 250;  ///< in one timeline
constexpr std::size_t timelines_max = 12;

constexpr std::string_view head = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>History</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; color: #1b1f23; background: #fff; margin: 2rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .9rem .2rem 0; }
td { vertical-align: top; }
.excerpt td { font: 12px/1.4 ui-monospace, monospace; border-top: 1px solid #e4e7ea; }
.violated { color: #b3261e; font-weight: 600; } .undecided { color: #8a5a00; font-weight: 600; }
.clean { color: #22683f; } .quiet { color: #69737d; }
.scroll { overflow-x: auto; border: 1px solid #dfe3e8; margin: 1rem 0; }
svg text { font-family: system-ui, sans-serif; font-size: 11px; fill: #1b1f23; }
.lane { font-weight: 600; } .stamp { font-size: 9px; fill: #69737d; }
.lane-line { stroke: #e4e7ea; } .grid { stroke: #eef1f4; }
.label { font-size: 10px; } .strong { font-weight: 700; fill: #b3261e; }
.belief { fill-opacity: .38; } .grant { fill-opacity: .38; stroke: #1b1f23; stroke-opacity: .4; }
.call { stroke: #9aa4ae; } .open { stroke-dasharray: 4 3; }
.point { fill: #56606a; } .marked { stroke: #b3261e; stroke-width: 2; }
.mark { stroke: #b3261e; stroke-dasharray: 2 3; } .badge { fill: #b3261e; }
.badge-text { fill: #fff !important; font-size: 10px; font-weight: 700; }
.heal { stroke: #22683f; stroke-width: 2; stroke-dasharray: 6 4; }
</style></head><body>
)";

constexpr std::string_view how_to_read =
    R"(<p class="quiet">A coloured strip above a process is the time in which it believed to hold a
key, one of a store the time for which it was granted; the same colour is the same key. Bars below
are calls, from question to answer: ✓ it happened, ✗ it surely did not, ? nobody knows, … no answer
ever came. Dots are instants. Red and numbered is what the finding rests on. Stamps are exact and in
true time; the distances between them are not to scale. Point at anything for the whole event.</p>
)";

std::string_view style_of(outcome what) {
    switch (what) {
        case outcome::violated:
            return "violated";
        case outcome::undecided:
            return "undecided";
        case outcome::clean:
            return "clean";
        case outcome::not_judged:
            break;
    }
    return "quiet";
}

void write_summary(std::ostream& into, const history& of, const std::vector<verdict>& found) {
    into << "<h1>History: " << name_of(worst_of(found)) << "</h1>\n";
    if (of.plan().has(field::note)) {
        into << "<p>" << escaped(of.text(of.plan(), field::note)) << "</p>\n";
    }
    into << "<p>" << of.events.size() << " events, " << escaped(time_text(of.end_ns()))
         << "</p>\n<table>\n";
    for (const auto& one_of : found) {
        into << "<tr><td>" << name_of(one_of.check) << "</td><td class=\""
             << style_of(one_of.outcome()) << "\">" << name_of(one_of.outcome()) << "</td><td>"
             << escaped(title_of(one_of.check)) << "</td><td class=\"quiet\">" << one_of.judged
             << " judged";
        if (one_of.violations.count() > 0) {
            into << ", " << one_of.violations.count() << " broken";
        }
        if (one_of.excused.count() > 0) {
            into << ", " << one_of.excused.count() << " excused";
        }
        into << "</td></tr>\n";
    }
    into << "</table>\n" << how_to_read;
}

/// The events that matter, and some around each.
std::vector<position> neighbourhood(const history& of, const std::vector<position>& events) {
    std::vector<position> made;
    // Many events leave room for few neighbours.
    const auto reach = std::min(around, shown_max / std::max<std::size_t>(1, events.size()));
    for (const auto at : events) {
        const auto first = at > reach ? at - static_cast<position>(reach) : 0;
        const auto last = std::min<std::size_t>(of.events.size() - 1, at + reach);
        for (auto shown = first; shown <= last; ++shown) {
            made.push_back(shown);
        }
    }
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    if (made.size() > shown_max) {
        made.resize(shown_max);
    }
    return made;
}

void write_finding(std::ostream& into,
                   const subject& of,
                   check_id which,
                   std::string_view kind,
                   const finding& what) {
    into << "<h2>" << name_of(which) << ": " << kind << "</h2>\n<p>" << escaped(what.what)
         << "</p>\n";
    if (what.events.empty()) {
        return;
    }
    into << "<table class=\"excerpt\">\n";
    std::size_t number = 0;
    for (const auto at : what.events) {
        if (++number > shown_max) {
            break;
        }
        const auto& now = of.all.events[at];
        into << "<tr><td>" << number << "</td><td>line " << now.line << "</td><td>"
             << escaped(time_text(now.sim())) << "</td><td>" << escaped(event_name(now))
             << "</td><td>" << escaped(event_fields(of.all, now)) << "</td></tr>\n";
    }
    into << "</table>\n";
    write_timeline(into, of, neighbourhood(of.all, what.events), what.events);
}

}  // namespace

void write_picture(std::ostream& into, const history& of, const std::vector<verdict>& found) {
    const subject seen{of};
    into << head;
    write_summary(into, of, found);
    std::size_t drawn = 0;
    const auto write_list = [&](check_id which, std::string_view kind, const finding_list& list) {
        for (const auto& what : list.kept()) {
            if (drawn++ < timelines_max) {
                write_finding(into, seen, which, kind, what);
            }
        }
    };
    for (const auto& one_of : found) {
        write_list(one_of.check, "broken", one_of.violations);
        write_list(one_of.check, "undecided", one_of.undecided);
    }
    for (const auto& one_of : found) {
        write_list(one_of.check, "excused by an unbounded fault", one_of.excused);
    }
    if (drawn > timelines_max) {
        into << "<p>" << drawn - timelines_max << " more findings are not drawn.</p>\n";
    }
    if (drawn == 0) {
        const auto count = std::min(of.events.size(), shown_max);
        std::vector<position> shown(count);
        for (position at = 0; at < count; ++at) {
            shown[at] = at;
        }
        into << "<h2>" << (count == of.events.size() ? "All of it" : "Its beginning") << "</h2>\n";
        write_timeline(into, seen, shown, {});
    }
    into << "</body></html>\n";
}

}  // namespace dibs_checker
