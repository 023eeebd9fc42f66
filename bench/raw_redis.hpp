// SPDX-License-Identifier: Apache-2.0
#pragma once
// A connection to a Redis server by hand, for what the benchmarks compare with: no library, nothing
// that could cost time.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace dibs::bench {

class raw_redis {
  public:
    explicit raw_redis(std::uint16_t port)
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
    ~raw_redis() { ::close(socket_); }
    raw_redis(const raw_redis&) = delete;
    raw_redis& operator=(const raw_redis&) = delete;

    static std::string command(std::initializer_list<std::string_view> words) {
        std::string made = "*" + std::to_string(words.size()) + "\r\n";
        for (const auto word : words) {
            made += "$" + std::to_string(word.size()) + "\r\n";
            made += word;
            made += "\r\n";
        }
        return made;
    }

    void send(std::string_view all) {
        for (std::size_t sent = 0; sent < all.size();) {
            const auto wrote = ::send(socket_, all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
            if (wrote <= 0) {
                throw std::runtime_error("the server hung up");
            }
            sent += static_cast<std::size_t>(wrote);
        }
    }

    /// What has come, at least one byte; valid until the next call.
    std::string_view receive() {
        const auto got = ::recv(socket_, bytes_.data(), bytes_.size(), 0);
        if (got <= 0 || bytes_[0] == '-') {
            throw std::runtime_error("the loop by hand failed");
        }
        return {bytes_.data(), static_cast<std::size_t>(got)};
    }

    /// One command whose reply is this.
    void expect(const std::string& bytes, std::string_view reply) {
        send(bytes);
        std::string heard;
        while (heard.size() < reply.size()) {
            heard += receive();
        }
        if (heard != reply) {
            throw std::runtime_error("the loop by hand was told something else: " + heard);
        }
    }

    /// The text of a bulk reply.
    std::string text(const std::string& bytes) {
        send(bytes);
        std::string heard{receive()};
        const auto head = heard.find("\r\n");
        if (heard.front() != '$' || head == std::string::npos) {
            throw std::runtime_error("the server answered no text");
        }
        const auto size = std::strtoul(heard.c_str() + 1, nullptr, 10);
        while (heard.size() < head + 2 + size + 2) {
            heard += receive();
        }
        return heard.substr(head + 2, size);
    }

    /// The last text of an array of texts; empty for a null.
    std::string last_text(const std::string& bytes) {
        send(bytes);
        std::string heard{receive()};
        if (heard.starts_with("*-1") || heard.starts_with("_")) {
            return {};
        }
        // *2 CRLF $n CRLF name CRLF $m CRLF value CRLF: five lines.
        while (std::count(heard.begin(), heard.end(), '\n') < 5) {
            heard += receive();
        }
        const auto end = heard.rfind("\r\n");
        const auto begin = heard.rfind('\n', end - 1) + 1;
        return heard.substr(begin, end - begin);
    }

    /// How often clients have sent commands, those within scripts left out.
    std::int64_t commands() {
        const auto stats = text(command({"INFO", "commandstats"}));
        std::int64_t sum = 0;
        for (const std::string_view name :
             {"evalsha", "eval", "subscribe", "unsubscribe", "ping"}) {
            const auto line = "cmdstat_" + std::string{name} + ":calls=";
            if (const auto at = stats.find(line); at != std::string::npos) {
                sum += std::atoll(stats.c_str() + at + line.size());
            }
        }
        return sum;
    }

  private:
    int socket_;
    std::array<char, 65536> bytes_{};
};

}  // namespace dibs::bench
