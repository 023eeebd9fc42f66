// SPDX-License-Identifier: Apache-2.0
// Fifty requests that all need a new token.
#include "cli/demo/actors.hpp"
#include "cli/demo/demos.hpp"
#include "cli/demo/provider.hpp"
#include "cli/output/speech.hpp"

#include <dibs/cached_value.hpp>

#include <unistd.h>

#include <csignal>
#include <exception>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

namespace dibs::cli {

namespace {

constexpr int processes = 5;
constexpr int requests = 10;
constexpr int all_requests = processes * requests;

void in_threads(const std::function<void()>& what) {
    std::vector<std::thread> threads;
    for (int at = 0; at < requests; ++at) {
        threads.emplace_back([&what] {
            try {
                what();
            } catch (const std::exception& fault) {
                say(fault.what());
            }
        });
    }
    for (auto& one : threads) {
        one.join();
    }
}

/// How many of them were killed.
int in_processes(const std::function<void()>& what) {
    std::list<actor> all;
    for (int at = 0; at < processes; ++at) {
        all.emplace_back(what);
    }
    int killed = 0;
    for (auto& one : all) {
        killed += one.survived() ? 0 : 1;
    }
    return killed;
}

void tell_counts(const shared_provider::counts& found, int refreshes, int served) {
    deliver("  refreshes at the provider: " + std::to_string(found.refreshes) + " (should be " +
            std::to_string(refreshes) + ")\n  requests served: " + std::to_string(found.served) +
            " (should be " + std::to_string(served) +
            ")\n  requests refused (401): " + std::to_string(found.refused) + " (should be 0)\n");
}

cached_options with_ttl(milliseconds ttl) {
    return cached_options{}.ttl(ttl);
}

bool everybody_refreshes(milliseconds answers_after) {
    const shared_provider provider(answers_after);
    (void)in_processes([&] {
        in_threads([&] {
            const auto token = provider.refresh();
            std::this_thread::sleep_for(5 * answers_after);
            provider.serve(token);
        });
    });
    const auto found = provider.counted();
    tell_counts(found, 1, all_requests);
    return found.refreshes == all_requests && found.served == 1;
}

bool one_refreshes(const demo_scene& scene, milliseconds answers_after) {
    const shared_provider provider(answers_after);
    const demo_round round(scene);
    (void)in_processes([&] {
        auto through = round.open();
        cached_value token{through, round.key(), [&] {
                               tell(std::to_string(::getpid()), "refreshes the token");
                               return fetched<>{provider.refresh(), std::chrono::hours{1}};
                           }};
        in_threads([&] { provider.serve(token.get()); });
    });
    const auto found = provider.counted();
    tell_counts(found, 1, all_requests);
    return found.refreshes == 1 && found.served == all_requests;
}

bool the_refresher_is_killed(const demo_scene& scene, milliseconds answers_after) {
    const shared_provider provider(answers_after);
    const demo_round round(scene);
    const shared_blackboard board;
    const int killed = in_processes([&] {
        auto through = round.open();
        cached_value token{through,
                           round.key(),
                           [&] {
                               if (!board->first_has_it.exchange(true)) {
                                   tell(std::to_string(::getpid()),
                                        "refreshes the token, and is killed");
                                   (void)provider.refresh();
                                   ::raise(SIGKILL);
                               }
                               tell(std::to_string(::getpid()), "refreshes the token");
                               return fetched<>{provider.refresh(), std::chrono::hours{1}};
                           },
                           with_ttl(std::chrono::seconds{2})};
        in_threads([&] { provider.serve(token.get()); });
    });
    const auto found = provider.counted();
    tell_counts(found, 2, all_requests - requests);
    return killed == 1 && found.refreshes == 2 && found.served == all_requests - requests &&
           found.refused == 0;
}

/// Each time, all of them find that the token is of no use.
bool the_credential_changes(const demo_scene& scene, milliseconds answers_after) {
    constexpr int times = 3;
    const shared_provider provider(answers_after);
    const demo_round round(scene);
    (void)in_processes([&] {
        auto through = round.open();
        cached_value token{
            through,
            round.key(),
            [&](const fetch_context& with) {
                const auto credential = with.successor.empty() ? std::string("credential-0")
                                                               : std::string(with.successor);
                const auto granted = provider.refresh(credential);
                if (!granted) {
                    throw fetch_failure("invalid_grant").refused();
                }
                tell(std::to_string(::getpid()), "presented " + credential);
                return fetched<>{granted->token, std::chrono::hours{1}, granted->credential};
            },
            cached_options{}.rotating()};
        in_threads([&] {
            for (int time = 1; time <= times; ++time) {
                const auto dead = "token-" + std::to_string(time - 1);
                auto usable = token.get();
                if (usable == dead) {
                    token.reject(usable);
                    usable = token.get();
                }
                if (time == times) {
                    // Some are a token ahead of others; that is what the 401 is for.
                    while (!provider.serve(usable)) {
                        token.reject(usable);
                        usable = token.get();
                    }
                }
            }
        });
    });
    const auto found = provider.counted();
    deliver("  refreshes at the provider: " + std::to_string(found.refreshes) +
            "\n  requests served: " + std::to_string(found.served) + " (should be " +
            std::to_string(all_requests) + ")\n  a credential was presented twice: " +
            (found.revoked ? "yes: all are revoked" : "no") + " (should be no)\n");
    return found.served == all_requests && !found.revoked && found.refreshes >= times - 1;
}

bool everybody_presents_the_credential(milliseconds answers_after) {
    const shared_provider provider(answers_after);
    (void)in_processes([&] {
        in_threads([&] {
            const auto granted = provider.refresh("credential-0");
            std::this_thread::sleep_for(5 * answers_after);
            provider.serve(granted ? granted->token : "");
        });
    });
    const auto found = provider.counted();
    deliver("  requests served: " + std::to_string(found.served) + " (should be " +
            std::to_string(all_requests) + ")\n  a credential was presented twice: " +
            (found.revoked ? "yes: all are revoked, somebody has to log in again" : "no") +
            " (should be no)\n");
    return found.revoked && found.served == 0;
}

}  // namespace

int demo_token_stampede(const demo_scene& scene) {
    const auto answers_after = scene.length(milliseconds{400}, milliseconds{100});
    deliver(std::to_string(processes) + " processes with " + std::to_string(requests) +
            " requests each need a new token. Each refresh kills the token of before.\n\n"
            "every request refreshes:\n");
    const bool without = everybody_refreshes(answers_after);
    deliver("\nwith a cached value:\n");
    const bool with = one_refreshes(scene, answers_after);
    deliver("\nthe process that refreshes is killed in the middle:\n");
    const bool killed = the_refresher_is_killed(scene, answers_after);
    deliver("\na credential that changes with each use, presented by every request:\n");
    const bool twice = everybody_presents_the_credential(answers_after);
    deliver("\nthe same with a cached value, and tokens that are refused over and over:\n");
    const bool rotated = the_credential_changes(scene, answers_after);
    return verdict(without && with && killed && twice && rotated);
}

}  // namespace dibs::cli
