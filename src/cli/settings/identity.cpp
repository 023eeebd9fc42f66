// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/identity.hpp"

#include "cli/run/child_environment.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace dibs::cli {

namespace {

/// 0 when it cannot be told.
std::int64_t parent_of(std::int64_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(file, line);
    // The name comes in parentheses and may hold any character, also a parenthesis.
    const auto end = line.rfind(')');
    if (end == std::string::npos) {
        return 0;
    }
    std::istringstream rest(line.substr(end + 1));
    char state = 0;
    std::int64_t parent = 0;
    rest >> state >> parent;
    return parent;
}

bool is_ancestor(std::int64_t wanted) {
    // The init process is everybody's ancestor, and in a container it may be the holder.
    constexpr int generations_max = 1000;
    std::int64_t process = ::getpid();
    for (int generation = 0; process > 0 && generation < generations_max; ++generation) {
        if (process == wanted) {
            return true;
        }
        process = parent_of(process);
    }
    return false;
}

std::string this_host() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

bool is_you(const dibs::holder& who, std::string_view key) {
    const char* outer = std::getenv("DIBS_HELD_KEYS");
    if (outer != nullptr && held_by_outer_run(outer, key, who.fence)) {
        return true;
    }
    // A detached lease outlives its process, and the number may be somebody else's by now.
    return who.attached && who.host == this_host() && is_ancestor(who.pid);
}

}  // namespace dibs::cli
