// SPDX-License-Identifier: Apache-2.0
#include "checker/search/objects.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

namespace dibs_checker {
namespace {

using register_op = traced<fenced_register>;
using mutex_op = traced<fenced_mutex>;

/// Nothing for calls that surely had no effect, and for reads without an answer.
std::optional<register_op> register_operation(const history& of, position at) {
    const auto& inv = of.events[at];
    const auto* end = of.end_of(inv);
    register_op made;
    made.begin = at;
    made.end = inv.partner;
    made.op.call = inv.sim();
    made.op.what.fence = inv[field::fence];
    made.op.what.fenced = inv.has(field::fence);
    made.op.what.value = inv[field::value];
    using kind = fenced_register::kind;
    const bool answered = end != nullptr && end->ph == phase::ok;
    if (answered) {
        made.op.returned = end->sim();
    }
    if (inv.what == op::read) {
        if (!answered) {
            return std::nullopt;
        }
        made.op.what.what = kind::read;
        made.op.what.value = (*end)[field::value];
        return made;
    }
    made.op.what.what = inv.what == op::write ? kind::write : kind::claim;
    if (end != nullptr && end->ph == phase::fail) {
        if (of.text(*end, field::error) != "stale" || !made.op.what.fenced) {
            return std::nullopt;
        }
        made.op.what.what = kind::refused;
        made.op.returned = end->sim();
    }
    return made;
}

/// What the history tells of one fence of one key.
struct lease_times {
    position begin = nowhere;
    std::int64_t may_end = never;  ///< by itself, earliest
    position because = nowhere;    ///< the event that tells so
};

class mutex_builder {
  public:
    explicit mutex_builder(const subject& of) : of_(of), all_(of.all) {}

    std::map<text_id, std::vector<mutex_op>> run() {
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            if (now.is_ok(op::acquire) || now.is_ok(op::adopt)) {
                acquired(at);
            } else if (now.is_inv(op::release)) {
                released(at);
            } else if (now.what == op::grant) {
                granted_[now[field::key]].insert(now[field::fence]);
            } else if (is_close(now)) {
                closes_[now[field::proc]].push_back(at);
            }
        }
        for (const auto& which : of_.beliefs) {
            expires(which);
        }
        for (position at = 0; at < all_.events.size(); ++at) {
            if (all_.events[at].what == op::end) {
                ended(at);
            } else if (all_.events[at].is_inv(op::hand_over)) {
                handed_over(at);
            }
        }
        for (const auto& [key, leases] : leases_) {
            for (const auto& [fence, times] : leases) {
                if (times.may_end != never) {
                    add(key, fenced_mutex::kind::release, fence, times.may_end, no_return).begin =
                        times.because;
                }
            }
        }
        for (const auto key : shared_) {
            made_.erase(key);
        }
        return std::move(made_);
    }

  private:
    mutex_op& add(text_id key,
                  fenced_mutex::kind what,
                  std::int64_t fence,
                  std::int64_t call,
                  std::int64_t returned) {
        auto& added = made_[key].emplace_back();
        added.op = {{what, fence}, call, returned};
        return added;
    }

    void acquired(position at) {
        const auto& now = all_.events[at];
        if (now[field::capacity] > 1) {
            shared_.insert(now[field::key]);
        }
        const auto& inv = all_.events[now.partner];
        auto& added = add(
            now[field::key], fenced_mutex::kind::acquire, now[field::fence], inv.sim(), now.sim());
        added.begin = now.partner;
        added.end = at;
        leases_[now[field::key]][now[field::fence]].begin = now.partner;
    }

    void released(position at) {
        const auto& inv = all_.events[at];
        const auto* end = all_.end_of(inv);
        if (end != nullptr && end->ph == phase::fail) {
            return;
        }
        const bool sure = end != nullptr && end->ph == phase::ok;
        auto& added = add(inv[field::key],
                          fenced_mutex::kind::release,
                          inv[field::fence],
                          inv.sim(),
                          sure ? end->sim() : no_return);
        added.begin = at;
        added.end = sure ? inv.partner : nowhere;
    }

    /// It ends with its adoption, which brings another fence, or otherwise: at some time from now on.
    void handed_over(position at) {
        const auto& inv = all_.events[at];
        const auto* end = all_.end_of(inv);
        auto* times = lease(inv[field::key], inv[field::fence]);
        const bool may_be = end == nullptr || end->ph != phase::fail;
        if (times != nullptr && may_be && inv.sim() < times->may_end) {
            times->may_end = inv.sim();
            times->because = at;
        }
    }

    lease_times* lease(text_id key, std::int64_t fence) {
        const auto found = leases_.find(key);
        if (found == leases_.end()) {
            return nullptr;
        }
        const auto which = found->second.find(fence);
        return which == found->second.end() ? nullptr : &which->second;
    }

    [[nodiscard]] bool is_close(const event& which) const {
        return which.what == op::fault && all_.text(which, field::name) == "close";
    }

    /// By no call of its own: the belief lasted until the client was closed, or its release was refused
    /// because the close had come before it. nowhere: neither.
    [[nodiscard]] position close_that_gives_back(const belief& which) const {
        if (which.end == nowhere) {
            return nowhere;
        }
        const auto& end = all_.events[which.end];
        if (is_close(end)) {
            return which.end;
        }
        const auto* told = end.is_inv(op::release) ? all_.end_of(end) : nullptr;
        const auto found = closes_.find(end[field::proc]);
        if (told == nullptr || told->ph != phase::fail || found == closes_.end()) {
            return nowhere;
        }
        const auto next = std::upper_bound(found->second.begin(), found->second.end(), which.end);
        return next != found->second.end() && *next < end.partner ? *next : nowhere;
    }

