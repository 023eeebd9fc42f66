// SPDX-License-Identifier: Apache-2.0
#include "simulation/workloads/caller.hpp"

#include <utility>

namespace dibs::simulation {

recorder::line call_line(client_process& in,
                         op_word op,
                         std::string_view phase,
                         std::uint64_t call,
                         std::string_view key) {
    auto begun = in.history().event(op, phase);
    begun.number("call", call)
        .text("proc", in.name())
        .time("local_ns", in.self().now())
        .text("key", key);
    return begun;
}

std::string_view phase_of(std::error_code error) {
    const bool unsure = error == condition::outcome_unknown || error == errc::cancelled ||
                        error == errc::closed || error == errc::timed_out;
    return unsure ? "info" : "fail";
}

std::uint64_t note_release(client_process& in, const core::lease_state& lease) {
    const auto call = in.history().new_id();
    call_line(in, "release", "inv", call, lease.key()).number("fence", lease.fence());
    return call;
}

void note_released(client_process& in,
                   std::uint64_t call,
                   const std::string& key,
                   const recipes::release_reply& told) {
    if (told.released) {
        call_line(in, "release", "ok", call, key);
    } else {
        // After an error the client goes on trying to release it.
        call_line(in, "release", told.error ? "info" : "fail", call, key)
            .text("error", told.error ? told.error.message() : "not_held");
    }
}

namespace {

class acquire_told final : public acquire_handler {
  public:
    acquire_told(client_process& in,
                 std::uint64_t call,
                 std::string key,
                 core::nanoseconds ttl,
                 mode how,
                 lease_told told)
        : process_(in),
          call_(call),
          key_(std::move(key)),
          ttl_(ttl),
          how_(how),
          told_(std::move(told)) {}

    void complete(std::error_code error, std::optional<lease> granted) override {
        if (!process_.alive()) {
            return;
        }
        if (!granted) {
            call_line(process_, "acquire", error ? phase_of(error) : "fail", call_, key_)
                .text("error", error ? error.message() : "held");
            told_(nullptr);
            return;
        }
        const auto& state = *detail::lease_access::handle(*granted)->state;
        note_granted(process_, "acquire", call_, ttl_, state, how_);
        told_(std::make_unique<held_lease>(process_, std::move(*granted)));
    }

  private:
    client_process& process_;
    const std::uint64_t call_;
    const std::string key_;
    const core::nanoseconds ttl_;
    const mode how_;
    lease_told told_;
};

class release_told final : public release_handler {
  public:
    release_told(client_process& in,
                 std::uint64_t call,
                 std::string key,
                 std::function<void(bool)> told)
        : process_(in), call_(call), key_(std::move(key)), told_(std::move(told)) {}

    void complete(std::error_code error, release_outcome outcome) override {
        if (!process_.alive()) {
            return;
        }
        const bool released = !error && outcome == release_outcome::released;
        note_released(process_, call_, key_, {.released = released, .error = error, .detail = {}});
        told_(released);
    }

  private:
    client_process& process_;
    const std::uint64_t call_;
    const std::string key_;
    std::function<void(bool)> told_;
};

class hand_over_told final : public hand_over_handler {
  public:
    hand_over_told(client_process& in,
                   std::uint64_t call,
                   std::unique_ptr<held_lease> held,
                   text_told told)
        : process_(in), call_(call), held_(std::move(held)), told_(std::move(told)) {}

    void complete(std::error_code error, std::string text) override {
        if (!process_.alive()) {
            return;
        }
        const auto phase = error ? phase_of(error) : "ok";
        {
            auto ended = call_line(process_, "hand_over", phase, call_, held_->key());
            if (error) {
                ended.text("error", error.message());
            }
        }
        if (!error) {
            held_.reset();
        }
        told_(std::move(text), std::move(held_));
    }

  private:
    client_process& process_;
    const std::uint64_t call_;
    std::unique_ptr<held_lease> held_;
    text_told told_;
};

class adopt_told final : public adopt_handler {
  public:
    adopt_told(client_process& in,
               std::uint64_t call,
               std::string key,
               core::nanoseconds ttl,
               lease_told told)
        : process_(in), call_(call), key_(std::move(key)), ttl_(ttl), told_(std::move(told)) {}

    void complete(std::error_code error, lease adopted) override {
        if (!process_.alive()) {
            return;
        }
        if (error) {
            call_line(process_, "adopt", phase_of(error), call_, key_)
                .text("error", error.message());
            told_(nullptr);
            return;
        }
        note_granted(process_, "adopt", call_, ttl_, *detail::lease_access::handle(adopted)->state);
        told_(std::make_unique<held_lease>(process_, std::move(adopted)));
    }

