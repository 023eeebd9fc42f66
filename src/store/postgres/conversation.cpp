// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/conversation.hpp"

#include "store/remote/leader.hpp"

#include <dibs/error.hpp>

#include <chrono>
#include <utility>

namespace dibs::store::postgres {

using namespace std::chrono_literals;

trouble greeted(link& over, core::environment env) {
    while (over.at() != link::phase::closed && !over.ready()) {
        const auto left = over.patience_ends() - env.time.now();
        if (left <= 0ns) {
            over.no_answer(env.time.now());
            continue;
        }
        remote::wait_for(over.descriptor(), over.wanted(), left);
        over.go_on(env.time.now());
    }
    return over.ready() ? trouble{} : over.fault();
}

reply converse(link& over,
               core::environment env,
               const std::string& sql,
               core::nanoseconds patience) {
    if (!over.send_text(sql)) {
        return {};
    }
    const auto end = env.time.now() + patience;
    for (;;) {
        if (auto told = over.take()) {
            return std::move(*told);
        }
        const auto left = end - env.time.now();
        if (left <= 0ns) {
            over.fail({errc::store_unreachable, "the server does not answer"});
            return {};
        }
        remote::wait_for(over.descriptor(), over.wanted(), left);
        if (!over.go_on(env.time.now())) {
            return {};
        }
    }
}

}  // namespace dibs::store::postgres
