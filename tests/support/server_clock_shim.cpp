// SPDX-License-Identifier: Apache-2.0
// Preloaded into a server under test: its calendar is what the test wrote into the file that
// DIBS_SERVER_CLOCK names, microseconds since 1970. Nothing here allocates: it runs before the
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

}  // namespace

extern "C" int gettimeofday(struct timeval* __restrict told, void* __restrict /*zone*/) noexcept {
    const auto* clock = mapped();
    if (clock == nullptr) {
        timespec now{};
        ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
        told->tv_sec = now.tv_sec;
        told->tv_usec = now.tv_nsec / 1000;
        return 0;
    }
    const auto micros = clock->load();
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
    const auto micros = clock->load();
    told->tv_sec = micros / 1'000'000;
    told->tv_nsec = micros % 1'000'000 * 1000;
    return 0;
}
