// SPDX-License-Identifier: Apache-2.0
#pragma once
// One hot key between two processes of four callers each, for benchmarks of every store.

#include "measure.hpp"

#include <dibs/dibs.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace dibs::bench {

inline const dibs::acquire_options patiently{.ttl = std::chrono::seconds{30},
                                             .wait = std::chrono::seconds{30}};
inline constexpr int callers_per_process = 4;

struct grant {
    std::uint64_t fence = 0;
    std::int64_t got = 0;
    std::int64_t given = 0;  ///< when its release began
    int process = 0;
    int caller = 0;
};

inline std::vector<grant> contend(const std::string& url,
                                  int process,
                                  std::int64_t until,
                                  std::chrono::milliseconds work,
                                  const dibs::acquire_options& how = patiently) {
    dibs::client client(url);
    std::vector<std::vector<grant>> grants(callers_per_process);
    {
        std::vector<std::jthread> all;
        for (int caller = 0; caller < callers_per_process; ++caller) {
            auto& mine = grants[static_cast<std::size_t>(caller)];
            all.emplace_back([&client, &mine, &how, process, caller, until, work] {
                while (monotonic_ns() < until) {
                    auto lease = client.acquire("hot", how);
                    if (!lease) {
                        continue;
                    }
                    grant one{lease->fence(), monotonic_ns(), 0, process, caller};
                    if (work > std::chrono::milliseconds{0}) {
                        std::this_thread::sleep_for(work);
                    }
                    one.given = monotonic_ns();
                    (void)lease->release();
                    mine.push_back(one);
                }
            });
        }
    }
    std::vector<grant> together;
    for (const auto& mine : grants) {
        together.insert(together.end(), mine.begin(), mine.end());
    }
    return together;
}

template <typename Item>
void write_all(int to, const std::vector<Item>& items) {
    const auto size = items.size() * sizeof(Item);
    const auto* bytes = reinterpret_cast<const char*>(items.data());
    for (std::size_t done = 0; done < size;) {
        const auto wrote = ::write(to, bytes + done, size - done);
        if (wrote <= 0) {
            ::_exit(1);
        }
        done += static_cast<std::size_t>(wrote);
    }
}

template <typename Item>
std::vector<Item> read_all(int from) {
    std::string bytes;
    std::array<char, 65536> some{};
    for (;;) {
        const auto got = ::read(from, some.data(), some.size());
        if (got <= 0) {
            break;
        }
        bytes.append(some.data(), static_cast<std::size_t>(got));
    }
    std::vector<Item> items(bytes.size() / sizeof(Item));
    std::copy_n(bytes.data(), items.size() * sizeof(Item), reinterpret_cast<char*>(items.data()));
    return items;
}

/// What `part` finds in this process and in a child, together.
template <typename Item, typename Part>
std::vector<Item> in_two_processes(Part part) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) {
        throw std::runtime_error("no pipe");
    }
    const auto child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        write_all(ends[1], part(1));
        ::_exit(0);
    }
    ::close(ends[1]);
    std::vector<Item> found = part(0);
    const auto others = read_all<Item>(ends[0]);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) {
        throw std::runtime_error("the other process failed");
    }
    found.insert(found.end(), others.begin(), others.end());
    return found;
}

/// From the beginning of a release to the next grant in the other process, in microseconds. Sorts them
/// by their fences, which must rise.
inline std::vector<double> crossings(std::vector<grant>& grants) {
    std::sort(grants.begin(), grants.end(), [](const grant& one, const grant& other) {
        return one.fence < other.fence;
    });
    std::vector<double> crossed;
    for (std::size_t at = 1; at < grants.size(); ++at) {
        if (grants[at].fence == grants[at - 1].fence || grants[at].got < grants[at - 1].given) {
            throw std::runtime_error("two held the key at once");
        }
        if (grants[at].process != grants[at - 1].process) {
            crossed.push_back(static_cast<double>(grants[at].got - grants[at - 1].given) / 1e3);
        }
    }
    return crossed;
}

}  // namespace dibs::bench
