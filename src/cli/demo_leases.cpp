// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_leases.hpp"

#include "cli/exit_status.hpp"
#include "cli/failure.hpp"
#include "cli/json.hpp"
#include "cli/speech.hpp"
#include "cli/store_access.hpp"
#include "store/sqlite/plain_sql.hpp"

#include <dibs/dibs.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <system_error>
#include <thread>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;
using store::sqlite::plain_sql;

void tell(const std::string& who, const std::string& what) {
    deliver("  " + show_instant(std::chrono::system_clock::now()) + "  " + who + "  " + what +
            "\n");
}

std::string seconds_of(milliseconds length) {
    const auto tenths = length.count() / 100;
    return std::to_string(tenths / 10) +
           (tenths % 10 != 0 ? "." + std::to_string(tenths % 10) : "") + " s";
}

/// Of one round of a demo, below the folder of the whole.
class scratch_folder {
  public:
    explicit scratch_folder(const std::string& below) : path_(below + "/round-XXXXXX") {
        if (::mkdtemp(path_.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), "cannot make a folder");
        }
    }
    [[nodiscard]] std::string data() const { return path_ + "/data.db"; }
    [[nodiscard]] std::string store() const { return "sqlite:" + path_ + "/locks.db"; }

  private:
    std::string path_;
};

/// What the processes of a demo know of each other: shared memory, so that nothing needs a clock of
/// its own to be compared.
struct blackboard {
    std::atomic<int> at_work{0};
    std::atomic<int> most_at_work{0};
    std::atomic<bool> first_has_it{false};
    std::atomic<bool> second_has_it{false};
    std::atomic<bool> first_has_left{false};
    std::atomic<bool> third_has_tried{false};
    std::atomic<bool> refused{false};

    void begin() {
        const int now = ++at_work;
        int most = most_at_work.load();
        while (most < now && !most_at_work.compare_exchange_weak(most, now)) {
        }
    }
    void end() { --at_work; }
};

class shared_blackboard {
  public:
    shared_blackboard()
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
    ~shared_blackboard() { ::munmap(page_, sizeof(blackboard)); }
    shared_blackboard(const shared_blackboard&) = delete;
    shared_blackboard& operator=(const shared_blackboard&) = delete;
    [[nodiscard]] blackboard& operator*() const noexcept { return *board_; }
    [[nodiscard]] blackboard* operator->() const noexcept { return board_; }

  private:
    void* page_;
    blackboard* board_;
};

void wait_for(const std::atomic<bool>& sign) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{1};
    while (!sign.load()) {
        if (std::chrono::steady_clock::now() > until) {
            throw failure(exit_status::trouble, "the demo got stuck");
        }
        std::this_thread::sleep_for(milliseconds{2});
    }
}

/// A process of its own. The parent of a demo has one thread and no client, so that it may fork.
class actor {
  public:
    explicit actor(const std::function<void()>& play) : process_(::fork()) {
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
    ~actor() {
        if (process_ > 0) {
            ::kill(process_, SIGKILL);
            (void)wait(0);
        }
    }
    actor(const actor&) = delete;
    actor& operator=(const actor&) = delete;

    void wait_until_stopped() const {
        if (const int status = wait(WUNTRACED); !WIFSTOPPED(status)) {
            throw failure(exit_status::trouble, "a process of the demo ended instead of stopping");
        }
    }
    void go_on() const { ::kill(process_, SIGCONT); }
    void join() {
        const int status = wait(0);
        process_ = -1;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            throw failure(exit_status::trouble, "a process of the demo could not do its part");
        }
    }

  private:
    [[nodiscard]] int wait(int how) const {
        int status = 0;
        while (::waitpid(process_, &status, how) < 0 && errno == EINTR) {
        }
        return status;
    }
    pid_t process_;
};

client open_demo_client(const std::string& url) {
    store_choice choice;
    choice.url = url;
    return open_client(choice, "dibs demo");
}

acquire_options options_of(milliseconds ttl, bool renew, milliseconds wait = milliseconds::zero()) {
    acquire_options wanted;
    wanted.ttl = ttl;
    wanted.renew = renew;
    wanted.wait = wait;
    return wanted;
}

lease take(client& through, acquire_options wanted) {
    auto got = through.acquire("job", wanted);
    if (!got) {
        throw failure(exit_status::trouble, "the key could not be had");
    }
    return std::move(*got);
}