  private:
    client_process& process_;
    const std::uint64_t call_;
    const std::string key_;
    const core::nanoseconds ttl_;
    lease_told told_;
};

/// A history says nothing of it where a lease is exclusive.
void note_mode(recorder::line& in, mode how) {
    if (how.capacity() != 1) {
        in.number("weight", how.weight()).number("capacity", how.capacity());
    }
}

}  // namespace

void note_granted(client_process& in,
                  op_word op,
                  std::uint64_t call,
                  core::nanoseconds ttl,
                  const core::lease_state& state,
                  mode how) {
    const auto* heard = in.edge().grant_of(state.holder);
    auto told = call_line(in, op, "ok", call, state.key());
    told.number("fence", state.fence());
    note_mode(told, how);
    if (heard == nullptr) {
        // The client gave a lease of which nothing has come from the store: the checker must see it.
        told.time("ttl_ns", ttl)
            .time("sent_local_ns", in.self().now())
            .time("deadline_local_ns", state.deadline());
        return;
    }
    if (state.fence() != heard->fences.first) {
        told.flag("handed_on", true);
        return;
    }
    told.time("ttl_ns", ttl)
        .time("sent_local_ns", heard->sent)
        .time("deadline_local_ns", state.deadline());
    if (heard->fences.last != heard->fences.first) {
        told.number("fence_last", heard->fences.last);
    }
}

held_lease::held_lease(client_process& in, lease taken) : process_(in), lease_(std::move(taken)) {
    on_lost_.emplace(lease_.lost(), [this, state = detail::lease_access::handle(lease_)->state] {
        if (!process_.alive()) {
            return;
        }
        if (!lease_.held()) {
            note_lost(*state);
            return;
        }
        // With `notice` it is told while the lease is still held, and its end is told no more.
        on_end_ = std::make_shared<client_process::loss_listener>([this, state] {
            if (state->lost_reason()) {
                note_lost(*state);
                on_end_.reset();
            }
        });
        process_.on_loss(on_end_);
    });
}

void held_lease::note_lost(const core::lease_state& which) {
    process_.history()
        .event("lost")
        .text("proc", process_.name())
        .time("local_ns", process_.self().now())
        .text("key", which.key())
        .number("fence", which.fence());
}

bool held_lease::held() {
    const bool yes = lease_.held();
    process_.history()
        .event("held")
        .text("proc", process_.name())
        .time("local_ns", process_.self().now())
        .text("key", key())
        .number("fence", fence())
        .flag("held", yes);
    return yes;
}

void acquire(client_process& in,
             const std::string& key,
             const acquire_options& options,
             const operation& call,
             lease_told told) {
    const auto number = in.history().new_id();
    {
        auto begun = call_line(in, "acquire", "inv", number, key);
        begun.time("ttl_ns", core::nanoseconds{options.ttl});
        if (options.wait > core::milliseconds::zero()) {
            begun.flag("waits", true);
        }
        note_mode(begun, options.mode);
    }
    start_acquire(
        in.client(),
        key,
        options,
        std::make_unique<acquire_told>(in, number, key, options.ttl, options.mode, std::move(told)),
        call);
}

void give_back(client_process& in,
               std::unique_ptr<held_lease> held,
               std::function<void(bool)> told) {
    const auto call = in.history().new_id();
    call_line(in, "release", "inv", call, held->key()).number("fence", held->fence());
    auto handler = std::make_unique<release_told>(in, call, held->key(), std::move(told));
    auto handle = std::move(held->handle());
    held.reset();
    start_release(std::move(handle), std::move(handler));
}

void hand_over(client_process& in, std::unique_ptr<held_lease> held, text_told told) {
    const auto call = in.history().new_id();
    call_line(in, "hand_over", "inv", call, held->key()).number("fence", held->fence());
    auto& handle = held->handle();
    start_hand_over(handle,
                    std::make_unique<hand_over_told>(in, call, std::move(held), std::move(told)));
}

void adopt(client_process& in,
           const std::string& key,
           const std::string& text,
           const acquire_options& options,
           lease_told told) {
    const auto call = in.history().new_id();
    call_line(in, "adopt", "inv", call, key).time("ttl_ns", core::nanoseconds{options.ttl});
    start_adopt(in.client(),
                text,
                options,
                std::make_unique<adopt_told>(in, call, key, options.ttl, std::move(told)));
}

}  // namespace dibs::simulation
