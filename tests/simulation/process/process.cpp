// SPDX-License-Identifier: Apache-2.0
#include "simulation/process/process.hpp"

#include <algorithm>
#include <utility>

namespace dibs::simulation {

namespace {

/// A task takes a little time, and not always the same: so those of several processes interleave in
/// many ways.
constexpr core::nanoseconds task_least{200};
constexpr core::nanoseconds task_most = core::microseconds{20};

}  // namespace

process::process(world& in, host& on, std::string name, std::uint64_t number, std::uint64_t seed)
    : world_(in),
      host_(on),
      name_(std::move(name)),
      number_(number),
      random_(seed),
      entropy_(random_.split()) {
    host_.on_change({[] {},
                     [this, life = life_] {
                         if (*life) {
                             time_.reprogram();
                         }
                     }});
}

process::~process() {
    kill();
}

void process::post_in(core::nanoseconds delay, core::task work) {
    world_.at(host_.when(host_.now() + delay),
              [this, life = life_, work = std::move(work)]() mutable {
                  if (*life) {
                      post(std::move(work));
                  }
              });
}

void process::pause_until(sim_time end) {
    paused_until_ = std::max(paused_until_, end);
}

void process::kill() {
    if (!std::exchange(alive_, false)) {
        return;
    }
    *life_ = false;
    while (!at_death_.empty()) {
        const auto let_go = std::move(at_death_.back());
        at_death_.pop_back();
        let_go();
    }
    while (!executor_.queue_.empty()) {
        const auto forgotten = std::move(executor_.queue_.front());
        executor_.queue_.pop_front();
    }
}

void process::step_executor::post(core::task work) {
    if (!process_.alive_) {
        return;
    }
    queue_.push_back(std::move(work));
    if (!std::exchange(scheduled_, true)) {
        process_.schedule(process_.random_.between(task_least, task_most));
    }
}

void process::schedule(core::nanoseconds delay) {
    world_.in(delay, [this, life = life_] {
        if (*life) {
            run_one();
        }
    });
}

void process::run_one() {
    if (before_each_task) {
        before_each_task();
    }
    if (!alive_) {
        return;
    }
    if (paused()) {
        schedule(paused_until_ - world_.now());
        return;
    }
    auto work = std::move(executor_.queue_.front());
    executor_.queue_.pop_front();
    work();
    work = nullptr;
    executor_.scheduled_ = !executor_.queue_.empty();
    if (executor_.scheduled_) {
        schedule(random_.between(task_least, task_most));
    }
}

void process::second_thread::notify(core::task work) {
    const auto soon = process_.world_.now() + process_.random_.between(task_least, 10 * task_most);
    run_at(soon, std::move(work));
}

void process::second_thread::run_at(sim_time when, core::task work) {
    process_.world_.at(when, [this, life = process_.life_, work = std::move(work)]() mutable {
        if (!*life) {
            return;
        }
        if (process_.paused()) {
            run_at(process_.paused_until_, std::move(work));
        } else {
            work();
        }
    });
}

void process::seeded_entropy::fill(std::span<std::byte> bytes) {
    std::uint64_t drawn = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        drawn = at % 8 == 0 ? random_.next() : drawn >> 8U;
        bytes[at] = static_cast<std::byte>(drawn & 0xFFU);
    }
}

// --- timers, as the real client keeps them -------------------------------------------------------

core::instant process::wheel_time::now() const noexcept {
    return process_.host_.now();
}

void process::wheel_time::arm(core::timer& alarm, core::instant due) {
    disarm(alarm);
    if (!process_.alive_) {
        return;
    }
    alarm.mark_armed(*this, due);
    wheel_.insert(alarm);
    if (due < programmed_) {
        program(due);
    }
}

void process::wheel_time::disarm(core::timer& alarm) noexcept {
    if (alarm.armed()) {
        wheel_.remove(alarm);
        alarm.mark_disarmed();
    }
}

void process::wheel_time::reprogram() {
    if (programmed_ != core::instant::max()) {
        program(programmed_);
    }
}

void process::wheel_time::program(core::instant due) {
    programmed_ = due;
    process_.world_.at(process_.host_.when(due),
                       [this, life = process_.life_, number = ++programming_] {
                           if (*life && number == programming_) {
                               process_.post([this] { fire_due(); });
                           }
                       });
}

void process::wheel_time::fire_due() {
    programmed_ = core::instant::max();
    while (auto* const due = wheel_.pop_due(now())) {
        due->mark_disarmed();
        due->fire();
    }
    if (const auto next = wheel_.next_wake(); next && *next < programmed_) {
        program(*next);
    }
}

}  // namespace dibs::simulation
