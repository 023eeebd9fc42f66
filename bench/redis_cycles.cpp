// SPDX-License-Identifier: Apache-2.0
// Acquire (with fence) and release on the Redis store, beside a loop written by hand on the same
// server: SET NX PX without fence, and a script that compares and deletes; one after the other, and
// 64 in a pipeline. A cycle is one acquire and one release. Each round measures the raw loop and
// ours one after the other; the ratio is the median of the rounds' ratios.
//
// usage: bench_redis_cycles PORT [rounds] [seconds per measurement]      a server on 127.0.0.1

#include "callers.hpp"
#include "measure.hpp"

#include <dibs/dibs.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using dibs::bench::callers_many;
using dibs::bench::many_coroutines;
using dibs::bench::own_cycle;
using dibs::bench::seconds;
using clock_type = std::chrono::steady_clock;

class raw_loop {
  public:
    explicit raw_loop(std::uint16_t port)
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(port);
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
            throw std::runtime_error("no server on this port");
        }
        const int on = 1;
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ~raw_loop() { ::close(socket_); }
    raw_loop(const raw_loop&) = delete;
    raw_loop& operator=(const raw_loop&) = delete;

    /// One cycle of so many callers.
    void cycles(int callers) {
        std::string all;
        for (int caller = 0; caller < callers; ++caller) {
            all += command({"SET", key(caller), token, "NX", "PX", "30000"});
        }
        exchange(all, callers, "+OK\r\n");
        all.clear();
        for (int caller = 0; caller < callers; ++caller) {
            all += command({"EVAL", script, "1", key(caller), token});
        }
        exchange(all, callers, ":1\r\n");
    }

  private:
    static constexpr std::string_view token = "0123456789abcdef0123456789abcdef";
    static constexpr std::string_view script =
        "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 "
        "end";

    static std::string key(int caller) { return "raw-" + std::to_string(caller); }
    static std::string command(std::initializer_list<std::string_view> words) {
        std::string made = "*" + std::to_string(words.size()) + "\r\n";
        for (const auto word : words) {
            made += "$" + std::to_string(word.size()) + "\r\n";
            made += word;
            made += "\r\n";
        }
        return made;
    }
    void exchange(const std::string& all, int replies, std::string_view expected) {
        for (std::size_t sent = 0; sent < all.size();) {
            const auto wrote = ::send(socket_, all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
            if (wrote <= 0) {
                throw std::runtime_error("the server hung up");
            }
            sent += static_cast<std::size_t>(wrote);
        }
        const auto whole = static_cast<std::size_t>(replies) * expected.size();
        std::string heard;
        std::array<char, 4096> bytes;
        while (heard.size() < whole) {
            const auto got = ::recv(socket_, bytes.data(), bytes.size(), 0);
            if (got <= 0 || bytes[0] == '-') {
                throw std::runtime_error("the raw loop failed");
            }
            heard.append(bytes.data(), static_cast<std::size_t>(got));
        }
        if (heard.substr(0, expected.size()) != expected || heard.size() != whole) {
            throw std::runtime_error("the raw loop was not granted its key");
        }
    }

    int socket_;
};

template <typename Cycle>
double rate_of(seconds length, int cycles_per_call, Cycle cycle) {
    for (int warm = 0; warm < 20; ++warm) {
        cycle();
    }
    const auto start = clock_type::now();
    std::int64_t calls = 0;
    while (clock_type::now() - start < length) {
        cycle();
        ++calls;
    }
    return static_cast<double>(calls * cycles_per_call) /
           seconds(clock_type::now() - start).count();
}

double lone_caller(dibs::client& client, seconds length) {
    return rate_of(length, 1, [&] { own_cycle(client, "caller-0"); });
}

void show(const char* name,
          const std::vector<double>& raw,
          const std::vector<double>& own,
          seconds cpu_per_cycle) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < raw.size(); ++round) {
        ratios.push_back(own[round] / raw[round]);
    }
    std::printf(
        "%-14s  raw %9.0f cycles/s   dibs %9.0f cycles/s   %5.2f x raw   %5.1f us CPU/cycle\n",
        name,
        dibs::bench::median(raw),
        dibs::bench::median(own),
        dibs::bench::median(ratios),
        cpu_per_cycle.count() * 1e6);
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_redis_cycles PORT [rounds] [seconds]\n");
        return 64;
    }
    const auto port = static_cast<std::uint16_t>(std::atoi(words[1]));
    const int rounds = count > 2 ? std::atoi(words[2]) : 5;
    const seconds length{count > 3 ? std::atof(words[3]) : 1.0};
    raw_loop raw(port);
    dibs::client client("redis://127.0.0.1:" + std::to_string(port));
    for (const int callers : {1, callers_many}) {
        std::vector<double> ceilings;
        std::vector<double> rates;
        seconds used{0};
        double cycles = 0;
        for (int round = 0; round < rounds; ++round) {
            ceilings.push_back(rate_of(length, callers, [&] { raw.cycles(callers); }));
            const auto before = dibs::bench::cpu_used();
            rates.push_back(callers == 1 ? lone_caller(client, length)
                                         : many_coroutines(client, length));
            used += dibs::bench::cpu_used() - before;
            cycles += rates.back() * length.count();
        }
        show(callers == 1 ? "1 caller" : "64 coroutines", ceilings, rates, used / cycles);
    }
}
