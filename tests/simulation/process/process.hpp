// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process of the simulated world: one thread that runs tasks in turn, a second one for
// notifications, a clock, randomness. It can be stopped before every task, and killed between any
// two: then everything of it vanishes, without a word to anybody, but what it has sent may still
// arrive.

#include "core/environment.hpp"
#include "core/timing_wheel.hpp"
#include "simulation/world/host.hpp"
#include "simulation/world/random.hpp"
#include "simulation/world/world.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dibs::simulation {

class process final {
  public:
    process(world& in, host& on, std::string name, std::uint64_t number, std::uint64_t seed);
    ~process();
    process(const process&) = delete;
    process& operator=(const process&) = delete;

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// Never that of another process of the run.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] host& machine() const noexcept { return host_; }
    [[nodiscard]] world& surrounding_world() const noexcept { return world_; }

    [[nodiscard]] core::environment env() noexcept {
        return {executor_, time_, entropy_, notices_};
    }
    [[nodiscard]] core::instant now() const noexcept { return host_.now(); }

    [[nodiscard]] bool alive() const noexcept { return alive_; }
    /// Valid for as long as the run, for events that outlive the process.
    [[nodiscard]] std::shared_ptr<const bool> life() const noexcept { return life_; }

    /// Runs a task in turn.
    void post(core::task work) { executor_.post(std::move(work)); }
    /// Runs a task in turn, once `delay` of the process's own clock has passed.
    void post_in(core::nanoseconds delay, core::task work);

    /// No task runs until then.
    void pause_until(sim_time end);
    [[nodiscard]] sim_time paused_until() const noexcept { return paused_until_; }
    [[nodiscard]] bool paused() const noexcept { return world_.now() < paused_until_; }

    /// At once. Not to be called inside a task of its own.
    void kill();
    /// What is let go of when it is killed, in the reverse order of these calls.
    void at_death(std::function<void()> let_go) { at_death_.push_back(std::move(let_go)); }

    /// Called before each task: where faults come in that strike between two steps. May kill.
    std::function<void()> before_each_task;

  private:
    class step_executor final : public core::executor {
      public:
        explicit step_executor(process& of) : process_(of) {}
        void post(core::task work) override;

      private:
        friend class process;
        process& process_;
        std::deque<core::task> queue_;
        bool scheduled_ = false;
    };
    class wheel_time final : public core::time_source {
      public:
        explicit wheel_time(process& of) : process_(of), wheel_(now()) {}
        [[nodiscard]] core::instant now() const noexcept override;
        void arm(core::timer& alarm, core::instant due) override;
        void disarm(core::timer& alarm) noexcept override;
        void reprogram();

      private:
        void program(core::instant due);
        void fire_due();

        process& process_;
        core::timing_wheel wheel_;
        core::instant programmed_ = core::instant::max();
        std::uint64_t programming_ = 0;
    };
    class seeded_entropy final : public core::entropy {
      public:
        explicit seeded_entropy(random from) : random_(from) {}
        void fill(std::span<std::byte> bytes) override;

      private:
        random random_;
    };
    class second_thread final : public core::notifier {
      public:
        explicit second_thread(process& of) : process_(of) {}
        void notify(core::task work) override;

      private:
        void run_at(sim_time when, core::task work);
        process& process_;
    };

    void schedule(core::nanoseconds delay);
    void run_one();

    world& world_;
    host& host_;
    const std::string name_;
    const std::uint64_t number_;
    random random_;
    bool alive_ = true;
    const std::shared_ptr<bool> life_ = std::make_shared<bool>(true);
    sim_time paused_until_{};
    step_executor executor_{*this};
    wheel_time time_{*this};
    seeded_entropy entropy_;
    second_thread notices_{*this};
    std::vector<std::function<void()>> at_death_;
};

}  // namespace dibs::simulation
