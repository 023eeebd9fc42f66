// SPDX-License-Identifier: Apache-2.0
#include "cli/supervisor/stopper.hpp"

#include <algorithm>

namespace dibs::cli {

stop_cause stopper::due(core::instant now) const noexcept {
    if (lost_) {
        return stop_cause::lost;
    }
    if (now >= stop_at()) {
        return stop_cause::deadline;
    }
    if (wrapper_gone_) {
        return stop_cause::wrapper_gone;
    }
    if (now >= limits_.max_hold) {
        return stop_cause::max_hold;
    }
    if (now >= limits_.max_runtime) {
        return stop_cause::max_runtime;
    }
    return stop_cause::none;
}

stop_action stopper::next(core::instant now) noexcept {
    if (stage_ == stage::killed) {
        return stop_action::none;
    }
    if (forced_) {
        stage_ = stage::killed;
        if (cause_ == stop_cause::none) {
            cause_ = stop_cause::forced;
        }
        kill_at_ = now;
        return stop_action::kill;
    }
    if (stage_ == stage::running) {
        cause_ = due(now);
        if (cause_ == stop_cause::none) {
            return stop_action::none;
        }
        stage_ = stage::stopping;
        // Somebody who woke too late has no grace left to give. After a loss the deadline says
        // nothing any more.
        kill_at_ = now + limits_.grace;
        if (cause_ != stop_cause::lost && deadline_ != never) {
            kill_at_ = std::min(kill_at_, deadline_ - limits_.margin);
        }
        return stop_action::terminate;
    }
    if (now >= kill_at_) {
        stage_ = stage::killed;
        return stop_action::kill;
    }
    return stop_action::none;
}

core::instant stopper::wake_at() const noexcept {
    switch (stage_) {
        case stage::running:
            return std::min({stop_at(), limits_.max_hold, limits_.max_runtime});
        case stage::stopping:
            return kill_at_;
        case stage::killed:
            break;
    }
    return never;
}

}  // namespace dibs::cli
