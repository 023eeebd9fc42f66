// SPDX-License-Identifier: Apache-2.0
#include "simulation/run/scene.hpp"

#include <algorithm>
#include <utility>

namespace dibs::simulation {

scene::scene(const plan& from) : drawn(from), chance(from.seed) {
    seats_.resize(drawn.processes);
    for (std::size_t at = 0; at < seats_.size(); ++at) {
        auto& one = seats_[at];
        if (at == 0 || !drawn.store->one_host) {
            const auto up_for = chance.between(std::chrono::minutes{1}, std::chrono::hours{2000});
            one.machine = std::make_unique<host>(
                world, "host" + std::to_string(at), up_for, std::chrono::hours{24 * 365 * 56});
            const auto note = [this, machine = one.machine.get()] { note_clocks(*machine); };
            one.machine->on_change({note, note});
        }
        one.on = one.machine ? one.machine.get() : seats_.front().on;
    }
    store_ =
        drawn.store->make({world, history, laws, chance.split(), *seats_.front().on, drawn.ttl});
}

scene::~scene() {
    for (auto& one : seats_) {
        if (one.now) {
            one.now->kill();
        }
    }
    world.clear();
}

/// The checker draws straight lines between the times that it knows.
void scene::note_clocks(const host& of) {
    for (const auto& one : seats_) {
        if (one.on == &of && one.now && one.now->alive()) {
            history.event("clock").text("proc", one.now->name()).time("local_ns", of.now());
        }
    }
}

void scene::start_all() {
    for (auto& one : seats_) {
        start(one);
    }
}

void scene::start(seat& one) {
    const auto at = static_cast<char>('A' + (&one - seats_.data()));
    auto name = std::string{at} + std::to_string(++one.lives);
    one.now = std::make_unique<client_process>(world,
                                               *one.on,
                                               std::move(name),
                                               ++processes_,
                                               chance.next(),
                                               history,
                                               counted,
                                               *store_,
                                               one.conditions);
    history.event("clock").text("proc", one.now->name()).time("local_ns", one.on->now());
    put_to_work(*one.now);
}

void scene::kill(seat& one, core::nanoseconds down_for) {
    if (!one.now || !one.now->alive()) {
        return;
    }
    history.event("fault", "at")
        .text("name", "kill")
        .text("proc", one.now->name())
        .time("local_ns", one.on->now());
    one.now->kill();
    store_->died(one.now->self());
    dead_.push_back(std::move(one.now));
    world.in(down_for, [this, &one] { start(one); });
}

void scene::close(seat& one, core::nanoseconds patience, core::nanoseconds down_for) {
    if (!one.now || !one.now->alive()) {
        return;
    }
    one.now->close();
    world.in(patience, [this, &one, who = one.now.get(), down_for] {
        if (one.now.get() == who) {
            kill(one, down_for);
        }
    });
}

void scene::cut_all() {
    for (auto& one : seats_) {
        if (one.now) {
            one.now->cut_connections();
        }
    }
}

void scene::line_opened(seat& one) {
    if (one.now) {
        one.now->line_opened();
    }
}

void scene::heal() {
    healed_ = true;
    history.event("heal");
}

}  // namespace dibs::simulation
