// SPDX-License-Identifier: Apache-2.0
// Acquire (with fence) and release on the PostgreSQL store, beside pgbench, which runs the two steps
// as single statements by hand on a table of its own in the same database. A cycle is one acquire
// and one release. Each round measures pgbench with several numbers of clients and ours, one after
// the other; the ratio is the median of the rounds' to the best of pgbench. What batches can give at
// most is shown by a loop by hand on that table: 64 keys by one statement over `unnest`, acquired and
// then released, on one connection. And the same with postgres+advisory://, beside pgbench with a
// pipeline of the three statements by hand: lock, row of the fence, unlock.
//
// usage: bench_postgres_cycles URL [rounds] [seconds per measurement]
//        pgbench and psql are on the path

#include "callers.hpp"
#include "measure.hpp"
#include "raw_postgres.hpp"

#include <dibs/dibs.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using dibs::bench::callers_many;
using dibs::bench::key_of_caller;
using dibs::bench::many_coroutines;
using dibs::bench::own_cycle;
using dibs::bench::raw_postgres;
using dibs::bench::seconds;
using clock_type = std::chrono::steady_clock;

constexpr std::array clients{1, 16, 32, 64};

std::string output_of(const std::string& command) {
    auto* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) {
        throw std::runtime_error("cannot run " + command);
    }
    std::string all;
    std::array<char, 4096> part;
    while (std::fgets(part.data(), part.size(), pipe) != nullptr) {
        all += part.data();
    }
    ::pclose(pipe);
    return all;
}

class by_hand {
  public:
    explicit by_hand(std::string url) : url_(std::move(url)) {
        output_of("psql -q '" + url_ +
                  "' -c \"DROP TABLE IF EXISTS dibs_bench; CREATE TABLE dibs_bench (key text "
                  "PRIMARY KEY, holder text, fence bigint NOT NULL, expires timestamptz NOT NULL) "
                  "WITH (fillfactor = 50)\" 2>&1");
        std::ofstream script{folder_.file("cycle.sql")};
        std::ofstream locks{folder_.file("locks.sql")};
        locks << "\\startpipeline\nSELECT pg_try_advisory_lock(hashtextextended('raw-' || "
                 ":client_id, 0));\n"
                 "INSERT INTO dibs_bench AS l (key, holder, fence, expires) VALUES ('raw-' || "
                 ":client_id, 'me', 1, 'infinity') ON CONFLICT (key) DO UPDATE SET holder = "
                 "excluded.holder, expires = excluded.expires, fence = greatest(l.fence + 1, "
                 "(date_part('epoch', clock_timestamp()) * 1e6)::bigint) RETURNING fence;\n"
                 "SELECT pg_advisory_unlock(hashtextextended('raw-' || :client_id, "
                 "0));\n\\endpipeline\n";
        script << "INSERT INTO dibs_bench AS l (key, holder, fence, expires) VALUES ('raw-' || "
                  ":client_id, 'me', 1, clock_timestamp() + interval '30 s') ON CONFLICT (key) DO "
                  "UPDATE SET holder = excluded.holder, fence = greatest(l.fence + 1, "
                  "(date_part('epoch', clock_timestamp()) * 1e6)::bigint), expires = "
                  "excluded.expires WHERE l.holder IS NULL OR l.expires <= clock_timestamp() "
                  "RETURNING fence;\n"
                  "UPDATE dibs_bench SET holder = NULL WHERE key = 'raw-' || :client_id AND holder "
                  "= 'me';\n";
    }
    ~by_hand() { output_of("psql -q '" + url_ + "' -c 'DROP TABLE dibs_bench' 2>&1"); }

    /// Cycles per second, 64 keys by one statement.
    double batches(seconds length) const {
        raw_postgres server(url_);
        std::string keys;
        for (int at = 0; at < callers_many; ++at) {
            const auto key = "batch-" + std::to_string(at);
            keys += (at == 0 ? "{" : ",") + key;
            server.ask("INSERT INTO dibs_bench VALUES ('" + key +
                       "', NULL, 1, now()) ON CONFLICT DO NOTHING");
        }
        keys += "}";
        server.prepare("acquire",
                       "UPDATE dibs_bench l SET holder = 'me', expires = clock_timestamp() + "
                       "interval '30 s', fence = greatest(l.fence + 1, (date_part('epoch', "
                       "clock_timestamp()) * 1e6)::bigint) FROM unnest($1::text[]) AS e(key) WHERE "
                       "l.key = e.key AND (l.holder IS NULL OR l.expires <= clock_timestamp()) "
                       "RETURNING fence");
        server.prepare("release",
                       "UPDATE dibs_bench l SET holder = NULL FROM unnest($1::text[]) AS e(key) "
                       "WHERE l.key = e.key AND l.holder = 'me' RETURNING fence");
        const auto start = clock_type::now();
        std::int64_t cycles = 0;
        for (; clock_type::now() - start < length; cycles += callers_many) {
            if (server.run("acquire", {keys}).size() != callers_many ||
                server.run("release", {keys}).size() != callers_many) {
                throw std::runtime_error("the loop by hand did not get its keys");
            }
        }
        return static_cast<double>(cycles) / seconds(clock_type::now() - start).count();
    }

