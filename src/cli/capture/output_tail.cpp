// SPDX-License-Identifier: Apache-2.0
#include "cli/capture/output_tail.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <system_error>
#include <utility>

namespace dibs::cli {

namespace {

/// Once the command has ended: of what is left in a pipe, and of a reader who does not read.
constexpr std::size_t rest_most = std::size_t{1} << 20;
constexpr int reader_patience_ms = 2'000;

bool readable(int from, int patience_ms) noexcept {
    pollfd wanted{from, POLLIN, 0};
    return ::poll(&wanted, 1, patience_ms) > 0;
}

}  // namespace

output_tail::output_tail(std::size_t most) : most_(most) {
    const std::array onward{STDOUT_FILENO, STDERR_FILENO};
    for (std::size_t at = 0; at < streams_.size(); ++at) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
            throw std::system_error(errno, std::generic_category(), "no pipe for the output");
        }
        streams_[at].reader = store::file_descriptor{ends[0]};
        streams_[at].writer = store::file_descriptor{ends[1]};
        streams_[at].onward = onward[at];
    }
    finishing_ = store::file_descriptor{::eventfd(0, EFD_CLOEXEC)};
    if (finishing_.get() < 0) {
        throw std::system_error(errno, std::generic_category(), "cannot open a descriptor");
    }
    thread_ = std::thread([this] { copy(); });
}

output_tail::~output_tail() {
    (void)finish();
}

std::string output_tail::finish() {
    if (thread_.joinable()) {
        for (auto& one : streams_) {
            const store::file_descriptor closed = std::move(one.writer);
        }
        const std::uint64_t count = 1;
        (void)!::write(finishing_.get(), &count, sizeof count);
        thread_.join();
    }
    // Not in the middle of a character.
    const auto whole = std::find_if(kept_.begin(), kept_.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
    });
    return kept_.size() < most_ ? kept_ : std::string(whole, kept_.end());
}

bool output_tail::told_to_finish() const noexcept {
    return readable(finishing_.get(), 0);
}

void output_tail::copy() noexcept {
    std::array<bool, 2> open{true, true};
    while (open[0] || open[1]) {
        std::array<pollfd, 3> wanted{pollfd{open[0] ? streams_[0].reader.get() : -1, POLLIN, 0},
                                     pollfd{open[1] ? streams_[1].reader.get() : -1, POLLIN, 0},
                                     pollfd{finishing_.get(), POLLIN, 0}};
        if (::poll(wanted.data(), wanted.size(), -1) < 0) {
            continue;
        }
        for (std::size_t at = 0; at < open.size(); ++at) {
            if (wanted[at].revents != 0) {
                open[at] = pass(streams_[at]);
            }
        }
        if (wanted[2].revents != 0) {
            break;
        }
    }
    for (std::size_t at = 0; at < open.size(); ++at) {
        for (std::size_t passed = 0;
             open[at] && passed < rest_most && readable(streams_[at].reader.get(), 0);
             passed += 4096) {
            open[at] = pass(streams_[at]);
        }
    }
}

/// False: nobody writes there any more, or nobody reads what is passed on: then the command is told as it would be without
/// this, by SIGPIPE.
bool output_tail::pass(stream& from) noexcept {
    std::array<char, 4096> piece{};
    const auto got = ::read(from.reader.get(), piece.data(), piece.size());
    if (got < 0) {
        return errno == EINTR || errno == EAGAIN;
    }
    if (got == 0) {
        return false;
    }
    const auto length = static_cast<std::size_t>(got);
    kept_.append(piece.data(), length);
    if (kept_.size() > most_) {
        kept_.erase(0, kept_.size() - most_);
    }
    if (!write_all(from.onward, piece.data(), length)) {
        from.reader = {};
        return false;
    }
    return true;
}

bool output_tail::write_all(int to, const char* text, std::size_t length) noexcept {
    while (length > 0) {
        std::array<pollfd, 2> wanted{pollfd{to, POLLOUT, 0}, pollfd{finishing_.get(), POLLIN, 0}};
        if (told_to_finish()) {
            wanted[1].fd = -1;
            if (::poll(wanted.data(), wanted.size(), reader_patience_ms) == 0) {
                return true;  // nobody reads, and the command has ended
            }
        } else if (::poll(wanted.data(), wanted.size(), -1) < 0 || wanted[0].revents == 0) {
            continue;
        }
        const auto written = ::write(to, text, std::min<std::size_t>(length, PIPE_BUF));
        if (written < 0) {
            if (errno == EINTR || errno == EAGAIN) {
                continue;
            }
            return errno != EPIPE;
        }
        text += written;
        length -= static_cast<std::size_t>(written);
    }
    return true;
}

}  // namespace dibs::cli
