// SPDX-License-Identifier: Apache-2.0
#include "simulation/process/client_process.hpp"

#include "simulation/process/client_surroundings.hpp"

#include <utility>

namespace dibs::simulation {

client_process::client_process(world& in,
                               host& on,
                               std::string name,
                               std::uint64_t number,
                               std::uint64_t seed,
                               recorder& history,
                               traffic& counted,
                               store_model& model,
                               const weather& conditions)
    : history_(history), process_(in, on, std::move(name), number, seed) {
    auto opened = model.open(process_, conditions);
    cut_ = std::move(opened.cut);
    opened_ = std::move(opened.opened);
    auto edge =
        std::make_unique<observed_store>(process_, history, counted, std::move(opened.made));
    edge_ = edge.get();
    client_options options;
    options.log([this](log_level, std::string_view) { tell_of_loss(); });
    core_ = detail::client_core::make(
        std::make_unique<client_surroundings>(process_, [this] { note_close(); }),
        std::move(edge),
        options);
    client_.emplace(detail::lease_access::make(core_));
    edge_->ask_for_deadlines([this](const core::holder_id& holder) -> std::optional<core::instant> {
        for (const auto& one : core_->watchdog().guarded()) {
            if (one->holder == holder) {
                return one->deadline();
            }
        }
        return std::nullopt;
    });
    core_->undo().on_settled([this, &conditions](const auto& doubt, core::undo::proof how) {
        note_settled(doubt, how, conditions);
    });
    process_.at_death([this] { let_go(); });
}

void client_process::note_settled(const core::doubtful_acquire& doubt,
                                  core::undo::proof how,
                                  const weather& conditions) {
    // Of a request that the network repeats nobody but the store knows; and one that may be late
    // without limit can be that late.
    const bool sure =
        how == core::undo::proof::answered ? !conditions.repeats : doubt.not_after.has_value();
    if (process_.alive() && sure) {
        history_.event("settled")
            .text("proc", name())
            .time("local_ns", process_.now())
            .text("key", doubt.key)
            .holder("holder", doubt.holder);
    }
}

void client_process::note_close() {
    history_.event("fault", "at")
        .text("name", "close")
        .text("proc", name())
        .time("local_ns", process_.now());
}

void client_process::tell_of_loss() {
    if (!process_.alive()) {
        return;
    }
    std::erase_if(on_loss_, [](const auto& one) { return one.expired(); });
    for (const auto& one : std::vector{on_loss_}) {
        if (const auto told = one.lock()) {
            (*told)();
        }
    }
}

void client_process::close() {
    closing_ = true;
    process_.post([this] { core_->close(); });
}

void client_process::let_go() {
    cut_ = {};
    opened_ = {};
    if (closing_) {
        // Killed in the middle of its end, whose last step is then taken by nobody else.
        core_->batcher().close();
        core_->store().close();
    }
    client_.reset();
    core_.reset();
    for (const auto& let : std::exchange(after_client_, {})) {
        let();
    }
}

void client_process::cut_connections() {
    if (cut_) {
        cut_();
    }
}

void client_process::line_opened() {
    if (opened_) {
        opened_();
    }
}

}  // namespace dibs::simulation
