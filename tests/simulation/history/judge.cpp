// SPDX-License-Identifier: Apache-2.0
#include "simulation/history/judge.hpp"

#include "checker/checks/checks.hpp"
#include "checker/event_text.hpp"
#include "checker/picture.hpp"
#include "checker/reader.hpp"
#include "checker/report.hpp"
#include "checker/subject.hpp"
#include "checker/words.hpp"

#include <sstream>

namespace dibs::simulation {

namespace {

using namespace dibs_checker;

std::vector<verdict> all_verdicts(const history& of) {
    const subject whole{of};
    std::vector<verdict> found;
    for (const auto& one : all_checks) {
        found.push_back(one.check(whole));
    }
    return found;
}

std::string report_of(const history& whole) {
    std::ostringstream into;
    write_text(into, whole, all_verdicts(whole));
    return into.str();
}

}  // namespace

judgement judge(const written_history& of) {
    judgement told;
    if (!of.complaint.empty()) {
        told.violations.push_back("the history cannot be read: " + of.complaint);
        return told;
    }
    for (const auto& one : all_verdicts(of.events)) {
        told.judged += one.judged;
        told.excused += one.excused.count();
        const std::string title{title_of(one.check)};
        for (const auto& found : one.violations.kept()) {
            told.violations.push_back(title + ": " + found.what);
        }
        if (one.undecided.count() > 0) {
            told.violations.push_back(title + ": undecided");
        }
    }
    return told;
}

std::string report(const written_history& of) {
    return of.complaint.empty() ? report_of(of.events) : of.complaint + "\n";
}

std::string report_of_text(const std::string& lines) {
    std::istringstream from{lines};
    try {
        return report_of(read_history(from));
    } catch (const bad_history& fault) {
        return std::string{fault.what()} + "\n";
    }
}

std::string picture(const written_history& of) {
    std::ostringstream into;
    if (of.complaint.empty()) {
        write_picture(into, of.events, all_verdicts(of.events));
    }
    return into.str();
}

std::string in_words(const written_history& of) {
    std::string told;
    for (const auto& one : of.events.events) {
        told += at_text(one.sim()) + "  " + event_name(one) + "  " + event_fields(of.events, one) +
                "\n";
    }
    return told;
}

}  // namespace dibs::simulation
