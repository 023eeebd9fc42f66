// SPDX-License-Identifier: Apache-2.0
// A child whose behaviour the tests choose.
//
//   beat FILE [stubborn] [leave]   writes "FENCE BOOTTIME_NS PID" every 5 ms; `stubborn` ignores
//   TERM, `leave` moves to
//                                  a session of its own
//   descriptors                    prints its open descriptors and what they are
//   signals FILE                   writes the number of each signal that it gets; ends by TERM on
//   USR2 state                          prints the masks of blocked and ignored signals, group and
//   session sleepy MS                      on INT, needs so long to clean up, then exits with 130
//   read                           prints a line that it read from the terminal
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>

namespace {

int append_to(const char* path) {
    return ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

[[noreturn]] void beat(int count, char** words) {
    for (int index = 3; index < count; ++index) {
        if (std::string_view(words[index]) == "stubborn") {
            std::signal(SIGTERM, SIG_IGN);
        } else if (std::string_view(words[index]) == "leave" && ::setsid() < 0) {
            // A group leader cannot; its child can.
            if (::fork() != 0) {
                ::pause();
            }
            ::setsid();
        }
    }
    const int file = append_to(words[2]);
    const char* fence = std::getenv("DIBS_FENCE");
    while (true) {
        timespec now{};
        ::clock_gettime(CLOCK_BOOTTIME, &now);
        std::array<char, 96> line{};
        const int length =
            std::snprintf(line.data(),
                          line.size(),
                          "%s %lld %d\n",
                          fence != nullptr ? fence : "0",
                          static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec,
                          static_cast<int>(::getpid()));
        (void)!::write(file, line.data(), static_cast<std::size_t>(length));
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}

int descriptors() {
    DIR* open = ::opendir("/proc/self/fd");
    const int own = ::dirfd(open);
    while (const dirent* entry = ::readdir(open)) {
        if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != own) {
            std::array<char, 256> target{};
            (void)!::readlinkat(own, entry->d_name, target.data(), target.size() - 1);
            std::printf("%s %s\n", entry->d_name, target.data());
        }
    }
    ::closedir(open);
    return 0;
}

int signals(const char* path) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    const int file = append_to(path);
    (void)!::write(file, "ready\n", 6);
    while (true) {
        int number = 0;
        ::sigwait(&all, &number);
        const std::string line = std::to_string(number) + "\n";
        (void)!::write(file, line.data(), line.size());
        if (number == SIGUSR2) {
            return 0;
        }
    }
}

int state() {
    FILE* status = std::fopen("/proc/self/status", "r");
    std::array<char, 256> line{};
    while (std::fgets(line.data(), line.size(), status) != nullptr) {
        if (std::strncmp(line.data(), "SigBlk", 6) == 0 ||
            std::strncmp(line.data(), "SigIgn", 6) == 0) {
            std::fputs(line.data(), stdout);
        }
    }
    std::printf("pid %d group %d session %d\n", ::getpid(), ::getpgrp(), ::getsid(0));
    return 0;
}

int sleepy(int ms) {
    sigset_t interrupt;
    ::sigemptyset(&interrupt);
    ::sigaddset(&interrupt, SIGINT);
    ::sigprocmask(SIG_BLOCK, &interrupt, nullptr);
    std::puts("ready");
    std::fflush(stdout);
    int number = 0;
    ::sigwait(&interrupt, &number);
    std::puts("cleaning");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds{ms});
    timespec none{};
    std::puts(::sigtimedwait(&interrupt, nullptr, &none) == SIGINT ? "interrupted twice" : "clean");
    return 130;
}

int read_line() {
    std::array<char, 128> line{};
    if (std::fgets(line.data(), line.size(), stdin) == nullptr) {
        return 1;
    }
    std::printf("read: %s", line.data());
    return 0;
}

}  // namespace

int main(int count, char** words) {
    const std::string_view what = count > 1 ? words[1] : "";
    if (what == "beat" && count > 2) {
        beat(count, words);
    }
    if (what == "descriptors") {
        return descriptors();
    }
    if (what == "signals" && count > 2) {
        return signals(words[2]);
    }
    if (what == "state") {
        return state();
    }
    if (what == "sleepy" && count > 2) {
        return sleepy(std::atoi(words[2]));
    }
    if (what == "read") {
        return read_line();
    }
    return 99;
}
