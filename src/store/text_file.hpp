// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small files of the kernel's. Close-on-exec, which a standard stream is not: another thread of the
// application may start a program meanwhile.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace dibs::store {

struct text_file {
    std::string text;
    int trouble = 0;  ///< errno; 0: `text` is all of it
};

[[nodiscard]] inline text_file read_text_file(const char* path) {
    text_file found;
    const int opened = ::open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0) {
        found.trouble = errno;
        return found;
    }
    std::array<char, 4096> bytes;
    ssize_t got = 0;
    while ((got = ::read(opened, bytes.data(), bytes.size())) != 0) {
        if (got > 0) {
            found.text.append(bytes.data(), static_cast<std::size_t>(got));
        } else if (errno != EINTR) {
            found.trouble = errno;
            break;
        }
    }
    ::close(opened);
    return found;
}

}  // namespace dibs::store
