// SPDX-License-Identifier: Apache-2.0
#include "cli/capture/captured_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace dibs::cli {

captured_output::captured_output(std::size_t bytes_max)
    : bytes_max_(bytes_max), over_(::eventfd(0, EFD_CLOEXEC)) {
    std::array<int, 2> ends{};
    if (over_.get() < 0 || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "no pipe for the command's output");
    }
    reader_ = store::file_descriptor{ends[0]};
    writer_ = store::file_descriptor{ends[1]};
    ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    thread_ = std::thread([this] { read_all(); });
}

captured_output::~captured_output() {
    (void)finish();
}

captured_output::text captured_output::finish() {
    if (thread_.joinable()) {
        writer_ = store::file_descriptor{};
        const std::uint64_t one = 1;
        while (::write(over_.get(), &one, sizeof one) < 0 && errno == EINTR) {
        }
        thread_.join();
    }
    return std::exchange(text_, {});
}

void captured_output::read_all() {
    std::array<pollfd, 2> wanted{{{.fd = reader_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = over_.get(), .events = POLLIN, .revents = 0}}};
    for (;;) {
        if (::poll(wanted.data(), wanted.size(), -1) < 0) {
            if (errno == EINTR) {
                continue;
            }
            return;
        }
        const bool over = wanted[1].revents != 0;
        take_what_is_there();
        if (over) {
            return;
        }
        if ((wanted[0].revents & (POLLHUP | POLLERR)) != 0) {
            wanted[0].fd = -1;  // nobody can write any more
        }
    }
}

void captured_output::take_what_is_there() {
    std::array<char, 16384> piece{};
    for (;;) {
        const auto got = ::read(reader_.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return;
        }
        const auto room = bytes_max_ - text_.bytes.size();
        text_.too_long = text_.too_long || static_cast<std::size_t>(got) > room;
        text_.bytes.append(piece.data(), std::min(static_cast<std::size_t>(got), room));
    }
}

}  // namespace dibs::cli
