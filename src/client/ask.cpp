// SPDX-License-Identifier: Apache-2.0
#include "client/ask.hpp"

#include "client/client_core.hpp"

#include <utility>

namespace dibs::detail {

core::reply ask(client_core& through, core::verb what, core::nanoseconds patience) noexcept {
    core::reply told;
    through.run([&](core::task done) {
        if (through.closed()) {
            told.given = through.refusal();
            done();
            return;
        }
        const auto give_up = through.env().time.now() + patience;
        through.batcher().submit(
            std::move(what),
            patience,
            give_up,
            [&told, done = std::move(done), first = true](core::reply heard) mutable {
                // A late second answer finds nobody waiting.
                if (std::exchange(first, false)) {
                    told = std::move(heard);
                    done();
                }
            });
    });
    return told;
}

}  // namespace dibs::detail
