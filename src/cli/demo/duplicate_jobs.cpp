// SPDX-License-Identifier: Apache-2.0
// dibs demo duplicate-jobs: three processes that stand for three containers wake for the same
// nightly job. First as they would without a lock, then with one. Nothing is played: the processes
// are real, the times are theirs, and the e-mails are counted in the file that they wrote.
#include "cli/commands.hpp"
#include "cli/demo/demos.hpp"
#include "cli/options/option_table.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/child_environment.hpp"
#include "cli/settings/store_access.hpp"
#include "client/attempt.hpp"

#include <dibs/dibs.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace dibs::cli {

namespace {

constexpr int containers = 3;
constexpr auto length_of_work = std::chrono::milliseconds{120};
constexpr std::array worker_options{
    option{"name", 0, "NAME", "of the container"},
    option{"outbox", 0, "FILE", "where the e-mails go"},
    option{"locked", 0, "KEY", "take that lock, in the store that DIBS_STORE names"},
};
const command_syntax worker_syntax{
    .name = "demo-worker",
    .usage = "dibs demo-worker --name NAME --outbox FILE [--locked KEY]",
    .summary = "One process of a demo.",
    .options = worker_options,
};

std::string zone() {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    ::localtime_r(&now, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Z", &parts);
    return text.data();
}

// --- one container -------------------------------------------------------------------------------

class worker {
  public:
    worker(std::string name, std::string outbox)
        : name_(std::move(name)), outbox_(std::move(outbox)) {}

    void tell(const std::string& text) const { cli::tell(name_, text); }

    /// Tells the parent that everything is ready, and waits until it lets all start at once.
    static void wait_for_start() {
        (void)!::write(STDOUT_FILENO, "\n", 1);
        char nothing = 0;
        while (::read(STDIN_FILENO, &nothing, 1) < 0 && errno == EINTR) {
        }
    }

    void do_the_job() const {
        std::this_thread::sleep_for(length_of_work);
        const int file = ::open(outbox_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        const std::string mail =
            "To: customers; Subject: your nightly report; sent by " + name_ + "\n";
        const bool sent = file >= 0 && ::write(file, mail.data(), mail.size()) ==
                                           static_cast<ssize_t>(mail.size());
        if (file >= 0) {
            ::close(file);
        }
        if (!sent) {
            throw failure(exit_status::trouble, "cannot write " + outbox_);
        }
        tell("e-mail sent");
    }

  private:
    std::string name_;
    std::string outbox_;
};

void work_with_lock(const worker& self, const std::string& url, const std::string& job_key) {
    store_choice store;
    store.url = url;
    auto through = open_client(store, "dibs demo duplicate-jobs");
    self.wait_for_start();
    auto found = detail::acquire_with_reason(through, job_key, {}, {});
    if (found.error) {
        throw failure(status_of(found.error), found.message);
    }
    if (!found.granted) {
        self.tell("skips the job: held by " + (found.holders.empty()
                                                   ? std::string("another container")
                                                   : describe_holder(found.holders.front())));
        return;
    }
    self.tell("starts the nightly job, fence " + std::to_string(found.granted->fence()));
    self.do_the_job();
    if (found.granted->release() != release_outcome::released) {
        throw failure(exit_status::lost, "the lease was lost during the job");
    }
}

// --- the parent ----------------------------------------------------------------------------------

struct container {
    pid_t process = -1;
    int output = -1;
    std::string said;
};

std::array<int, 2> open_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot open a pipe");
    }
    return ends;
}

container start_container(const std::vector<std::string>& command, int start_gate) {
    const auto output = open_pipe();
    std::vector<char*> argv;
    for (const auto& word : command) {
        argv.push_back(const_cast<char*>(word.c_str()));
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, start_gate, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    container started;
    const int error = ::posix_spawn(
        &started.process, "/proc/self/exe", &actions, nullptr, argv.data(), ::environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(output[1]);
    started.output = output[0];
    if (error != 0) {
        throw std::system_error(error, std::generic_category(), "cannot start a process");
    }
    return started;
}

/// Up to and with the next newline; false at the end.
bool read_line(container& from, std::string& line) {
    line.clear();
    char character = 0;
    while (true) {
        const auto got = ::read(from.output, &character, 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        line += character;
        if (character == '\n') {
            return true;
        }
    }
}

/// Runs one round and returns how many e-mails lie in the outbox.
int play(const std::string& outbox, const std::string* store, const std::string& job_key) {
    const auto gate = open_pipe();
    std::vector<container> all;
    for (int number = 1; number <= containers; ++number) {
        std::vector<std::string> command{"dibs",
                                         "demo-worker",
                                         "--name=container-" + std::to_string(number),
                                         "--outbox=" + outbox};
        if (store != nullptr) {
            // Not on the command line, which everybody may read: it may hold a password.
            ::setenv("DIBS_STORE", store->c_str(), 1);
            command.push_back("--locked=" + job_key);
        }
        all.push_back(start_container(command, gate[0]));
    }
    ::close(gate[0]);
    std::string line;
    for (auto& one : all) {
        (void)read_line(one, line);  // ready, or ended with an error that its status tells
    }
    ::close(gate[1]);  // midnight
    std::vector<std::string> lines;
    bool failed = false;
    for (auto& one : all) {
        while (read_line(one, line)) {
            lines.push_back(line);
        }
        ::close(one.output);
        int status = 0;
        while (::waitpid(one.process, &status, 0) < 0 && errno == EINTR) {
        }
        failed = failed || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    std::stable_sort(lines.begin(), lines.end());
    for (const auto& shown : lines) {
        deliver(shown);
    }
    if (failed) {
        throw failure(exit_status::unavailable, "a container could not do its part");
    }
    int mails = 0;
    std::ifstream written(outbox);
    while (std::getline(written, line)) {
        ++mails;
    }
    deliver("  e-mails sent: " + std::to_string(mails) + " (should be 1)\n");
    return mails;
}

}  // namespace

int demo_duplicate_jobs(const demo_scene& scene) {
    const std::string store =
        scene.store.empty() ? "sqlite:" + scene.folder + "/locks.db" : scene.store;
    deliver("Three processes, as if in three containers, and the same nightly job (" +
            std::to_string(length_of_work.count()) +
            " ms of work, then an e-mail to the customers). Times are those of this host (" +
            zone() + ").\n\nwithout a lock:\n");
    // Another demo may be at work on the same server.
    const auto job_key =
        std::filesystem::path(scene.folder).filename().string() + ":nightly-report";
    (void)play(scene.folder + "/outbox-without", nullptr, job_key);
    deliver("\nwith dibs:\n");
    return play(scene.folder + "/outbox-with", &store, job_key) == 1 ? exit_status::ok
                                                                     : exit_status::trouble;
}

int demo_worker_command(words given) {
    const auto found = parse_arguments(worker_syntax, given);
    if (!found.has("name") || !found.has("outbox")) {
        throw usage_error("demo-worker is started by dibs demo");
    }
    const worker self(*found.value("name"), *found.value("outbox"));
    if (found.has("locked")) {
        const char* store = std::getenv("DIBS_STORE");
        work_with_lock(self, store == nullptr ? "" : store, *found.value("locked"));
    } else {
        self.wait_for_start();
        self.tell("starts the nightly job");
        self.do_the_job();
    }
    return exit_status::ok;
}

}  // namespace dibs::cli
