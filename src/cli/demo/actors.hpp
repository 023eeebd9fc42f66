// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processes of a demo, and what they know of each other.

#include <sys/types.h>

#include <atomic>
#include <functional>

namespace dibs::cli {

/// Shared memory, so that nothing needs a clock of its own to be compared.
struct blackboard {
    std::atomic<int> at_work{0};
    std::atomic<int> most_at_work{0};
    std::atomic<bool> first_has_it{false};
    std::atomic<bool> second_has_it{false};
    std::atomic<bool> first_has_left{false};
    std::atomic<bool> third_has_tried{false};
    std::atomic<bool> refused{false};

    void begin();
    void end() { --at_work; }
};

class shared_blackboard {
  public:
    shared_blackboard();
    ~shared_blackboard();
    shared_blackboard(const shared_blackboard&) = delete;
    shared_blackboard& operator=(const shared_blackboard&) = delete;
    [[nodiscard]] blackboard* operator->() const noexcept { return board_; }

  private:
    void* page_;
    blackboard* board_;
};

/// Errors: failure, after a minute.
void wait_for(const std::atomic<bool>& sign);

/// A process of its own. The parent of a demo has one thread and no client, so that it may fork.
class actor {
  public:
    explicit actor(const std::function<void()>& play);
    ~actor();
    actor(const actor&) = delete;
    actor& operator=(const actor&) = delete;

    void wait_until_stopped() const;
    void stop() const;
    [[nodiscard]] bool has_ended() const;
    void go_on() const;
    /// By KILL: it can do nothing about it.
    void kill();
    void join();
    /// As join, but false when it was killed by KILL.
    [[nodiscard]] bool survived();

  private:
    [[nodiscard]] int wait(int how) const;
    pid_t process_;
};

}  // namespace dibs::cli
