// SPDX-License-Identifier: Apache-2.0
#include "store/memory/memory_store.hpp"

#include "store/memory/memory_space.hpp"

#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

namespace dibs::store {

namespace {

constexpr capabilities memory_caps{
    .name = "memory",
    .ttl_min = core::milliseconds{50},
    .ttl_max = std::chrono::hours{24 * 365},
    .wakes = true,
    .notices_death = true,
    .shared = true,
    .queues = true,
    .keeps_grants = false,
    .survives_restart = false,
    .fence_source = "counter in the record and wall clock",
    .scope = "this process",
};

core::answer closed_answer() {
    return core::refused(errc::closed, "the store was closed before it began the step");
}

core::page closed_page() {
    core::page refusal;
    refusal.error = errc::closed;
    refusal.detail = "the store was closed";
    return refusal;
}

/// What is queued on the executor may outlive the store object: it holds the state weakly.
struct memory_state final : std::enable_shared_from_this<memory_state> {
    struct watcher {
        watch_completion ready;
        wake_callback wake;
    };
    /// Runs the work, or only answers that it will not.
    using job = core::unique_function<void(bool closed)>;

    memory_state(core::environment world, memory_options given)
        : env{world},
          options{std::move(given)},
          space{memory_space::open(options.name)},
          self{space->join(options.who)} {}

    void queue(std::deque<job>& where, job work) {
        where.push_back(std::move(work));
        env.exec.post([weak = weak_from_this()] {
            if (const auto state = weak.lock()) {
                state->run_next();
            }
        });
    }

    void run_next() {
        auto& from = renewals.empty() ? others : renewals;
        if (from.empty()) {
            return;  // closed meanwhile
        }
        auto work = std::move(from.front());
        from.pop_front();
        work(false);
    }

    void close() {
        if (std::exchange(closed, true)) {
            return;
        }
        watchers.clear();
        space->leave(self, options.clock());
        for (auto* lane_queue : {&renewals, &others}) {
            while (!lane_queue->empty()) {
                auto work = std::move(lane_queue->front());
                lane_queue->pop_front();
                work(true);
            }
        }
    }

    core::environment env;
    memory_options options;
    std::shared_ptr<memory_space> space;
    std::uint64_t self;
    bool closed = false;
    std::deque<job> renewals;
    std::deque<job> others;
    std::map<watch_id, std::shared_ptr<watcher>> watchers;
};

class memory_store final : public store {
  public:
    memory_store(core::environment env, memory_options options)
        : location_{"memory:" + options.name},
          caps_{memory_caps},
          state_{std::make_shared<memory_state>(env, std::move(options))} {
        caps_.wakes_all = state_->options.wakes_all;
    }

    ~memory_store() override { state_->close(); }

    [[nodiscard]] const capabilities& caps() const noexcept override { return caps_; }
    [[nodiscard]] const std::string& location() const noexcept override { return location_; }

    void execute(lane which, std::vector<core::entry> batch, batch_completion done) override {
        auto* state = state_.get();
        memory_state::job work = [state, batch = std::move(batch), done = std::move(done)](
                                     bool closed) mutable {
            if (closed) {
                done(answers(batch.size(), closed_answer()));
            } else if (batch.size() > max_batch_entries) {
                done(answers(batch.size(),
                             core::refused(errc::invalid_argument, "too many entries in a batch")));
            } else {
                done(state->space->execute(state->self,
                                           batch,
                                           state->options.clock,
                                           state->env.time.now(),
                                           state->options.wakes_all));
            }
        };
        submit(which == lane::renewals ? state_->renewals : state_->others, std::move(work));
    }

    watch_id watch(std::string_view key, watch_completion ready, wake_callback wake) override {
        auto& exec = state_->env.exec;
        if (state_->closed) {
            exec.post([ready = std::move(ready)]() mutable { ready(errc::closed); });
            return 0;
        }
        const auto id = memory_space::new_watch_id();
        auto added = std::make_shared<memory_state::watcher>();
        added->ready = std::move(ready);
        added->wake = std::move(wake);
        state_->watchers[id] = added;
        const std::weak_ptr<memory_state::watcher> weak = added;
        state_->space->watch(id, state_->self, key, [&exec, weak](wake_by whose) {
            exec.post([weak, whose] {
                if (const auto watcher = weak.lock()) {
                    watcher->wake(whose);
                }
            });
        });
        exec.post([weak] {
            if (const auto watcher = weak.lock()) {
                watcher->ready({});
            }
        });
        return id;
    }

    void unwatch(watch_id id) override {
        state_->watchers.erase(id);
        state_->space->unwatch(id);
    }

    void list(std::string prefix,
              std::string after,
              std::size_t limit,
              page_completion done) override {
        auto* state = state_.get();
        submit(state_->others,
               [state,
                prefix = std::move(prefix),
                after = std::move(after),
                limit,
                done = std::move(done)](bool closed) mutable {
                   done(closed ? closed_page()
                               : state->space->list(
                                     state->self, prefix, after, limit, state->options.clock));
               });
    }

    void close() override { state_->close(); }

  private:
    void submit(std::deque<memory_state::job>& where, memory_state::job work) {
        if (state_->closed) {
            state_->env.exec.post([work = std::move(work)]() mutable { work(true); });
        } else {
            state_->queue(where, std::move(work));
        }
    }

    const std::string location_;
    capabilities caps_;
    const std::shared_ptr<memory_state> state_;
};

}  // namespace

std::unique_ptr<store> make_memory_store(core::environment env, memory_options options) {
    if (!options.clock) {
        throw std::invalid_argument{"a memory store needs a clock"};
    }
    return std::make_unique<memory_store>(env, std::move(options));
}

}  // namespace dibs::store
