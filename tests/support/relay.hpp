// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stands between a client and a server, on a port of 127.0.0.1 of its own, and does to their words
// what networks do: swallows one direction, holds it back, cuts in the middle of a message, lets it
// through byte by byte, or answers with something else.
//
// Thread safety: all members but the destructor from any thread.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dibs::testing {

class relay {
  public:
    using clock = std::chrono::steady_clock;

    /// What happens to the bytes of one direction.
    struct fate {
        bool drops = false;  ///< read, and never passed on
        bool byte_by_byte = false;
        clock::duration delay{};
        std::string instead{};  ///< passed on instead of what came, once per piece
        /// Of requests: once one of a connection holds this text, no reply comes back on it.
        std::string mutes{};
        std::int64_t cut_after = -1;  ///< resets both sides once so many bytes went through
    };

    /// To a server that listens on a socket in the file system, or on this port of 127.0.0.1.
    explicit relay(std::string upstream) : upstream_{std::move(upstream)} {
        listen();
        bell_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        thread_ = std::jthread{[this](const std::stop_token& stop) { work(stop); }};
    }
    relay(const relay&) = delete;
    relay& operator=(const relay&) = delete;
    ~relay() {
        thread_.request_stop();
        ring();
        thread_.join();
        for (auto& one : pairs_) {
            close(one, false);
        }
        ::close(listener_);
        ::close(bell_);
    }

    [[nodiscard]] int port() const noexcept { return port_; }
    [[nodiscard]] std::string url(const std::string& options = "") const {
        return "redis://127.0.0.1:" + std::to_string(port_) + options;
    }

    /// New connections go to another server.
    void lead_to(std::string upstream) {
        const std::lock_guard held{lock_};
        upstream_ = std::move(upstream);
    }
    void requests(fate what) { set(0, std::move(what)); }
    void replies(fate what) { set(1, std::move(what)); }
    /// Everything is passed on again, what was held back too. A connection of which something was
    /// dropped stays dumb, since nobody would find the beginning of the next message in it.
    void heal() {
        {
            const std::lock_guard held{lock_};
            fates_[0] = {};
            fates_[1] = {};
            accepts_ = true;
        }
        ring();
    }
    /// Connections are made, but no byte goes anywhere, also not to the server.
    void swallow_all() {
        const fate gone{.drops = true};
        requests(gone);
        replies(gone);
    }
    /// Resets every connection. `refuse`: also those that come until heal().
    void cut(bool refuse = false) {
        {
            const std::lock_guard held{lock_};
            accepts_ = !refuse;
            for (auto& one : pairs_) {
                one.doomed = true;
            }
        }
        ring();
    }

    /// Nothing is held back any more.
    [[nodiscard]] bool idle() {
        const std::lock_guard held{lock_};
        return std::all_of(pairs_.begin(), pairs_.end(), [](const auto& one) {
            return one.under_way[0].empty() && one.under_way[1].empty();
        });
    }
    /// Made by clients so far, refused ones included.
    [[nodiscard]] int connections() const noexcept { return connections_; }

  private:
    struct piece {
        std::string bytes;
        clock::time_point due{};
    };
    struct connection {
        int ends[2] = {-1, -1};          ///< client, server
        std::deque<piece> under_way[2];  ///< to the server, to the client
        bool over[2] = {false, false};   ///< that end sends no more
        bool torn[2] = {false, false};   ///< something of that direction was dropped
        bool doomed = false;
    };

