// SPDX-License-Identifier: Apache-2.0
#include "cli/supervisor/terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace dibs::cli {

terminal::terminal() noexcept : descriptor_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

terminal::~terminal() {
    take_back();
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

bool terminal::is_ours() const noexcept {
    return exists() && ::tcgetpgrp(descriptor_) == ::getpgrp();
}

bool terminal::give_to(pid_t group) noexcept {
    if (!exists() || ::tcsetpgrp(descriptor_, group) != 0) {
        return false;
    }
    given_to_ = group;
    return true;
}

void terminal::take_back() noexcept {
    // SIGTTOU is blocked, so that a wrapper in the background may do this.
    if (given_to_ > 0) {
        const pid_t now = ::tcgetpgrp(descriptor_);
        if (now == given_to_ || now < 0 || ::getpgid(now) < 0) {
            ::tcsetpgrp(descriptor_, ::getpgrp());
        }
        given_to_ = -1;
    }
}

}  // namespace dibs::cli
