// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include "support/places.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace dibs_checker::testing {

history read(const std::string& text) {
    std::istringstream from{text};
    return read_history(from);
}

std::vector<verdict> judged(const history& of, limits bounds) {
    const subject all{of, bounds};
    std::vector<verdict> found;
    for (const auto& entry : all_checks) {
        found.push_back(entry.check(all));
    }
    return found;
}

const verdict& of(const std::vector<verdict>& found, check_id which) {
    return *std::find_if(
        found.begin(), found.end(), [&](const verdict& one_of) { return one_of.check == which; });
}

std::set<std::string> with_outcome(const std::vector<verdict>& found, outcome what) {
    std::set<std::string> made;
    for (const auto& one_of : found) {
        if (one_of.outcome() == what) {
            made.insert(name_of(one_of.check));
        }
    }
    return made;
}

std::string told(const std::vector<verdict>& found) {
    std::string made;
    for (const auto& one_of : found) {
        for (const auto* list : {&one_of.violations, &one_of.undecided}) {
            for (const auto& what : list->kept()) {
                made += name_of(one_of.check) + ": " + what.what + "\n";
            }
        }
    }
    return made;
}

std::vector<std::filesystem::path> files(const std::string& kind) {
    std::vector<std::filesystem::path> made;
    const std::filesystem::path folder =
        std::filesystem::path{dibs::tests::places::histories} / kind;
    for (const auto& entry : std::filesystem::directory_iterator{folder}) {
        if (entry.path().extension() == ".jsonl") {
            made.push_back(entry.path());
        }
    }
    std::sort(made.begin(), made.end());
    return made;
}

std::string text_of(const std::filesystem::path& file) {
    std::ifstream from{file, std::ios::binary};
    std::ostringstream made;
    made << from.rdbuf();
    return made.str();
}

std::set<std::string> checks_named_by(const std::filesystem::path& file) {
    std::set<std::string> made;
    std::istringstream words{file.stem().string()};
    for (std::string word; std::getline(words, word, '_') && check_named(word);) {
        made.insert(word);
    }
    return made;
}

}  // namespace dibs_checker::testing
