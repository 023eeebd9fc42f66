// SPDX-License-Identifier: Apache-2.0
// Acquire (with fence) and release on the PostgreSQL store, beside pgbench, which runs the two steps
// as single statements by hand on a table of its own in the same database. A cycle is one acquire
// and one release. Each round measures pgbench with several numbers of clients and ours, one after
// the other; the ratio is the median of the rounds' to the best of pgbench.
//
// usage: bench_postgres_cycles URL [rounds] [seconds per measurement]
//        pgbench and psql are on the path

#include "callers.hpp"
#include "measure.hpp"

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

using dibs::bench::key_of_caller;
using dibs::bench::many_coroutines;
using dibs::bench::own_cycle;
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

    /// Cycles per second.
    double rate(int how_many, seconds length) const {
        const auto text = output_of("pgbench -n -M prepared -j 2 -c " + std::to_string(how_many) +
                                    " -T " + std::to_string(std::max(1, int(length.count()))) +
                                    " -f '" + folder_.file("cycle.sql") + "' '" + url_ + "' 2>&1");
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
    std::map<int, std::vector<double>> found;
    std::vector<double> best;
    std::vector<double> lone;
    std::vector<double> many;
    for (int round = 0; round < rounds; ++round) {
        double top = 0;
        for (const auto how_many : clients) {
            found[how_many].push_back(raw.rate(how_many, length));
            top = std::max(top, found[how_many].back());
        }
        best.push_back(top);
        lone.push_back(lone_caller(client, length));
        many.push_back(many_coroutines(client, length));
    }
    for (const auto& [how_many, rates] : found) {
        std::printf(
            "pgbench, %2d clients   %8.0f cycles/s\n", how_many, dibs::bench::median(rates));
    }
    show("1 caller", lone, found[1]);
    show("64 callers", many, best);
}
