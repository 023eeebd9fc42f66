// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread of the library's own. Signals are for the application's threads: a handler of theirs must
// not run here, and a signal that they wait for must not end up here.

#include <signal.h>

#include <thread>
#include <utility>

namespace dibs::store {

/// Errors: std::system_error, as std::thread.
template <typename Work>
[[nodiscard]] std::thread library_thread(Work&& work) {
    // A new thread has the mask of the one that starts it.
    class signals_blocked {
      public:
        signals_blocked() noexcept {
            sigset_t all;
            ::sigfillset(&all);
            ::pthread_sigmask(SIG_SETMASK, &all, &before_);
        }
        ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
        signals_blocked(const signals_blocked&) = delete;
        signals_blocked& operator=(const signals_blocked&) = delete;

      private:
        sigset_t before_{};
    };
    const signals_blocked meanwhile;
    return std::thread{std::forward<Work>(work)};
}

}  // namespace dibs::store
