// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/actors.hpp"

#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <new>
#include <system_error>
#include <thread>

namespace dibs::cli {

void blackboard::begin() {
    const int now = ++at_work;
    int most = most_at_work.load();
    while (most < now && !most_at_work.compare_exchange_weak(most, now)) {
    }
}

shared_blackboard::shared_blackboard()
    : page_(::mmap(nullptr,
                   sizeof(blackboard),
                   PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS,
                   -1,
                   0)) {
    if (page_ == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), "no shared memory");
    }
    board_ = new (page_) blackboard;
}

shared_blackboard::~shared_blackboard() {
    ::munmap(page_, sizeof(blackboard));
}

void wait_for(const std::atomic<bool>& sign) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{1};
    while (!sign.load()) {
        if (std::chrono::steady_clock::now() > until) {
            throw failure(exit_status::trouble, "the demo got stuck");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
}

actor::actor(const std::function<void()>& play) : process_(::fork()) {
    if (process_ < 0) {
        throw std::system_error(errno, std::generic_category(), "cannot start a process");
    }
    if (process_ == 0) {
        int status = exit_status::ok;
        try {
            play();
        } catch (const reader_gone&) {
            status = exit_status::input_output;
        } catch (const std::exception& fault) {
            say(fault.what());
            status = exit_status::trouble;
        }
        ::_exit(status);
    }
}

actor::~actor() {
    kill();
}

void actor::wait_until_stopped() const {
    if (const int status = wait(WUNTRACED); !WIFSTOPPED(status)) {
        throw failure(exit_status::trouble, "a process of the demo ended instead of stopping");
    }
}

void actor::stop() const {
    ::kill(process_, SIGSTOP);
    wait_until_stopped();
}

bool actor::has_ended() const {
    siginfo_t seen{};
    return ::waitid(P_PID, static_cast<id_t>(process_), &seen, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           seen.si_pid == process_;
}

void actor::go_on() const {
    ::kill(process_, SIGCONT);
}

void actor::kill() {
    if (process_ > 0) {
        ::kill(process_, SIGKILL);
        (void)wait(0);
        process_ = -1;
    }
}

void actor::join() {
    if (!survived()) {
        throw failure(exit_status::trouble, "a process of the demo was killed");
    }
}

bool actor::survived() {
    const int status = wait(0);
    process_ = -1;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        return false;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        throw failure(exit_status::trouble, "a process of the demo could not do its part");
    }
    return true;
}

int actor::wait(int how) const {
    int status = 0;
    while (::waitpid(process_, &status, how) < 0 && errno == EINTR) {
    }
    return status;
}

}  // namespace dibs::cli
