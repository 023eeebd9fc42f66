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

history read(const std::string& text) {
    std::istringstream from{text};
    return read_history(from);
}

std::vector<verdict> all_verdicts(const history& of) {
    const subject whole{of};
    std::vector<verdict> found;
    for (const auto& one : all_checks) {
        found.push_back(one.check(whole));
    }
    return found;
}

}  // namespace

judgement judge(const std::string& text) {
    judgement told;
    try {
        for (const auto& one : all_verdicts(read(text))) {
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
    } catch (const bad_history& fault) {
        told.violations.push_back(std::string{"the history cannot be read: "} + fault.what());
    }
    return told;
}

std::string report(const std::string& text) {
    const auto whole = read(text);
    std::ostringstream into;
    write_text(into, whole, all_verdicts(whole));
    return into.str();
}

std::string picture(const std::string& text) {
    const auto whole = read(text);
    std::ostringstream into;
    write_picture(into, whole, all_verdicts(whole));
    return into.str();
}

std::string in_words(const std::string& text) {
    const auto whole = read(text);
    std::string told;
    for (const auto& one : whole.events) {
        told +=
            at_text(one.sim()) + "  " + event_name(one) + "  " + event_fields(whole, one) + "\n";
    }
    return told;
}

}  // namespace dibs::simulation
