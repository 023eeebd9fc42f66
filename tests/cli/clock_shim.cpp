// SPDX-License-Identifier: Apache-2.0
// Preloaded into a process: shifts its wall clock, and no other clock, by the seconds that the file
// named by SHIFT_FILE holds at each call.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

long shift() noexcept {
    const char* path = std::getenv("SHIFT_FILE");
    char text[32] = {};
    const int file = path != nullptr ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        (void)!::read(file, text, sizeof text - 1);
        ::close(file);
    }
    return std::atol(text);
}

timespec shifted_now() noexcept {
    timespec now{};
    ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    now.tv_sec += shift();
    return now;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
        *now = shifted_now();
        return 0;
    }
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
    const auto at = shifted_now();
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t* now) noexcept {
    const auto at = shifted_now();
    if (now != nullptr) {
        *now = at.tv_sec;
    }
    return at.tv_sec;
}
}
