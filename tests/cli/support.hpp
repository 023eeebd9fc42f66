// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the built command as a process of its own, in a folder and with a store of its own.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dibs::testing {

/// Nothing in these tests takes this long; a test that waits for it fails.
inline constexpr auto patience = std::chrono::seconds{30};

/// Asks until it is true or patience ends.
[[nodiscard]] bool eventually(const std::function<bool()>& condition,
                              std::chrono::milliseconds bound = patience);

/// A fresh folder, removed afterwards.
class folder {
  public:
    folder();
    ~folder();
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
    /// URL of the SQLite store in it.
    [[nodiscard]] std::string store() const { return "sqlite:" + file("locks.db"); }

  private:
    std::string path_;
};

[[nodiscard]] std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);
[[nodiscard]] bool exists(const std::string& path);

/// CLOCK_BOOTTIME in nanoseconds.
[[nodiscard]] std::int64_t boottime_ns();

struct outcome {
    int status = -1;  ///< exit status, or -signal
    std::string out;
    std::string err;
};

/// How to start a command. The environment is the test's own without any DIBS_ variable, plus
/// `variables`.
struct launch {
    std::vector<std::string> words;
    std::map<std::string, std::string> variables;
    std::string cwd;           ///< empty: the test's own
    std::vector<int> ignored;  ///< signals ignored from the start
    std::vector<int> blocked;  ///< signals blocked from the start
    std::string program;       ///< empty: the built dibs
    int terminal =
        -1;  ///< to be its controlling terminal, in a session of its own, and stdin to stderr
    uid_t user = 0;              ///< to become; 0: the test's own
    std::string input;           ///< a file to be stdin; empty: /dev/null
    std::vector<int> inherited;  ///< further descriptors that it gets
};

/// A running command. Ended by KILL when it is still there at destruction; its output goes to
/// files.
class process {
  public:
    explicit process(const launch& how);
    ~process();
    process(const process&) = delete;
    process& operator=(const process&) = delete;

    [[nodiscard]] pid_t id() const noexcept { return id_; }
    void signal(int number) const;
    /// Waits for its end, and fails the test when that does not come.
    outcome wait();
    [[nodiscard]] bool ended();
    [[nodiscard]] std::string out() const;
    [[nodiscard]] std::string err() const;

  private:
    folder files_;
    pid_t id_ = -1;
    bool reaped_ = false;
    int status_ = -1;
};

/// `dibs WORDS…` on the store of `where`, to its end.
outcome run_dibs(const folder& where, const std::vector<std::string>& words);
[[nodiscard]] launch dibs_on(const folder& where, const std::vector<std::string>& words);

/// The program whose behaviour as a child is tested (child_program.cpp).
[[nodiscard]] std::string child_program();

/// The child processes of `parent` whose name (comm) is `name`.
[[nodiscard]] std::vector<pid_t> children_named(pid_t parent, const std::string& name);
/// Whether the process exists and is not a zombie.
[[nodiscard]] bool is_running(pid_t process);
/// The state letter of /proc; '-' when it is gone.
[[nodiscard]] char state_of(pid_t process);

/// What `child_program beat FILE` wrote: who was at work when.
struct beat {
    std::uint64_t fence;
    std::int64_t boottime_ns;
    pid_t process;
};
[[nodiscard]] std::vector<beat> read_beats(const std::string& path);

/// Empty when no two fences were at work at the same time and every later one is larger; else what
/// was wrong.
[[nodiscard]] std::string overlap_in(const std::vector<beat>& beats);

/// One of each command that only looks at a store, or needs a lease that is there already.
[[nodiscard]] std::vector<std::vector<std::string>> looking_commands();

}  // namespace dibs::testing
