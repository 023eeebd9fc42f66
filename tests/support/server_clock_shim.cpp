// SPDX-License-Identifier: Apache-2.0
// Preloaded into a server under test: its calendar is what the test wrote into the file that
// DIBS_SERVER_CLOCK names, microseconds since 1970; if DIBS_SERVER_CLOCK_RUNS is set, that many more
// than the time of this host. Nothing here allocates: it runs before the
// server's allocator does.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

const std::atomic<std::int64_t>* mapped() noexcept {
    static const std::atomic<std::int64_t>* clock = [] {
        const char* path = std::getenv("DIBS_SERVER_CLOCK");
        const int opened = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
        if (opened < 0) {
            return static_cast<const std::atomic<std::int64_t>*>(nullptr);
        }
        void* place = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, opened, 0);
        ::close(opened);
        return place == MAP_FAILED ? nullptr : static_cast<const std::atomic<std::int64_t>*>(place);
    }();
    return clock;
}

std::int64_t host_micros() noexcept {
    timespec now{};
    ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

std::int64_t micros_of(const std::atomic<std::int64_t>& clock) noexcept {
    static const bool runs = [] {
        const char* wish = std::getenv("DIBS_SERVER_CLOCK_RUNS");
        return wish != nullptr && *wish != '\0';
    }();
    return clock.load() + (runs ? host_micros() : 0);
}

}  // namespace

extern "C" int gettimeofday(struct timeval* __restrict told, void* __restrict /*zone*/) noexcept {
    const auto* clock = mapped();
    if (clock == nullptr) {
        const auto micros = host_micros();
        told->tv_sec = micros / 1'000'000;
        told->tv_usec = micros % 1'000'000;
        return 0;
    }
    const auto micros = micros_of(*clock);
    told->tv_sec = micros / 1'000'000;
    told->tv_usec = micros % 1'000'000;
    return 0;
}

extern "C" time_t time(time_t* told) noexcept {
    timeval now{};
    gettimeofday(&now, nullptr);
    if (told != nullptr) {
        *told = now.tv_sec;
    }
    return now.tv_sec;
}

extern "C" int clock_gettime(clockid_t which, struct timespec* told) noexcept {
    const auto* clock = which == CLOCK_REALTIME ? mapped() : nullptr;
    if (clock == nullptr) {
        return static_cast<int>(::syscall(SYS_clock_gettime, which, told));
    }
    const auto micros = micros_of(*clock);
    told->tv_sec = micros / 1'000'000;
    told->tv_nsec = micros % 1'000'000 * 1000;
    return 0;
}
