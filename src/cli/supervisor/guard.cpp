// SPDX-License-Identifier: Apache-2.0
#include "cli/supervisor/guard.hpp"

#include "cli/supervisor/boot_time.hpp"
#include "cli/supervisor/process_group.hpp"
#include "cli/supervisor/signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>

namespace dibs::cli {

namespace {

using core::instant;
using core::milliseconds;

/// How much later than a healthy wrapper the guard acts, so that a child gets TERM once. Well
/// within the margin that the stopper keeps before the deadline.
constexpr auto lag = milliseconds{50};

/// After KILL: how often to look whether the group is gone.
constexpr auto look_again = milliseconds{100};

struct registration {
    pid_t process;
    pid_t session;
};

instant moment(std::int64_t boottime_ns) noexcept {
    return instant{core::nanoseconds{boottime_ns}};
}

/// Everything from `first` on. close_range is 5.9; before that, one by one.
void close_from(int first, int keep) noexcept {
    if (keep > first) {
        (void)::syscall(SYS_close_range, first, keep - 1, 0);
    }
    const int after = std::max(first, keep + 1);
    if (::syscall(SYS_close_range, after, ~0U, 0) != 0) {
        const long open_max = ::sysconf(_SC_OPEN_MAX);
        for (long descriptor = first; descriptor < open_max; ++descriptor) {
            if (descriptor != keep) {
                ::close(static_cast<int>(descriptor));
            }
        }
    }
}

/// The life of the guard. No allocation and no exception: it is a copy of a process that may grow
/// large later, and must get by when memory is short.
class watch {
  public:
    watch(int socket, const guard_page& page, core::nanoseconds grace) noexcept
        : socket_(socket),
          page_(page),
          timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
          stop_({.grace = grace}, never) {}

    void run() noexcept {
        while (!finished_) {
            act();
            if (!finished_) {
                wait();
            }
        }
    }

  private:
    void act() noexcept {
        if (page_.over.load()) {
            finished_ = true;
            return;
        }
        if (group_.id() < 0) {
            finished_ = wrapper_gone_;
            return;
        }
        if (const auto deadline = page_.deadline_ns.load(); deadline != 0) {
            stop_.deadline_is(moment(deadline) + lag);
        }
        if (const auto kill_at = page_.kill_ns.load(); kill_at != 0) {
            stop_.terminated_by_other(moment(kill_at) + lag);
        }
        for (auto action = stop_.next(boot_now()); action != stop_action::none;
             action = stop_.next(boot_now())) {
            if (action == stop_action::terminate) {
                group_.signal(SIGTERM);
                group_.signal(SIGCONT);  // a stopped process does not see TERM
            } else {
                group_.signal(SIGKILL);
            }
        }
        // A living wrapper tells when it is over. After KILL what is left of the group may be
        // zombies that nobody reaps, and watching them is of no use.
        finished_ = wrapper_gone_ && (stop_.killed() || !group_.signal(0));
    }

    void wait() noexcept {
        auto wake = stop_.wake_at();
        if (wrapper_gone_ && group_.id() >= 0) {
            wake = std::min(wake, boot_now() + look_again);
        }
        itimerspec alarm{};
        if (wake != never && group_.id() >= 0) {
            alarm.it_value = as_timespec(std::max(wake, instant{core::nanoseconds{1}}));
        }
        ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &alarm, nullptr);
        std::array<pollfd, 2> ready{pollfd{timer_, POLLIN, 0},
                                    pollfd{wrapper_gone_ ? -1 : socket_, POLLIN, 0}};
        if (::poll(ready.data(), ready.size(), -1) > 0 && ready[1].revents != 0) {
            receive();
        }
    }

    void receive() noexcept {
        registration said{};
        iovec part{&said, sizeof said};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = space.data();
        message.msg_controllen = space.size();
        const auto got = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            wrapper_gone_ = true;
            stop_.wrapper_gone();
            return;
        }
        if (got != static_cast<ssize_t>(sizeof said)) {
            return;  // a nudge: the page has changed
        }
        int leader = -1;
        if (const auto* header = CMSG_FIRSTHDR(&message);
            header != nullptr && header->cmsg_type == SCM_RIGHTS) {
            std::memcpy(&leader, CMSG_DATA(header), sizeof leader);
        }
        group_ = process_group{said.process, said.session, leader};
    }

    int socket_;
    const guard_page& page_;
    int timer_;
    stopper stop_;
    process_group group_;
    bool wrapper_gone_ = false;
    bool finished_ = false;
};

[[noreturn]] void live_as_guard(int socket,
                                const guard_page& page,
                                core::nanoseconds grace) noexcept {
    ::setsid();
    ::prctl(PR_SET_NAME, "dibs-guard");
    // Signals are for the wrapper, which tells when it is over; they are blocked since before the
    // fork.
    if (::chdir("/") != 0) {
        // It then keeps the caller's directory busy, which is a nuisance and nothing more.
    }
    close_from(0, socket);
    watch(socket, page, grace).run();
    ::_exit(0);
}

}  // namespace

guard::guard(core::nanoseconds grace) {
    void* memory = ::mmap(
        nullptr, sizeof(guard_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), "cannot map the guard's page");
    }
    page_ = ::new (memory) guard_page;
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        const int error = errno;
        ::munmap(memory, sizeof(guard_page));
        throw std::system_error(error, std::generic_category(), "cannot open the guard's socket");
    }
    socket_ = ends[0];
    process_ = ::fork();
    if (process_ == 0) {
        ::close(ends[0]);
        live_as_guard(ends[1], *page_, grace);
    }
    const int error = errno;
    ::close(ends[1]);
    if (process_ < 0) {
        ::close(socket_);
        ::munmap(memory, sizeof(guard_page));
        throw std::system_error(error, std::generic_category(), "cannot start the guard process");
    }
}

guard::~guard() {
    page_->over.store(true);
    ::close(socket_);
    if (process_ > 0) {
        // It may be stopped, and nobody should have to wait for it: it has nothing left to do.
        ::kill(process_, SIGKILL);
        while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    ::munmap(page_, sizeof(guard_page));
}

void guard::stopping(core::instant kill_at) noexcept {
    page_->kill_ns.store(kill_at.time_since_epoch().count());
    const char nudge = 0;
    (void)::send(socket_, &nudge, sizeof nudge, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool register_with_guard(int socket) noexcept {
    registration saying{::getpid(), ::getsid(0)};
    const int self = open_pidfd(saying.process);
    iovec part{&saying, sizeof saying};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (self >= 0) {
        message.msg_control = space.data();
        message.msg_controllen = space.size();
        auto* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof self);
        std::memcpy(CMSG_DATA(header), &self, sizeof self);
    }
    const auto sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (self >= 0) {
        ::close(self);
    }
    return sent == static_cast<ssize_t>(sizeof saying);
}

}  // namespace dibs::cli
