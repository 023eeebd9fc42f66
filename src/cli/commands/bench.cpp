// SPDX-License-Identifier: Apache-2.0
// dibs bench: what this store gives on this machine.
#include "cli/options/command_support.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/child_environment.hpp"

#include <dibs/dibs.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;
using watch_clock = std::chrono::steady_clock;

constexpr std::array options{
    option{"seconds", 0, "N", "how long to measure in all (default 3; 1 to 600)"},
    option{"callers", 0, "N", "how many at the same time, each with a key of its own (default 8)"},
    json_option,
    store_option,
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "bench",
    .usage = "dibs bench [OPTIONS]",
    .summary =
        "Measures this store on this machine: cycles of acquire and release by one caller and by "
        "several at the\n"
        "same time, how long a key takes from the release to the one who waits for it, and "
        "renewals.",
    .options = options,
    .notes =
        "The keys begin with dibs-bench: and a random number, and are given back at the end. "
        "Others who use\n"
        "the store meanwhile are slowed down.\n"
        "\n"
        "exit status: 0; 64 usage; 69 store not reachable; 78 configuration.",
    .examples = "  dibs bench\n  dibs bench --seconds 10 --callers 32 --json",
};

constexpr int callers_max = 256;

std::uint64_t number_value(const arguments& found,
                           std::string_view name,
                           std::uint64_t otherwise,
                           std::uint64_t most) {
    const auto* text = found.value(name);
    if (text == nullptr) {
        return otherwise;
    }
    const bool digits = !text->empty() && text->size() <= 4 &&
                        std::all_of(text->begin(), text->end(), [](char character) {
                            return character >= '0' && character <= '9';
                        });
    const auto number = digits ? std::stoull(*text) : 0;
    if (number < 1 || number > most) {
        throw usage_error("--" + std::string(name) + " " + as_given(*text) +
                          ": must be a number from 1 to " + std::to_string(most));
    }
    return number;
}

double seconds_since(watch_clock::time_point begun) {
    return std::chrono::duration<double>(watch_clock::now() - begun).count();
}

double rate(std::uint64_t times, watch_clock::time_point begun) {
    return static_cast<double>(times) / std::max(seconds_since(begun), 1e-9);
}

class measurement {
  public:
    measurement(store_in_use& store, std::string other_url, milliseconds part)
        : store_(store),
          other_url_(std::move(other_url)),
          part_(part),
          prefix_("dibs-bench:" + new_run_id().substr(0, 12) + ":") {}

    double alone() {
        const auto begun = watch_clock::now();
        return rate(cycles(prefix_ + "alone", begun + part_), begun);
    }

    double together(std::uint64_t callers) {
        std::vector<std::thread> threads;
        std::atomic<std::uint64_t> times{0};
        std::mutex guard;
        std::exception_ptr fault;
        const auto begun = watch_clock::now();
        const auto until = begun + part_;
        for (std::uint64_t caller = 0; caller < callers; ++caller) {
            threads.emplace_back([&, caller] {
                try {
                    times += cycles(prefix_ + std::to_string(caller), until);
                } catch (...) {
                    const std::lock_guard held(guard);
                    fault = std::current_exception();
                }
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        if (fault) {
            std::rethrow_exception(fault);
        }
        return rate(times, begun);
    }

    double renewals() {
        auto held = take(store_.through, prefix_ + "renewed", milliseconds::zero());
        const auto begun = watch_clock::now();
        std::uint64_t times = 0;
        while (watch_clock::now() < begun + part_) {
            held.renew(std::chrono::seconds{30});
            ++times;
        }
        const auto result = rate(times, begun);
        (void)held.release();
        return result;
    }

    /// From the release of one process's client to the grant of another's that waits; in
    /// microseconds, the median.
    double hand_over() {
        dibs::client other{other_url_};
        const auto key = prefix_ + "handed-over";
        std::vector<double> all;
        const auto until = watch_clock::now() + part_;
        while (watch_clock::now() < until) {
            auto held = take(store_.through, key, milliseconds::zero());
            watch_clock::time_point got;
            std::exception_ptr fault;
            std::thread waiting([&] {
                try {
                    auto taken = take(other, key, std::chrono::seconds{10});
                    got = watch_clock::now();
                    (void)taken.release();
                } catch (...) {
                    fault = std::current_exception();
                }
            });
            await_waiter(key);
            const auto given_back = watch_clock::now();
            (void)held.release();
            waiting.join();
            if (fault) {
                std::rethrow_exception(fault);
            }
            all.push_back(std::chrono::duration<double, std::micro>(got - given_back).count());
        }
        const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
        std::nth_element(all.begin(), middle, all.end());
        return *middle;
    }

  private:
    static dibs::lease take(dibs::client& through, const std::string& key, milliseconds wait) {
        acquire_options wanted;
        wanted.wait = wait;
        auto taken = through.acquire(key, wanted);
        if (!taken) {
            throw failure(exit_status::held, quoted_key(key) + " was not given within its wait");
        }
        return std::move(*taken);
    }

    std::uint64_t cycles(const std::string& key, watch_clock::time_point until) {
        std::uint64_t times = 0;
        while (watch_clock::now() < until) {
            (void)take(store_.through, key, milliseconds::zero()).release();
            ++times;
        }
        return times;
    }

    void await_waiter(const std::string& key) {
        const auto bound = watch_clock::now() + std::chrono::seconds{5};
        while (watch_clock::now() < bound) {
            const auto record = store_.through.inspect(key);
            if (record && record->waiters > 0) {
                return;
            }
            std::this_thread::sleep_for(milliseconds{1});
        }
    }

    store_in_use& store_;
    std::string other_url_;
    milliseconds part_;
    std::string prefix_;
};

std::string figure(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), value < 10 ? "%.2f" : "%.0f", value);
    return text.data();
}

}  // namespace

const command_syntax& bench_syntax() {
    return syntax;
}

int bench_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto seconds = number_value(found, "seconds", 3, 600);
    const auto callers = number_value(found, "callers", 8, callers_max);
    auto store = use_store(global, found, "dibs bench");
    constexpr int parts = 4;
    const milliseconds part{static_cast<std::int64_t>(seconds) * 1000 / parts};
    measurement measured(store, store.url, part);
    double alone = 0;
    double together = 0;
    double renewals = 0;
    double hand_over = 0;
    try {
        alone = measured.alone();
        together = measured.together(callers);
        hand_over = measured.hand_over();
        renewals = measured.renewals();
    } catch (const std::system_error& error) {
        throw store_failure(error.code(), error.what(), store);
    }
    if (found.has("json")) {
        deliver(object_json({{"store", store.shown},
                             {"cycles_per_second_1", alone},
                             {"callers", callers},
                             {"cycles_per_second_n", together},
                             {"hand_over_us_median", hand_over},
                             {"renewals_per_second", renewals}}) +
                "\n");
        return exit_status::ok;
    }
    deliver("store                      " + store.shown + "\n" + "cycles/s, one caller       " +
            figure(alone) + "\n" + "cycles/s, " + std::to_string(callers) + " callers" +
            std::string(callers < 10    ? 8
                        : callers < 100 ? 7
                                        : 6,
                        ' ') +
            figure(together) + "\n" + "hand-over, median          " + figure(hand_over) + " us\n" +
            "renewals/s, one caller     " + figure(renewals) + "\n");
    return exit_status::ok;
}

}  // namespace dibs::cli