    /// The store cannot have let it expire before its last believer's deadline, unless an unbounded
    /// fault came in between.
    void expires(const belief& which) {
        auto* times = lease(which.key, which.fence);
        if (times == nullptr) {
            return;
        }
        auto may_end = which.deadline;
        auto because = which.extended;
        if (const auto closed = close_that_gives_back(which);
            closed != nowhere && all_.events[closed].sim() < may_end) {
            may_end = all_.events[closed].sim();
            because = closed;
        }
        if (const auto fault = of_.first_excuse(check_id::c2); fault != nowhere) {
            const auto from = std::max(all_.events[fault].sim(), all_.events[times->begin].sim());
            if (from < may_end) {
                may_end = from;
                because = fault;
            }
        }
        if (times->because == nowhere || may_end > times->may_end) {
            times->may_end = may_end;
            times->because = because;
        }
    }

    /// An operator, or a store that knows that the holder is gone, may end it earlier: whichever
    /// fence of the grant's block it has been handed on to.
    void ended(position at) {
        const auto& step = all_.events[at];
        const auto& why = all_.text(step, field::why);
        const auto found = leases_.find(step[field::key]);
        if ((why != "revoked" && why != "died") || found == leases_.end()) {
            return;
        }
        const auto& granted = granted_[step[field::key]];
        const auto next = granted.upper_bound(step[field::fence]);
        for (auto of_block = found->second.lower_bound(step[field::fence]);
             of_block != found->second.end() && (next == granted.end() || of_block->first < *next);
             ++of_block) {
            auto& times = of_block->second;
            if (step.sim() < times.may_end) {
                times.may_end = step.sim();
                times.because = at;
            }
        }
    }

    const subject& of_;
    const history& all_;
    std::map<text_id, std::vector<mutex_op>> made_;
    std::map<text_id, std::map<std::int64_t, lease_times>> leases_;
    std::map<text_id, std::set<std::int64_t>> granted_;  ///< first fences
    std::map<text_id, std::vector<position>> closes_;    ///< by process
    std::set<text_id> shared_;
};

}  // namespace

std::map<text_id, std::vector<register_op>> registers_in(const history& of) {
    std::map<text_id, std::vector<register_op>> made;
    for (position at = 0; at < of.events.size(); ++at) {
        const auto& now = of.events[at];
        const bool ours = now.what == op::write || now.what == op::claim || now.what == op::read;
        if (ours && now.ph == phase::inv) {
            if (auto found = register_operation(of, at)) {
                made[now[field::key]].push_back(*found);
            }
        }
    }
    return made;
}

std::map<text_id, std::vector<mutex_op>> mutexes_in(const subject& of) {
    return mutex_builder{of}.run();
}

void shrink(shrinker<fenced_register>& what) {
    using kind = fenced_register::kind;
    const auto& ops = what.ops();
    // Reads and refusals change nothing: whatever order explains them explains the rest.
    std::vector<std::vector<std::size_t>> harmless;
    for (std::size_t op = 0; op < ops.size(); ++op) {
        if (what.kept(op) &&
            (ops[op].what.what == kind::read || ops[op].what.what == kind::refused)) {
            harmless.push_back({op});
        }
    }
    what.take_away(harmless);

    // Without the writes of a value nobody reads it, and the fences that remain are the same or
    // smaller: only a refusal by a smaller fence could have needed them.
    std::int64_t smallest_refused = std::numeric_limits<std::int64_t>::max();
    for (std::size_t op = 0; op < ops.size(); ++op) {
        if (what.kept(op) && ops[op].what.what == kind::refused) {
            smallest_refused = std::min(smallest_refused, ops[op].what.fence);
        }
    }
    std::map<std::int64_t, std::vector<std::size_t>> by_value;
    std::set<std::int64_t> needed;
    std::vector<std::vector<std::size_t>> parts;
    for (std::size_t op = 0; op < ops.size(); ++op) {
        const auto& action = ops[op].what;
        if (!what.kept(op) || action.what == kind::refused) {
            continue;
        }
        const bool needed_fence =
            action.what != kind::read && action.fenced && action.fence > smallest_refused;
        if (action.what == kind::claim) {
            if (!needed_fence) {
                parts.push_back({op});
            }
            continue;
        }
        by_value[action.value].push_back(op);
        if (needed_fence) {
            needed.insert(action.value);
        }
    }
    for (auto& [value, group] : by_value) {
        if (!needed.contains(value)) {
            parts.push_back(std::move(group));
        }
    }
    what.take_away(parts);
}

void shrink(shrinker<fenced_mutex>& what) {
    // A lease with all its endings: without it the mutex is free more often, and fences still rise.
    std::map<std::int64_t, std::vector<std::size_t>> by_fence;
    for (std::size_t op = 0; op < what.ops().size(); ++op) {
        if (what.kept(op)) {
            by_fence[what.ops()[op].what.fence].push_back(op);
        }
    }
    std::vector<std::vector<std::size_t>> parts;
    parts.reserve(by_fence.size());
    for (auto& [fence, group] : by_fence) {
        parts.push_back(std::move(group));
    }
    what.take_away(parts);
}

}  // namespace dibs_checker