int verdict(bool as_told) {
    deliver(as_told ? "" : "\nThat is not what this demo should show.\n");
    return as_told ? exit_status::ok : exit_status::trouble;
}

int demo_watchdog(bool fast, const std::string& below) {
    const milliseconds ttl = fast ? milliseconds{500} : milliseconds{5'000};
    const milliseconds work = fast ? milliseconds{1'200} : milliseconds{12'000};
    const auto play = [&](bool renew) {
        const scratch_folder folder(below);
        const shared_blackboard board;
        actor first([&] {
            auto through = open_demo_client(folder.store());
            auto held = take(through, options_of(ttl, renew));
            tell("A", "has the key, begins its work");
            board->begin();
            board->first_has_it = true;
            std::this_thread::sleep_for(work);
            board->end();
            tell("A",
                 std::string("has finished; held to the end: ") + (held.held() ? "yes" : "no"));
        });
        wait_for(board->first_has_it);
        actor second([&] {
            auto through = open_demo_client(folder.store());
            const auto held = take(through, options_of(ttl, true, 3 * work));
            tell("B", "has the key, begins its work");
            board->begin();
            std::this_thread::sleep_for(milliseconds{50});
            board->end();
        });
        second.join();
        first.join();
        const int most = board->most_at_work;
        deliver("  at work at the same time: " + std::to_string(most) + " (should be 1)\n");
        return most;
    };
    deliver("Work of " + seconds_of(work) + " under a ttl of " + seconds_of(ttl) +
            "; B waits for the key.\n\nwithout renewal:\n");
    const int without = play(false);
    deliver("\nwith the watchdog, which renews while the work goes on:\n");
    const int with = play(true);
    return verdict(without == 2 && with == 1);
}

int demo_blind_release(bool fast, const std::string& below) {
    const milliseconds ttl = fast ? milliseconds{300} : milliseconds{1'000};
    const auto late = 2 * ttl;
    deliver("A holds for " + seconds_of(ttl) + ", but works for " + seconds_of(late) +
            ". B has the lock by then; A gives \"its\" lock back; C comes.\n");

    deliver("\na row of one's own, given back by DELETE WHERE name = 'job':\n");
    const auto by_hand = [&] {
        const scratch_folder folder(below);
        const shared_blackboard board;
        plain_sql(folder.data(),
                  "CREATE TABLE locks(name TEXT PRIMARY KEY, until_ms INTEGER NOT NULL)");
        const auto take_row = [path = folder.data()](milliseconds length) {
            const auto now = std::chrono::duration_cast<milliseconds>(
                                 std::chrono::system_clock::now().time_since_epoch())
                                 .count();
            return plain_sql(path,
                             "INSERT INTO locks VALUES('job', " +
                                 std::to_string(now + length.count()) +
                                 ") ON CONFLICT(name) DO UPDATE SET until_ms = "
                                 "excluded.until_ms WHERE until_ms <= " +
                                 std::to_string(now))
                       .changed == 1;
        };
        actor first([&] {
            (void)take_row(ttl);
            tell("A", "has the lock");
            board->first_has_it = true;
            std::this_thread::sleep_for(late);
            wait_for(board->second_has_it);
            const auto gone =
                plain_sql(folder.data(), "DELETE FROM locks WHERE name = 'job'").changed;
            tell("A", "gives the lock back: " + std::to_string(gone) + " row deleted, B's");
            board->first_has_left = true;
        });
        wait_for(board->first_has_it);
        actor second([&] {
            while (!take_row(std::chrono::minutes{5})) {
                std::this_thread::sleep_for(milliseconds{5});
            }
            tell("B", "has the lock, A's has expired; begins its work");
            board->begin();
            board->second_has_it = true;
            wait_for(board->third_has_tried);
            board->end();
        });
        wait_for(board->first_has_left);
        actor third([&] {
            if (take_row(std::chrono::minutes{5})) {
                tell("C", "has the lock too; begins its work");
                board->begin();
                board->end();
            }
            board->third_has_tried = true;
        });
        third.join();
        second.join();
        first.join();
        return board->most_at_work.load();
    }();
    deliver("  at work at the same time: " + std::to_string(by_hand) + " (should be 1)\n");

    deliver("\nwith dibs, which gives back by holder id:\n");
    const auto ours = [&] {
        const scratch_folder folder(below);
        const shared_blackboard board;
        actor first([&] {
            auto through = open_demo_client(folder.store());
            auto held = take(through, options_of(ttl, false));
            tell("A", "has the key, fence " + std::to_string(held.last_fence()));
            board->first_has_it = true;
            std::this_thread::sleep_for(late);
            wait_for(board->second_has_it);
            std::error_code error;
            const bool gave_back = held.release(error) == release_outcome::released;
            tell("A",
                 gave_back ? "gives the key back" : "gives the key back: it is not held any more");
            board->refused = !gave_back;
            board->first_has_left = true;
        });
        wait_for(board->first_has_it);
        actor second([&] {
            auto through = open_demo_client(folder.store());
            const auto held = take(through, options_of(ttl, true, std::chrono::seconds{30}));
            tell("B",
                 "has the key, A's lease has expired; fence " + std::to_string(held.last_fence()));
            board->begin();
            board->second_has_it = true;
            wait_for(board->third_has_tried);
            board->end();
        });
        wait_for(board->first_has_left);
        actor third([&] {
            auto through = open_demo_client(folder.store());
            if (const auto held = through.try_acquire("job")) {
                board->begin();
                tell("C", "has the key too");
                board->end();
            } else {
                tell("C", "finds the key held by B, and leaves");
            }
            board->third_has_tried = true;
        });
        third.join();
        second.join();
        first.join();
        return board->refused ? board->most_at_work.load() : 0;
    }();
    deliver("  at work at the same time: " + std::to_string(ours) + " (should be 1)\n");
    return verdict(by_hand == 2 && ours == 1);
}

int demo_fencing(bool fast, const std::string& below) {
    const milliseconds ttl = fast ? milliseconds{300} : milliseconds{1'000};
    const milliseconds stall = fast ? milliseconds{900} : milliseconds{2'500};
    const scratch_folder folder(below);
    const shared_blackboard board;
    plain_sql(
        folder.data(),
        "CREATE TABLE plain(body TEXT); INSERT INTO plain VALUES('-');"
        "CREATE TABLE guarded(body TEXT, fence INTEGER); INSERT INTO guarded VALUES('-', 0);");
    const auto write_rows = [path = folder.data()](const std::string& who, std::uint64_t fence) {
        const auto number = std::to_string(fence);
        plain_sql(path, "UPDATE plain SET body = '" + who + "'");
        const auto changed = plain_sql(path,
                                       "UPDATE guarded SET body = '" + who +
                                           "', fence = " + number + " WHERE fence <= " + number)
                                 .changed;
        tell(who,
             "writes both rows, fence " + number + ": plain row accepted, guarded row " +
                 (changed == 1 ? "accepted" : "REFUSED"));
        return changed == 1;
    };
    deliver("A lease of " + seconds_of(ttl) + "; its holder A is stopped for " + seconds_of(stall) +
            ", B takes over, A wakes and writes.\n\n");
    actor first([&] {
        auto through = open_demo_client(folder.store());
        const auto held = take(through, options_of(ttl, true));
        tell("A", "has the key, fence " + std::to_string(held.last_fence()) + "; is stopped");
        ::raise(SIGSTOP);
        tell("A", "wakes");
        board->refused = !write_rows("A", held.last_fence());
    });
    first.wait_until_stopped();
    const auto awake_at = std::chrono::steady_clock::now() + stall;
    actor second([&] {
        auto through = open_demo_client(folder.store());
        const auto held = take(through, options_of(ttl, true, std::chrono::seconds{30}));
        tell("B", "has the key, fence " + std::to_string(held.last_fence()));
        (void)write_rows("B", held.last_fence());
    });
    second.join();
    std::this_thread::sleep_until(awake_at);
    first.go_on();
    first.join();
    const auto plain = plain_sql(folder.data(), "SELECT body FROM plain").value;
    const auto guarded = plain_sql(folder.data(), "SELECT body FROM guarded").value;
    deliver("\n  plain row:   written last by " + plain +
            " (should be B)\n  guarded row: written last by " + guarded + " (should be B)\n");
    return verdict(plain == "A" && guarded == "B" && board->refused);
}

}  // namespace

demo_play lease_demo(std::string_view name) noexcept {
    return name == "watchdog"        ? demo_watchdog
           : name == "blind-release" ? demo_blind_release
           : name == "fencing"       ? demo_fencing
                                     : nullptr;
}

}  // namespace dibs::cli
