// SPDX-License-Identifier: Apache-2.0
// What `dibs run K -- true` costs from start to end on a warm SQLite file, beside starting `true`
// itself.
//
// usage: bench_run_command PATH-OF-DIBS [rounds]

#include "measure.hpp"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

extern char** environ;

namespace {

struct cost {
    double milliseconds;
    long resident_kib;
};

cost run(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (auto& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    const auto start = dibs::bench::monotonic_ns();
    pid_t child = 0;
    if (::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
        throw std::runtime_error("cannot start " + words[0]);
    }
    int status = 0;
    rusage used{};
    ::wait4(child, &status, 0, &used);
    if (status != 0) {
        throw std::runtime_error(words[0] + " failed");
    }
    return {static_cast<double>(dibs::bench::monotonic_ns() - start) / 1e6, used.ru_maxrss};
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: %s PATH-OF-DIBS [rounds]\n", words[0]);
        return 64;
    }
    const int rounds = count > 2 ? std::atoi(words[2]) : 100;
    const dibs::bench::scratch_folder folder;
    const auto store = "sqlite:" + folder.file("run.db");
    std::vector<double> raw;
    std::vector<double> own;
    long resident = 0;
    for (int round = 0; round < rounds + 3; ++round) {
        const auto bare = run({"true"});
        const auto wrapped = run({words[1], "--store", store, "run", "K", "--", "true"});
        if (round >= 3) {
            raw.push_back(bare.milliseconds);
            own.push_back(wrapped.milliseconds);
            resident = std::max(resident, wrapped.resident_kib);
        }
    }
    std::printf(
        "true: median %.2f ms; dibs run K -- true: median %.2f ms, p99 %.2f ms, at most %.1f MiB "
        "resident\n",
        dibs::bench::median(raw),
        dibs::bench::median(own),
        dibs::bench::quantile(own, 0.99),
        static_cast<double>(resident) / 1024);
}
