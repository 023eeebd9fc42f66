// SPDX-License-Identifier: Apache-2.0
#include "core/undo.hpp"

#include <algorithm>
#include <utility>

namespace dibs::core {

namespace {
constexpr nanoseconds first_pause = milliseconds{20};
constexpr nanoseconds longest_pause = std::chrono::seconds{2};
}  // namespace

struct undo::settlement {
    settlement(doubtful_acquire doubt, undo& owner)
        : what(std::move(doubt)),
          retry([this, &owner] { owner.ask(owner.cases_.at(what.holder)); }) {}

    doubtful_acquire what;
    nanoseconds pause = first_pause;
    timer retry;

    /// After this nothing that the acquire may have granted is alive, nor can the store still
    /// execute it late: the entries carry deadlines of at most a sixth of the ttl.
    [[nodiscard]] instant over() const noexcept { return what.last_sent + 2 * what.ttl; }
};

undo::undo(environment env, batcher& through) : env_(env), batcher_(through) {}

undo::~undo() = default;

void undo::settle(doubtful_acquire what) {
    const auto [at, fresh] = cases_.try_emplace(what.holder);
    if (fresh) {
        at->second = std::make_shared<settlement>(std::move(what), *this);
    } else {
        auto& known = at->second->what;
        known.answered = known.answered || what.answered;
        known.not_after = known.not_after && what.not_after
                              ? std::optional{std::max(*known.not_after, *what.not_after)}
                              : std::nullopt;
        known.last_sent = std::max(known.last_sent, what.last_sent);
    }
    ask(std::shared_ptr(at->second));
}

void undo::acquire_answered(const holder_id& holder) {
    if (const auto at = cases_.find(holder); at != cases_.end()) {
        at->second->what.answered = true;
        ask(std::shared_ptr(at->second));
    }
}

void undo::ask(const std::shared_ptr<settlement>& which) {
    const auto now = env_.time.now();
    release asked;
    asked.key = which->what.key;
    asked.holder = which->what.holder;
    batcher_.submit(
        std::move(asked),
        std::max<nanoseconds>(which->what.ttl / 6, milliseconds{50}),
        std::max(which->over(), now + milliseconds{1}),
        [this, sure = which->what.answered, weak = std::weak_ptr(which)](const reply& heard) {
            if (const auto still_open = weak.lock()) {
                told(still_open, heard, sure);
            }
        });
}

void undo::told(const std::shared_ptr<settlement>& which,
                const reply& heard,
                bool acquire_was_answered) {
    const auto& given = heard.given;
    const bool executed = given.took == effect::yes;
    if (executed && given.what == verdict::released) {
        ++undone_;
    }
    const auto& not_after = which->what.not_after;
    const bool too_late_to_be_granted = not_after && given.now.lease > *not_after;
    const bool definite = executed && (acquire_was_answered || too_late_to_be_granted);
    const auto now = env_.time.now();
    if (definite || now >= which->over() || given.error == errc::closed) {
        if (settled_ && given.error != errc::closed) {
            settled_(which->what,
                     !definite              ? proof::expired
                     : acquire_was_answered ? proof::answered
                                            : proof::too_late);
        }
        cases_.erase(which->what.holder);
        return;
    }
    env_.time.arm(which->retry, now + which->pause);
    which->pause = std::min(which->pause * 2, longest_pause);
}

}  // namespace dibs::core
