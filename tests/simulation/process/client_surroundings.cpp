// SPDX-License-Identifier: Apache-2.0
#include "simulation/process/client_surroundings.hpp"

#include <utility>

namespace dibs::simulation {

namespace {

constexpr auto patience_at_end = std::chrono::seconds{1};

void finish_when_settled(process& in,
                         detail::ending& client,
                         std::shared_ptr<const void> keep,
                         core::instant until) {
    if (client.settled() || in.now() >= until) {
        client.finish_end();
        return;
    }
    in.post_in(core::milliseconds{1}, [&in, &client, keep = std::move(keep), until]() mutable {
        finish_when_settled(in, client, std::move(keep), until);
    });
}

}  // namespace

void client_surroundings::end(detail::ending& client, std::shared_ptr<const void> keep) noexcept {
    if (!process_.alive() || !keep) {
        client.begin_end();
        client.finish_end();
        return;
    }
    process_.post([this, &in = process_, &client, keep = std::move(keep)]() mutable {
        on_end_();
        client.begin_end();
        const auto until = in.now() + patience_at_end;
        finish_when_settled(in, client, std::move(keep), until);
    });
}

}  // namespace dibs::simulation