    /// Cycles per second.
    double rate(int how_many, seconds length, const std::string& what = "cycle.sql") const {
        const auto text = output_of("pgbench -n -M prepared -j 2 -c " + std::to_string(how_many) +
                                    " -T " + std::to_string(std::max(1, int(length.count()))) +
                                    " -f '" + folder_.file(what) + "' '" + url_ + "' 2>&1");
        const auto at = text.find("tps = ");
        if (at == std::string::npos) {
            throw std::runtime_error("pgbench said: " + text);
        }
        return std::atof(text.c_str() + at + 6);
    }

  private:
    std::string url_;
    dibs::bench::scratch_folder folder_;
};

/// In a schema of its own: one is used in one way.
std::string url_of_locks(const std::string& url) {
    const auto at = url.find("://");
    return "postgres+advisory" + url.substr(at) + (url.find('?') == std::string::npos ? "?" : "&") +
           "schema=dibs_bench_locks";
}

double lone_caller(dibs::client& client, seconds length) {
    const auto start = clock_type::now();
    std::int64_t cycles = 0;
    const auto key = key_of_caller(0);
    for (; clock_type::now() - start < length; ++cycles) {
        own_cycle(client, key);
    }
    return static_cast<double>(cycles) / seconds(clock_type::now() - start).count();
}

void show(const char* name, const std::vector<double>& own, const std::vector<double>& raw) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < own.size(); ++round) {
        ratios.push_back(own[round] / raw[round]);
    }
    std::printf("dibs, %-14s  %8.0f cycles/s  %5.2f x\n",
                name,
                dibs::bench::median(own),
                dibs::bench::median(ratios));
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_postgres_cycles URL [rounds] [seconds]\n");
        return 64;
    }
    const std::string url = words[1];
    const int rounds = count > 2 ? std::atoi(words[2]) : 5;
    const seconds length{count > 3 ? std::atof(words[3]) : 2.0};
    const by_hand raw{url};
    dibs::client client(url);
    dibs::client locks(url_of_locks(url));
    std::map<int, std::vector<double>> found;
    std::vector<double> best;
    std::vector<double> lone;
    std::vector<double> many;
    std::vector<double> batches;
    std::vector<double> lone_locks;
    std::vector<double> many_locks;
    std::vector<double> one_piped;
    std::vector<double> best_piped;
    for (int round = 0; round < rounds; ++round) {
        double top = 0;
        for (const auto how_many : clients) {
            found[how_many].push_back(raw.rate(how_many, length));
            top = std::max(top, found[how_many].back());
        }
        best.push_back(top);
        lone.push_back(lone_caller(client, length));
        many.push_back(many_coroutines(client, length));
        batches.push_back(raw.batches(length));
        one_piped.push_back(raw.rate(1, length, "locks.sql"));
        top = one_piped.back();
        for (const auto how_many : {16, 64}) {
            top = std::max(top, raw.rate(how_many, length, "locks.sql"));
        }
        best_piped.push_back(top);
        lone_locks.push_back(lone_caller(locks, length));
        many_locks.push_back(many_coroutines(locks, length));
    }
    for (const auto& [how_many, rates] : found) {
        std::printf(
            "pgbench, %2d clients   %8.0f cycles/s\n", how_many, dibs::bench::median(rates));
    }
    show("1 caller", lone, found[1]);
    show("64 callers", many, best);
    std::printf("unnest, 64 keys       %8.0f cycles/s\n", dibs::bench::median(batches));
    show("of these, 64", many, batches);
    std::printf("pgbench, pipelined advisory locks   %8.0f cycles/s with 1 client, %.0f at best\n",
                dibs::bench::median(one_piped),
                dibs::bench::median(best_piped));
    show("advisory, 1", lone_locks, one_piped);
    show("advisory, 64", many_locks, best_piped);
}
