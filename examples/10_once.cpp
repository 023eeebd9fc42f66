// SPDX-License-Identifier: Apache-2.0
// A job that runs once for each of its planned times, on whichever process comes first.
//
// usage: 10_once [STORE-URL]
#include <dibs/dibs.hpp>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

namespace {

std::string words_for(const dibs::once_result& result) {
    switch (result.outcome()) {
        case dibs::once_outcome::ran:
            return "ran here";
        case dibs::once_outcome::done:
            return "done before";
        case dibs::once_outcome::retry_later:
            return "failed, to be tried again";
        case dibs::once_outcome::failed:
            return "failed for good";
        default:
            return "somebody else is at it, or it may not run now";
    }
}

void say(const std::string& who, const dibs::once_result& result) {
    std::cout << who << ": " << words_for(result) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    const std::string store = argc > 1 ? argv[1] : "memory:example";
    // Two hosts whose timers fire for the same slot. Each would be a process of its own.
    dibs::client host_a{store};
    dibs::client host_b{store};

    const auto at_three = dibs::cron("0 3 * * *", "Europe/Berlin");
    const auto send = [](const dibs::once_context& run) {
        // The receiver drops what it has seen: a crash after this and before the record repeats it.
        std::cout << "report " << run.slot << ", key " << run.idempotency_key << '\n';
    };
    say("host a", host_a.once("nightly-report", at_three, send));
    say("host b", host_b.once("nightly-report", at_three, send));

    // What is thrown is a failure; any host may try again.
    dibs::once_options twice;
    twice.retries = 1;
    twice.backoff = 0ms;
    const auto bill = [](const dibs::once_context& run) {
        if (run.attempt == 1) {
            throw std::runtime_error("the printer is out of paper");
        }
    };
    const auto november = dibs::slot("2026-11");
    say("host a", host_a.once("billing", november, bill, twice));
    say("host b", host_b.once("billing", november, bill, twice));
    return 0;
}
