// SPDX-License-Identifier: Apache-2.0
// The simulator's command: runs seeds, tells what they broke, and how to see it again.

#include "simulation/faults/fault.hpp"
#include "simulation/history/judge.hpp"
#include "simulation/run/run.hpp"
#include "simulation/stores/store_model.hpp"
#include "simulation/workloads/workload.hpp"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace dibs::simulation;

struct settings {
    std::uint64_t seeds = 100;
    std::uint64_t first = 1;
    bool one_seed = false;
    std::string store;
    std::string workload;
    std::string fault;
    std::string history;
    bool without_faults = false;
    std::string html;
    bool digests = false;
    bool trace = false;
    bool list = false;
    bool stop_at_first = false;
    bool judged = true;
};

using seconds = std::chrono::duration<double>;

/// Of this process: others on the machine do not count.
seconds cpu_time() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

/// What a core does in a second, told of the runs and of their judgement.
class speed {
  public:
    void add(const outcome& of, seconds to_run, seconds to_judge) {
        steps_ += of.steps;
        operations_ += of.operations;
        to_run_ += to_run;
        to_judge_ += to_judge;
    }

    void show(seconds took) const {
        const auto per_second = [](std::uint64_t amount, seconds of) {
            return of.count() > 0 ? static_cast<double>(amount) / of.count() : 0.0;
        };
        std::printf(
            "%llu lock operations (acquires, renewals and releases that a store answered) in "
            "%.1f s, of which %.1f s of a core ran them and %.1f s judged them\n",
            static_cast<unsigned long long>(operations_),
            took.count(),
            to_run_.count(),
            to_judge_.count());
        std::printf(
            "per second of a core: %.0f lock operations and %.0f steps run; "
            "%.0f lock operations run and judged\n",
            per_second(operations_, to_run_),
            per_second(steps_, to_run_),
            per_second(operations_, to_run_ + to_judge_));
    }

  private:
    std::uint64_t steps_ = 0;
    std::uint64_t operations_ = 0;
    seconds to_run_{};
    seconds to_judge_{};
};

std::uint64_t number_of(std::string_view text) {
    std::uint64_t value = 0;
    const auto [at, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc{} || at != text.data() + text.size()) {
        throw std::invalid_argument{"not a number: " + std::string{text}};
    }
    return value;
}

settings read_arguments(const std::vector<std::string>& words) {
    settings read;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const auto& word = words[at];
        const auto value = [&]() -> const std::string& {
            if (at + 1 == words.size()) {
                throw std::invalid_argument{word + " needs a value"};
            }
            return words[++at];
        };
        if (word == "--seeds") {
            read.seeds = number_of(value());
        } else if (word == "--first") {
            read.first = number_of(value());
        } else if (word == "--seed") {
            read.first = number_of(value());
            read.seeds = 1;
            read.one_seed = true;
        } else if (word == "--store") {
            read.store = value();
        } else if (word == "--workload") {
            read.workload = value();
        } else if (word == "--fault") {
            read.fault = value();
        } else if (word == "--history") {
            read.history = value();
        } else if (word == "--html") {
            read.html = value();
        } else if (word == "--trace") {
            read.trace = true;
        } else if (word == "--stop-at-first") {
            read.stop_at_first = true;
        } else if (word == "--no-check") {
            read.judged = false;
        } else if (word == "--list") {
            read.list = true;
        } else if (word == "--no-faults") {
            read.without_faults = true;
        } else if (word == "--digests") {
            read.digests = true;
        } else {
            throw std::invalid_argument{"unknown argument: " + word};
        }
    }
    return read;
}

std::string replay_line(std::uint64_t seed, const settings& with) {
    auto line = "./scripts/simulate --seed " + std::to_string(seed);
    const auto add = [&](std::string_view name, const std::string& value) {
        line += value.empty() ? "" : " " + std::string{name} + " " + value;
    };
    add("--store", with.store);
    add("--workload", with.workload);
    add("--fault", with.fault);
    line += with.without_faults ? " --no-faults" : "";
    return line;
}

void list_names() {
    const auto show = [](std::string_view what, const auto& kinds) {
        std::printf("%s\n", std::string{what}.c_str());
        for (const auto& one : kinds) {
            std::printf(
                "  %-12s %s\n", std::string{one.name}.c_str(), std::string{one.about}.c_str());
        }
    };
    show("stores", store_kinds());
    show("workloads", workload_kinds());
    show("faults", fault_kinds());
}

int simulate(const settings& with) {
    if (with.list) {
        list_names();
        return 0;
    }
    const auto began = std::chrono::steady_clock::now();
    speed reached;
    std::uint64_t failed = 0;
    std::uint64_t excused = 0;
    std::uint64_t lost = 0;
    std::uint64_t unfairness = 0;
    for (auto seed = with.first; seed < with.first + with.seeds; ++seed) {
        const auto drawn = draw_plan(seed,
                                     {.store = with.store,
                                      .workload = with.workload,
                                      .without_faults = with.without_faults,
                                      .fault = with.fault});
        if (with.one_seed) {
            std::printf("%s\n", drawn.text().c_str());
        }
        const auto before = cpu_time();
        auto told = run(drawn);
        const auto ran = cpu_time();
        if (with.judged) {
            judge(told);
        }
        reached.add(told, ran - before, cpu_time() - ran);
        excused += told.excused;
        lost += told.lost_updates;
        unfairness = std::max(unfairness, told.unfairness);
        if (with.digests) {
            std::printf("%llu %016llx\n",
                        static_cast<unsigned long long>(seed),
                        static_cast<unsigned long long>(digest(told.history.text())));
        }
        if (!with.history.empty()) {
            std::ofstream{with.history} << told.history.text();
        }
        if (!with.html.empty()) {
            std::ofstream{with.html} << picture(told.history);
        }
        if (with.trace) {
            std::fputs(in_words(told.history).c_str(), stdout);
        }
        if (with.one_seed && with.judged) {
            std::fputs(report(told.history).c_str(), stdout);
        }
        if (!told.violations.empty()) {
            ++failed;
            std::printf("VIOLATION, %s\n", drawn.text().c_str());
            for (const auto& one : told.violations) {
                std::printf("  %s\n", one.c_str());
            }
            std::printf("  replay: %s\n", replay_line(seed, with).c_str());
            if (with.stop_at_first) {
                return 1;
            }
        }
    }
    std::printf(
        "%llu seeds, %llu with violations; %llu breaches excused by unbounded faults; "
        "%llu updates lost; in a queue nobody was granted more than %llu times more than another\n",
        static_cast<unsigned long long>(with.seeds),
        static_cast<unsigned long long>(failed),
        static_cast<unsigned long long>(excused),
        static_cast<unsigned long long>(lost),
        static_cast<unsigned long long>(unfairness));
    reached.show(std::chrono::steady_clock::now() - began);
    return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    // A violation is told when it is found, also to a file.
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    try {
        return simulate(read_arguments({words + 1, words + count}));
    } catch (const std::exception& thrown) {
        std::fprintf(stderr, "dibs_simulate: %s\n", thrown.what());
        return 64;
    }
}
