// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every benchmark needs: a folder of its own, medians, CPU time.

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace dibs::bench {

using seconds = std::chrono::duration<double>;

/// A folder that goes with the object.
class scratch_folder {
  public:
    scratch_folder() {
        const char* const base = std::getenv("TMPDIR");
        std::string name = std::string(base != nullptr ? base : "/tmp") + "/dibs-bench-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("cannot make a temporary folder");
        }
        path_ = name;
    }
    ~scratch_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;

    [[nodiscard]] std::string file(const std::string& name) const {
        return (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

template <typename Number>
Number quantile(std::vector<Number> values, double at) {
    std::sort(values.begin(), values.end());
    const auto last = static_cast<double>(values.size() - 1);
    return values[static_cast<std::size_t>(at * last)];
}

template <typename Number>
Number median(std::vector<Number> values) {
    return quantile(std::move(values), 0.5);
}

/// CPU time of this process, all threads, user and system.
inline seconds cpu_used() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto in_seconds = [](const timeval& length) {
        return static_cast<double>(length.tv_sec) + static_cast<double>(length.tv_usec) / 1e6;
    };
    return seconds{in_seconds(used.ru_utime) + in_seconds(used.ru_stime)};
}

/// Bytes that this process has in memory.
inline std::int64_t memory_used() {
    std::ifstream sizes{"/proc/self/statm"};
    std::int64_t all = 0;
    std::int64_t resident = 0;
    sizes >> all >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

inline std::int64_t monotonic_ns() {
    timespec at{};
    ::clock_gettime(CLOCK_MONOTONIC, &at);
    return std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

}  // namespace dibs::bench
