// SPDX-License-Identifier: Apache-2.0
// Acquire and release on the SQLite store, beside a loop of the same two SQL steps written by hand,
// on a file of the same kind with the same `synchronous`. A cycle is one acquire and one release.
// Each round measures the raw loop and ours one after the other; the ratio is the median of the
// rounds' ratios.
//
// usage: bench_sqlite_cycles [rounds] [seconds per measurement]

#include "callers.hpp"
#include "measure.hpp"

#include <dibs/dibs.hpp>

#include <sqlite3.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using dibs::bench::callers_many;
using dibs::bench::many_coroutines;
using dibs::bench::own_cycle;
using dibs::bench::seconds;
using clock_type = std::chrono::steady_clock;

/// So many cycles make a log grow to its full length. A commit that lengthens the file costs the
/// file system a commit of its own, so both logs are grown before anything is measured.
constexpr int cycles_to_grow_the_log = 1500;

/// The two steps by hand: an upsert that takes the key when it is free and returns the fence, and a
/// release by holder.
class raw_loop {
  public:
    raw_loop(const std::string& file, const std::string& synchronous) {
        must(sqlite3_open(file.c_str(), &database_));
        run("PRAGMA journal_mode=WAL");
        set_synchronous(synchronous);
        run("CREATE TABLE IF NOT EXISTS lock(key TEXT PRIMARY KEY, holder BLOB, fence INTEGER NOT "
            "NULL, "
            "expires INTEGER NOT NULL)");
        must(sqlite3_prepare_v2(
            database_,
            "INSERT INTO lock VALUES(?1, ?2, ?3, ?4) ON CONFLICT(key) DO UPDATE SET "
            "holder=?2, fence=max(fence+1, ?3), expires=?4 "
            "WHERE holder IS NULL OR expires <= ?5 RETURNING fence",
            -1,
            &acquire_,
            nullptr));
        must(sqlite3_prepare_v2(database_,
                                "UPDATE lock SET holder=NULL WHERE key=?1 AND holder=?2",
                                -1,
                                &release_,
                                nullptr));
    }
    ~raw_loop() {
        sqlite3_finalize(acquire_);
        sqlite3_finalize(release_);
        sqlite3_close(database_);
    }
    raw_loop(const raw_loop&) = delete;
    raw_loop& operator=(const raw_loop&) = delete;

    void set_synchronous(const std::string& synchronous) {
        run("PRAGMA synchronous=" + synchronous);
    }

    void cycle(const std::string& key) {
        timespec boot{};
        ::clock_gettime(CLOCK_BOOTTIME, &boot);
        const auto now = std::int64_t{boot.tv_sec} * 1'000'000 + boot.tv_nsec / 1000;
        const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(
                              std::chrono::system_clock::now().time_since_epoch())
                              .count();
        sqlite3_bind_text(acquire_, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
        sqlite3_bind_blob(
            acquire_, 2, holder_.data(), static_cast<int>(holder_.size()), SQLITE_STATIC);
        sqlite3_bind_int64(acquire_, 3, wall);
        sqlite3_bind_int64(acquire_, 4, now + 30'000'000);
        sqlite3_bind_int64(acquire_, 5, now);
        if (sqlite3_step(acquire_) != SQLITE_ROW) {
            throw std::runtime_error("the raw loop was not granted its key");
        }
        fence_ = sqlite3_column_int64(acquire_, 0);
        while (sqlite3_step(acquire_) == SQLITE_ROW) {
        }
        sqlite3_reset(acquire_);
        sqlite3_bind_text(release_, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
        sqlite3_bind_blob(
            release_, 2, holder_.data(), static_cast<int>(holder_.size()), SQLITE_STATIC);
        if (sqlite3_step(release_) != SQLITE_DONE) {
            throw std::runtime_error("the raw loop could not release");
        }
        sqlite3_reset(release_);
    }

  private:
    void must(int code) {
        if (code != SQLITE_OK) {
            throw std::runtime_error(sqlite3_errmsg(database_));
        }
    }
    void run(const std::string& sql) {
        must(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr));
    }

    sqlite3* database_ = nullptr;
    sqlite3_stmt* acquire_ = nullptr;
    sqlite3_stmt* release_ = nullptr;
    std::array<unsigned char, 16> holder_{1};
    std::int64_t fence_ = 0;
};

/// Cycles per second of `cycle`, called again and again.
double rate_of(seconds length, const std::function<void()>& cycle) {
    for (int warm = 0; warm < 50; ++warm) {
        cycle();
    }
    const auto start = clock_type::now();
    std::int64_t cycles = 0;
    while (clock_type::now() - start < length) {
        cycle();
        ++cycles;
    }
    return static_cast<double>(cycles) / seconds(clock_type::now() - start).count();
}

double lone_caller(dibs::client& client, seconds length) {
    return rate_of(length, [&] { own_cycle(client, "caller-0"); });
}

double many_threads(dibs::client& client, seconds length) {
    std::atomic<std::int64_t> cycles{0};
    std::atomic<bool> over{false};
    std::vector<std::jthread> threads;
    const auto start = clock_type::now();
    for (int caller = 0; caller < callers_many; ++caller) {
        threads.emplace_back([&, key = "caller-" + std::to_string(caller)] {
            while (!over) {
                own_cycle(client, key);
                ++cycles;
            }
        });
    }
    std::this_thread::sleep_for(length);
    over = true;
    threads.clear();
    return static_cast<double>(cycles) / seconds(clock_type::now() - start).count();
}

void compare(const std::string& synchronous, int rounds, seconds length) {
    struct contender {
        const char* name;
        double (*measure)(dibs::client&, seconds);
        std::vector<double> rates;
        std::vector<double> ratios;
    };
    std::array<contender, 3> contenders{{{"1 caller", lone_caller, {}, {}},
                                         {"64 coroutines", many_coroutines, {}, {}},
                                         {"64 threads", many_threads, {}, {}}}};
    std::vector<double> raw_rates;
    const dibs::bench::scratch_folder folder;
    raw_loop raw(folder.file("raw.db"), synchronous);
    dibs::client client("sqlite:" + folder.file("own.db") + "?synchronous=" + synchronous);
    {
        dibs::client grower("sqlite:" + folder.file("own.db") + "?synchronous=normal");
        raw.set_synchronous("normal");
        for (int cycle = 0; cycle < cycles_to_grow_the_log; ++cycle) {
            own_cycle(grower, "caller-0");
            raw.cycle("caller-0");
        }
        raw.set_synchronous(synchronous);
    }
    for (int round = 0; round < rounds; ++round) {
        for (auto& one : contenders) {
            const auto ceiling = rate_of(length, [&] { raw.cycle("caller-0"); });
            const auto rate = one.measure(client, length);
            raw_rates.push_back(ceiling);
            one.rates.push_back(rate);
            one.ratios.push_back(rate / ceiling);
        }
    }
    std::printf("synchronous=%-6s  raw loop, 1 caller  %9.0f cycles/s\n",
                synchronous.c_str(),
                dibs::bench::median(raw_rates));
    for (const auto& one : contenders) {
        std::printf("                    %-18s  %9.0f cycles/s   %6.2f x raw\n",
                    one.name,
                    dibs::bench::median(one.rates),
                    dibs::bench::median(one.ratios));
    }
}

}  // namespace

int main(int count, char** words) {
    const int rounds = count > 1 ? std::atoi(words[1]) : 5;
    const seconds length{count > 2 ? std::atof(words[2]) : 1.0};
    for (const auto* synchronous : {"normal", "full"}) {
        compare(synchronous, rounds, length);
    }
}
