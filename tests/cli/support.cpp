// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include "support/places.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace dibs::testing {

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds bound) {
    const auto end = std::chrono::steady_clock::now() + bound;
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= end) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return true;
}

folder::folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dibs-cli-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
        throw std::runtime_error("cannot make a folder for the test");
    }
    path_ = pattern;
}

folder::~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

bool exists(const std::string& path) {
    return std::filesystem::exists(path);
}

std::int64_t boottime_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

process::process(const launch& how) {
    std::vector<std::string> environment;
    for (char** entry = ::environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        if (!text.starts_with("DIBS_") &&
            how.variables.count(text.substr(0, text.find('='))) == 0) {
            environment.push_back(text);
        }
    }
    for (const auto& [name, value] : how.variables) {
        environment.push_back(name + "=" + value);
    }
    const std::string program = how.program.empty() ? tests::places::command : how.program;
    std::vector<std::string> command{program};
    command.insert(command.end(), how.words.begin(), how.words.end());
    const auto pointers = [](std::vector<std::string>& texts) {
        std::vector<char*> all;
        for (auto& text : texts) {
            all.push_back(text.data());
        }
        all.push_back(nullptr);
        return all;
    };
    auto argv = pointers(command);
    auto envp = pointers(environment);
    const auto out = files_.file("out");
    const auto err = files_.file("err");
    id_ = ::fork();
    if (id_ < 0) {
        throw std::runtime_error("cannot start a process");
    }
    if (id_ == 0) {
        if (how.terminal >= 0) {
            ::setsid();
            ::ioctl(how.terminal, TIOCSCTTY, 0);
            for (int number = 0; number <= 2; ++number) {
                ::dup2(how.terminal, number);
            }
        } else {
            ::dup2(::open(how.input.empty() ? "/dev/null" : how.input.c_str(), O_RDONLY), 0);
            ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
            ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
        }
        for (int number = 3; number < 256; ++number) {
            if (std::find(how.inherited.begin(), how.inherited.end(), number) ==
                how.inherited.end()) {
                ::close(number);
            }
        }
        if (how.user != 0 &&
            (::setgroups(0, nullptr) != 0 || ::setgid(how.user) != 0 || ::setuid(how.user) != 0)) {
            ::_exit(97);
        }
        if (!how.cwd.empty() && ::chdir(how.cwd.c_str()) != 0) {
            ::_exit(99);
        }
        sigset_t blocked;
        ::sigemptyset(&blocked);
        for (const int number : how.blocked) {
            ::sigaddset(&blocked, number);
        }
        // A shell that runs the tests in the background has them ignored.
        for (const int number : {SIGINT, SIGQUIT, SIGHUP}) {
            ::signal(number, SIG_DFL);
        }
        for (const int number : how.ignored) {
            ::signal(number, SIG_IGN);
        }
        ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
        ::execve(program.c_str(), argv.data(), envp.data());
        ::_exit(98);
    }
}

process::~process() {
    if (!reaped_) {
        ::kill(id_, SIGKILL);
        ::kill(id_, SIGCONT);
        ::waitpid(id_, nullptr, 0);
    }
}

void process::signal(int number) const {
    ASSERT_EQ(::kill(id_, number), 0);
}

bool process::ended() {
    if (!reaped_) {
        int status = 0;
        if (::waitpid(id_, &status, WNOHANG) == id_) {
            reaped_ = true;
            status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        }
    }
    return reaped_;
}

outcome process::wait() {
    EXPECT_TRUE(eventually([this] { return ended(); })) << "the command does not end";
    return {status_, out(), err()};
}

std::string process::out() const {
    return read_file(files_.file("out"));
}

std::string process::err() const {
    return read_file(files_.file("err"));
}

launch dibs_on(const folder& where, const std::vector<std::string>& words) {
    launch how;
    how.words = words;
    how.variables["DIBS_STORE"] = where.store();
    how.cwd = where.path();
    return how;
}

outcome run_dibs(const folder& where, const std::vector<std::string>& words) {
    return process(dibs_on(where, words)).wait();
}

std::string child_program() {
    return tests::places::child_program;
}

namespace {

struct process_facts {
    std::string name;
    char state = '-';
    pid_t parent = -1;
};

process_facts facts_of(const std::string& pid) {
    const auto text = read_file("/proc/" + pid + "/stat");
    const auto from = text.find('(');
    const auto to = text.rfind(')');
    if (from == std::string::npos || to == std::string::npos) {
        return {};
    }
    process_facts found;
    found.name = text.substr(from + 1, to - from - 1);
    std::istringstream rest(text.substr(to + 1));
    rest >> found.state >> found.parent;
    return found;
}

}  // namespace

std::vector<pid_t> children_named(pid_t parent, const std::string& name) {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const auto pid = entry.path().filename().string();
        if (pid[0] < '1' || pid[0] > '9') {
            continue;
        }
        const auto facts = facts_of(pid);
        if (facts.parent == parent && facts.name == name) {
            found.push_back(std::stoi(pid));
        }
    }
    return found;
}

char state_of(pid_t process) {
    return facts_of(std::to_string(process)).state;
}

bool is_running(pid_t process) {
    const char state = state_of(process);
    return state != '-' && state != 'Z' && state != 'X';
}

std::vector<beat> read_beats(const std::string& path) {
    std::vector<beat> beats;
    std::istringstream lines(read_file(path));
    beat one{};
    while (lines >> one.fence >> one.boottime_ns >> one.process) {
        beats.push_back(one);
    }
    return beats;
}

std::string overlap_in(const std::vector<beat>& beats) {
    struct span {
        std::int64_t first;
        std::int64_t last;
    };
    std::map<std::uint64_t, span> spans;
    for (const auto& one : beats) {
        auto& at =
            spans.try_emplace(one.fence, span{one.boottime_ns, one.boottime_ns}).first->second;
        at.first = std::min(at.first, one.boottime_ns);
        at.last = std::max(at.last, one.boottime_ns);
    }
    const std::pair<const std::uint64_t, span>* before = nullptr;
    for (const auto& now : spans) {
        if (before != nullptr && now.second.first <= before->second.last) {
            return "fence " + std::to_string(now.first) + " began " +
                   std::to_string((before->second.last - now.second.first) / 1'000'000) +
                   " ms before fence " + std::to_string(before->first) + " ended";
        }
        before = &now;
    }
    return {};
}

std::vector<std::vector<std::string>> looking_commands() {
    const std::string handle = "dibs1:00112233445566778899aabbccddeeff:5:k";
    return {{"ls"},
            {"show", "k"},
            {"watch"},
            {"check", "k", "--fence", "1"},
            {"runs", "job"},
            {"renew", handle},
            {"release", handle},
            {"break", "k", "--fence", "1", "--yes"},
            {"hold", "k", "--lift"}};
}

}  // namespace dibs::testing