    void listen() {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        if (::bind(listener_, reinterpret_cast<const sockaddr*>(&at), size) != 0 ||
            ::listen(listener_, 64) != 0 ||
            ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
            throw std::runtime_error{"the relay has no port"};
        }
        port_ = ntohs(at.sin_port);
    }
    void set(int direction, fate what) {
        {
            const std::lock_guard held{lock_};
            fates_[direction] = std::move(what);
        }
        ring();
    }
    void ring() {
        const std::uint64_t one = 1;
        static_cast<void>(::write(bell_, &one, sizeof one) == sizeof one);
    }

    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::unique_lock held{lock_};
            std::vector<pollfd> waited{{bell_, POLLIN, 0}, {listener_, POLLIN, 0}};
            auto wake = clock::now() + std::chrono::hours{1};
            for (auto& one : pairs_) {
                for (int end = 0; end < 2; ++end) {
                    waited.push_back({one.over[end] ? -1 : one.ends[end], POLLIN, 0});
                    if (!one.under_way[end].empty()) {
                        wake = std::min(wake, one.under_way[end].front().due);
                    }
                }
            }
            held.unlock();
            const auto longest = std::chrono::ceil<std::chrono::milliseconds>(wake - clock::now());
            ::poll(waited.data(),
                   waited.size(),
                   static_cast<int>(std::max<std::int64_t>(longest.count(), 0)));
            held.lock();
            std::uint64_t rung = 0;
            static_cast<void>(::read(bell_, &rung, sizeof rung) == sizeof rung);
            std::size_t at = 2;
            for (auto& one : pairs_) {
                for (int end = 0; end < 2; ++end, ++at) {
                    if (waited[at].revents != 0 && !one.over[end]) {
                        take(one, end);
                    }
                }
            }
            for (auto& one : pairs_) {
                pass_on(one, 0);
                pass_on(one, 1);
            }
            pairs_.remove_if([this](auto& one) {
                const bool ended = one.over[0] || one.over[1];
                const bool rest = !one.under_way[0].empty() || !one.under_way[1].empty();
                if (!one.doomed && (!ended || rest)) {
                    return false;
                }
                close(one, one.doomed);
                return true;
            });
            if ((waited[1].revents & POLLIN) != 0) {
                accept();
            }
        }
    }
    void accept() {
        const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client < 0) {
            return;
        }
        connection made;
        made.ends[0] = client;
        const bool reached = reach(made.ends[1]);
        ::fcntl(made.ends[1], F_SETFL, O_NONBLOCK);
        const int on = 1;
        ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        ++connections_;
        if (!reached || !accepts_) {
            close(made, true);
            return;
        }
        pairs_.push_back(std::move(made));
    }
    [[nodiscard]] bool reach(int& end) const {
        if (!upstream_.starts_with('/')) {
            end = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            sockaddr_in at{};
            at.sin_family = AF_INET;
            at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(upstream_)));
            return ::connect(end, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
        }
        end = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        std::memcpy(
            at.sun_path, upstream_.data(), std::min(upstream_.size(), sizeof at.sun_path - 1));
        return ::connect(end, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    }
    void take(connection& one, int from) {
        char bytes[65536];
        const auto got = ::recv(one.ends[from], bytes, sizeof bytes, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got <= 0) {
            one.over[from] = true;
            return;
        }
        const auto& rule = fates_[from];
        one.torn[from] = one.torn[from] || rule.drops;
        if (one.torn[from]) {
            return;
        }
        std::string all{bytes, static_cast<std::size_t>(got)};
        if (!rule.mutes.empty() && all.find(rule.mutes) != std::string::npos) {
            one.torn[1] = true;
        }
        if (!rule.instead.empty()) {
            all = rule.instead;
        }
        const auto due = clock::now() + rule.delay;
        if (!rule.byte_by_byte) {
            one.under_way[from].push_back({std::move(all), due});
            return;
        }
        for (std::size_t at = 0; at < all.size(); ++at) {
            one.under_way[from].push_back({all.substr(at, 1), due});
        }
    }
    void pass_on(connection& one, int from) {
        auto& rule = fates_[from];
        auto& line = one.under_way[from];
        while (!line.empty() && line.front().due <= clock::now() && !one.doomed) {
            auto& bytes = line.front().bytes;
            auto size = bytes.size();
            if (rule.cut_after >= 0) {
                size = std::min(size, static_cast<std::size_t>(rule.cut_after));
            }
            const auto sent =
                size == 0 ? 0 : ::send(one.ends[1 - from], bytes.data(), size, MSG_NOSIGNAL);
            if (sent < 0 && errno == EAGAIN) {
                // Once there is room: looked after again soon.
                line.front().due = clock::now() + std::chrono::milliseconds{1};
                return;
            }
            if (sent < 0) {
                one.over[1 - from] = true;
                line.clear();
                return;
            }
            if (rule.cut_after >= 0) {
                rule.cut_after -= sent;
                one.doomed = rule.cut_after == 0;
            }
            bytes.erase(0, static_cast<std::size_t>(sent));
            if (!bytes.empty()) {
                continue;
            }
            line.pop_front();
        }
    }
    /// `hard`: by a reset, as when a host is gone, instead of in good order.
    static void close(connection& one, bool hard) {
        for (const int end : one.ends) {
            const linger at_once{1, 0};
            if (hard) {
                ::setsockopt(end, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            }
            ::close(end);
        }
    }

    std::string upstream_;
    int listener_ = -1;
    int bell_ = -1;
    int port_ = 0;
    std::mutex lock_;
    bool accepts_ = true;
    fate fates_[2];
    std::list<connection> pairs_;
    std::atomic<int> connections_ = 0;
    std::jthread thread_;
};

}  // namespace dibs::testing
