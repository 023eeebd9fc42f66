// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/listener.hpp"

#include "store/library_thread.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace dibs::store::sqlite {

failure listener::start() {
    const std::lock_guard guard{lock_};
    if (thread_.joinable()) {
        return {};
    }
    if (!socket_) {
        if (auto trouble = folder_.bind_wake(socket_); trouble) {
            return trouble;
        }
    }
    nudge_ = file_descriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!nudge_) {
        return translate_errno(errno, "an event descriptor cannot be made");
    }
    try {
        thread_ = library_thread([self = shared_from_this()] { self->listen(); });
    } catch (const std::system_error& error) {
        return translate_errno(error.code().value(), "a thread cannot be started");
    }
    return {};
}

bool listener::look_out(const std::string& key, const std::vector<process_id>& processes) {
    bool dead_already = false;
    {
        const std::lock_guard guard{lock_};
        const auto old = by_key_.find(key);
        if (old != by_key_.end()) {
            for (const auto& process : old->second) {
                const auto one = watched_.find(process);
                if (one != watched_.end() && one->second.keys.erase(key) != 0 &&
                    one->second.keys.empty()) {
                    retired_.push_back(std::move(one->second.read_end));
                    watched_.erase(one);
                }
            }
            by_key_.erase(old);
        }
        for (const auto& process : processes) {
            auto one = watched_.find(process);
            if (one == watched_.end()) {
                bool dead = false;
                auto opened = folder_.watch(process, dead);
                dead_already = dead_already || dead;
                if (dead || !opened) {
                    continue;
                }
                one = watched_.emplace(process, watched{std::move(opened), {}}).first;
            }
            one->second.keys.insert(key);
            by_key_[key].push_back(process);
        }
    }
    nudge();
    return dead_already;
}

void listener::nudge() const {
    if (nudge_) {
        const std::uint64_t one = 1;
        static_cast<void>(!::write(nudge_.get(), &one, sizeof one));
    }
}

void listener::stop() {
    {
        const std::lock_guard guard{lock_};
        stopping_ = true;
    }
    nudge();
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();  // it is telling somebody what it heard, and ends after that
    } else if (thread_.joinable()) {
        thread_.join();
    }
}

void listener::abandon() {
    if (thread_.joinable()) {
        thread_.detach();
    }
}

void listener::listen() {
    std::vector<pollfd> polled;
    for (;;) {
        polled.assign({{nudge_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}});
        {
            const std::lock_guard guard{lock_};
            if (stopping_) {
                return;
            }
            retired_.clear();
            for (const auto& [process, one] : watched_) {
                polled.push_back({one.read_end.get(), 0, 0});  // POLLHUP comes unasked
            }
        }
        if (::poll(polled.data(), polled.size(), -1) < 0) {
            continue;  // EINTR, or out of memory for a moment
        }
        if (polled[0].revents != 0) {
            std::uint64_t ignored = 0;
            static_cast<void>(!::read(nudge_.get(), &ignored, sizeof ignored));
        }
        if (polled[1].revents != 0) {
            hear_messages();
        }
        for (std::size_t at = 2; at < polled.size(); ++at) {
            if ((polled[at].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
                hear_death(polled[at].fd);
            }
        }
    }
}

void listener::hear(std::string key) {
    {
        const std::lock_guard guard{lock_};
        if (stopping_) {
            return;
        }
    }
    heard_(std::move(key));
}

void listener::hear_messages() {
    std::array<char, 8192> message;
    for (;;) {
        const auto got = ::recv(socket_.get(), message.data(), message.size(), 0);
        if (got < 0) {
            return;
        }
        hear(std::string{message.data(), static_cast<std::size_t>(got)});
    }
}

void listener::hear_death(int number) {
    std::set<std::string> keys;
    {
        const std::lock_guard guard{lock_};
        for (auto one = watched_.begin(); one != watched_.end(); ++one) {
            if (one->second.read_end.get() == number) {
                keys = std::move(one->second.keys);
                for (const auto& key : keys) {
                    std::erase(by_key_[key], one->first);
                }
                watched_.erase(one);
                break;
            }
        }
    }
    for (const auto& key : keys) {
        hear(key);
    }
}

}  // namespace dibs::store::sqlite
