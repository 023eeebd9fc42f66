// SPDX-License-Identifier: Apache-2.0
#include "cli/once/once_missed.hpp"

#include "cli/once/once_session.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/running_report.hpp"
#include "cli/settings/store_access.hpp"
#include "cli/supervisor/signals.hpp"
#include "client/recipes/slot_plan.hpp"
#include "store/file_descriptor.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::cli {

namespace {

using store::file_descriptor;
using json = nlohmann::json;

/// After one of these the next slot would fare no better, or somebody else is at it in our place.
constexpr std::array ends_the_row{"running",
                                  "overlaps",
                                  "wait_over",
                                  "blocked",
                                  "lost",
                                  "max_hold",
                                  "signal",
                                  "interrupted",
                                  "not_started",
                                  "unavailable",
                                  "invalid"};

struct told_by_child {
    int status = exit_status::our_bug;
    std::string text;
};

/// Does something in a process of its own; signals go on to it.
class helpers {
  public:
    /// `work` writes its answer to the descriptor and returns the exit status.
    told_by_child run(const std::function<int(int)>& work) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
            throw failure(exit_status::system,
                          std::string("cannot open a pipe: ") + std::strerror(errno));
        }
        const file_descriptor reader{ends[0]};
        file_descriptor writer{ends[1]};
        const pid_t parent = ::getpid();
        const pid_t child = ::fork();
        if (child < 0) {
            throw failure(exit_status::system,
                          std::string("cannot start a process: ") + std::strerror(errno));
        }
        if (child == 0) {
            desk_.restore_in_child();
            ::prctl(PR_SET_PDEATHSIG, SIGTERM);
            int status = exit_status::our_bug;
            if (::getppid() == parent) {
                status = work(writer.get());
            }
            ::_exit(status);
        }
        writer = file_descriptor{};
        told_by_child told;
        told.text = read_while_it_lives(reader.get(), child);
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        told.status =
            WIFSIGNALED(status) ? exit_status::signal_base + WTERMSIG(status) : WEXITSTATUS(status);
        return told;
    }

    [[nodiscard]] bool told_to_end() const noexcept { return desk_.told_to_end() != 0; }

  private:
    std::string read_while_it_lives(int from, pid_t child) {
        std::string text;
        std::array<char, 4096> piece{};
        for (;;) {
            std::array<pollfd, 2> wanted{pollfd{from, POLLIN, 0},
                                         pollfd{desk_.descriptor(), POLLIN, 0}};
            if (::poll(wanted.data(), wanted.size(), -1) < 0) {
                continue;
            }
            if (wanted[1].revents != 0) {
                pass_signals_on(child);
            }
            if (wanted[0].revents != 0) {
                const auto got = ::read(from, piece.data(), piece.size());
                if (got == 0 || (got < 0 && errno != EINTR)) {
                    return text;
                }
                text.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
            }
        }
    }

    void pass_signals_on(pid_t child) {
        while (const auto taken = desk_.take()) {
            if (taken->number == SIGCHLD || taken->number == SIGCONT) {
                continue;
            }
            // What is typed reaches both of us; a stop concerns each for itself.
            if (!taken->from_kernel) {
                ::kill(child, taken->number);
            }
            if (taken->number == SIGTSTP) {
                ::kill(::getpid(), SIGSTOP);
            }
        }
    }

    signal_desk desk_;
};

void write_all(int to, std::string_view text) {
    while (!text.empty()) {
        const auto written = ::write(to, text.data(), text.size());
        if (written < 0) {
            return;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// In the process of its own: looks, and writes what is due.
int tell_due(const once_options& options, const store_choice& store, int to) {
    try {
        auto through = open_client(store, options.terms.command);
        std::error_code error;
        std::string message;
        const detail::slot_plan plan{options.planned->plan,
                                     options.planned->bounds,
                                     options.terms.at_most_once,
                                     options.due};
        const auto due = detail::due_slots(through, options.terms.job, plan, error, message);
        if (error) {
            throw failure(status_of(error), message);
        }
        json told{{"left_out", due.left_out}, {"slots", json::array()}};
        for (const auto& one : due.slots) {
            told["slots"].push_back({one.name,
                                     one.begin.time_since_epoch().count(),
                                     one.end.time_since_epoch().count()});
        }
        write_all(to, told.dump());
        return exit_status::ok;
    } catch (const failure& fault) {
        write_all(to, fault.what());
        return fault.status();
    } catch (const std::exception& fault) {
        write_all(to, fault.what());
        return exit_status::our_bug;
    }
}

recipes::due_slots read_due(const std::string& text) {
    const auto told = json::parse(text);
    recipes::due_slots due;
    due.left_out = told.at("left_out");
    for (const auto& one : told.at("slots")) {
        due.slots.push_back(
            {one.at(0),
             core::wall_instant{core::microseconds{one.at(1).get<std::int64_t>()}},
             core::wall_instant{core::microseconds{one.at(2).get<std::int64_t>()}}});
    }
    return due;
}

}  // namespace

int run_due_slots(const once_options& options, const store_choice& store) {
    helpers apart;
    running_report report(options.run.status_file, options.run.key, store);
    const auto found = apart.run([&](int to) { return tell_due(options, store, to); });
    if (found.status != exit_status::ok) {
        throw failure(found.status, found.text);
    }
    const auto due = read_due(found.text);
    const bool tells = !options.run.quiet;
    if (due.left_out > 0 && tells) {
        say(std::to_string(due.left_out) + " missed slots of " + quoted_key(options.terms.job) +
            " are left out: more than --missed-max " + std::to_string(options.due.most));
    }
    if (due.slots.empty()) {
        const auto status = options.held_code.value_or(exit_status::ok);
        report.outcome = "missed";
        report.message =
            quoted_key(options.run.key) + " is not run: its time was missed (--missed none)";
        if (tells && (options.run.verbose || ::isatty(STDERR_FILENO) == 1)) {
            say(report.message);
        }
        report.write(status);
        return status;
    }
    int status = exit_status::ok;
    for (const auto& one : due.slots) {
        if (apart.told_to_end()) {
            break;
        }
        const auto ended = apart.run([&](int to) {
            const auto end = run_slot(for_slot(options, one), store);
            write_all(to, end.outcome);
            return end.status;
        });
        status = status != exit_status::ok ? status : ended.status;
        if (ended.text.empty() ||
            std::find(ends_the_row.begin(), ends_the_row.end(), ended.text) != ends_the_row.end()) {
            break;
        }
    }
    return status;
}

}  // namespace dibs::cli
