// SPDX-License-Identifier: Apache-2.0
// One leader, another process that follows at once when it resigns, and an observer who is told of both.
//
// usage: 11_election [STORE-URL]
#include <dibs/dibs.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

using namespace std::chrono_literals;

namespace {

/// Several threads talk here.
void say(const std::string& text) {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    std::cout << text << '\n';
}

/// Remembers the term that was told last.
class notice_board {
  public:
    void note(const dibs::leader_change& change) {
        const std::lock_guard lock(mutex_);
        leads_ = change.leader.has_value();
        term_ = change.term;
        say(leads_ ? "observer: a leader" : "observer: nobody leads");
        bell_.notify_all();
    }
    [[nodiscard]] bool shows(std::uint64_t term) {
        std::unique_lock lock(mutex_);
        return bell_.wait_for(lock, 30s, [&] { return leads_ && term_ == term; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable bell_;
    bool leads_ = false;
    std::uint64_t term_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    const std::string store = argc > 1 ? argv[1] : "memory:example";
    dibs::client host_a{store};
    dibs::client host_b{store};
    dibs::client elsewhere{store};

    notice_board board;
    const auto watching =
        elsewhere.observe("controller",
                          [&board](const dibs::leader_change& change) { board.note(change); },
                          {.every = 20ms});

    auto first = host_a.campaign("controller", {.ttl = 10s});
    std::thread standby([&] {
        const auto second = host_b.campaign("controller", {.ttl = 10s});  // stands by until then
        say(board.shows(second->number()) ? "host b leads, its term is seen"
                                          : "host b leads unseen");
        // Work goes here: until it is done, or second->lost() is requested.
    });
    say(board.shows(first->number()) ? "host a leads, its term is seen" : "host a leads unseen");
    say("host a resigns");
    if (first->resign() != dibs::release_outcome::released) {
        say("host a had lost it");
    }
    standby.join();
    return 0;
}
