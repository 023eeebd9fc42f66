// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether operations that overlap in time can be put into an order in which a sequential object
// would have given the same answers: linearizability, for one object.
//
// Source: J. Wing, C. Gong, "Testing and verifying concurrent objects" (J. Parallel Distrib.
// Comput. 17, 1993), for the search; G. Lowe, "Testing for linearizability" (Concurrency and
// Computation 29(4), 2017), for remembering configurations and for choosing an operation only when
// some return forces a choice ("just in time"); A. Horn, D. Kroening, "Faster linearizability
// checking via P-compositionality" (FORTE 2015), for searching one object, here one key, at a time.
//
// A configuration is: how far the returns were explained, the object's state, and which operations
// took effect without having returned. Depth first; each configuration is entered once.
//
// Two cuts that lose nothing. An operation that only looks takes effect at once when what it was
// answered is there. (One that writes what is there already must not: later it would not leave the
// state as it is.) An optional operation that would leave the state as it is is not tried.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

namespace dibs_checker {

inline constexpr std::int64_t no_return = std::numeric_limits<std::int64_t>::max();

/// An operation of a model, with its interval, which is closed at both ends. Without a return it is
/// optional: it may take effect at any time after its call, or never.
template <class Model>
struct operation {
    typename Model::action what;
    std::int64_t call = 0;
    std::int64_t returned = no_return;

    [[nodiscard]] bool optional() const noexcept { return returned == no_return; }
};

enum class search_result : std::uint8_t { linearizable, impossible, out_of_steps };

struct search_report {
    search_result result = search_result::linearizable;
    std::uint64_t steps = 0;
    std::size_t stuck_at = 0;  ///< the operation whose return no order gets past (impossible)
};

/// Model: `action`, `state` (equality, `hash()`), and
///   std::optional<state> step(const state&, const action&): nothing when the answer is impossible;
///   bool observes(const action&): it never changes the state;
///   bool spent(const state&, const action&): an optional action can change no state from now on;
///   std::optional<std::int64_t> rank(const action&) and std::int64_t reached(const state&): actions
///     with a rank are only possible above the rank reached, which never falls. So none may go
///     before one of a smaller rank that has to come.
template <class Model>
class search {
  public:
    using op_type = operation<Model>;
    using state = typename Model::state;

    explicit search(const std::vector<op_type>& ops) : ops_(ops) {
        // At equal stamps calls come first: whatever meets at one instant is concurrent.
        struct entry {
            std::int64_t time;
            bool is_return;
            std::size_t op;
        };
        std::vector<entry> entries;
        for (std::size_t index = 0; index < ops.size(); ++index) {
            entries.push_back({ops[index].call, false, index});
            if (!ops[index].optional()) {
                entries.push_back({ops[index].returned, true, index});
            }
        }
        std::sort(entries.begin(), entries.end(), [](const entry& left, const entry& right) {
            return std::tuple{left.time, left.is_return, left.op} <
                   std::tuple{right.time, right.is_return, right.op};
        });
        for (const auto& op : ops) {
            if (const auto rank = Model::rank(op.what); rank && !op.optional()) {
                ranks_.push_back(*rank);
            }
        }
        std::sort(ranks_.begin(), ranks_.end());
        std::vector<std::size_t> open;
        for (const auto& now : entries) {
            if (now.is_return) {
                returns_.push_back({now.op, open, optional_.size()});
                std::erase(open, now.op);
            } else if (ops[now.op].optional()) {
                optional_.push_back(now.op);
            } else {
                open.push_back(now.op);
            }
        }
    }

    [[nodiscard]] search_report run(std::uint64_t steps_max) {
        report_ = {};
        seen_.clear();
        stack_.clear();
        if (enter({0, Model::initial(), {}})) {
            return report_;
        }
        while (!stack_.empty()) {
            if (report_.steps >= steps_max) {
                report_.result = search_result::out_of_steps;
                return report_;
            }
            const auto chosen = next_candidate(stack_.back());
            if (!chosen) {
                stack_.pop_back();
                continue;
            }
            ++report_.steps;
            const auto& from = stack_.back().at;
            auto after = Model::step(from.now, ops_[*chosen].what);
            if (!after || (ops_[*chosen].optional() && *after == from.now)) {
                continue;
            }
            configuration reached{from.explained, std::move(*after), from.done};
            insert(reached.done, *chosen);
            if (enter(std::move(reached))) {
                return report_;
            }
        }
        report_.result = search_result::impossible;
        report_.stuck_at = returns_[furthest_].op;
        return report_;
    }

  private:
    struct return_point {
        std::size_t op;
        std::vector<std::size_t> open;  ///< begun, not returned, and not optional
        std::size_t optional_begun;     ///< so many of `optional_`
    };
    struct configuration {
        std::size_t explained = 0;  ///< returns
        state now;
        std::vector<std::size_t> done;  ///< sorted

        friend bool operator==(const configuration&, const configuration&) = default;
    };
    struct configuration_hash {
        std::size_t operator()(const configuration& of) const noexcept {
            std::size_t made = of.explained * 0x9e3779b97f4a7c15U ^ of.now.hash();
            for (const auto op : of.done) {
                made = (made ^ op) * 0x100000001b3U;
            }
            return made;
        }
    };
    struct frame {
        configuration at;
        std::size_t next = 0;  ///< candidate to try
    };

    static void insert(std::vector<std::size_t>& sorted, std::size_t what) {
        sorted.insert(std::lower_bound(sorted.begin(), sorted.end(), what), what);
    }
    static bool contains(const std::vector<std::size_t>& sorted, std::size_t what) {
        return std::binary_search(sorted.begin(), sorted.end(), what);
    }

    /// The next operation to try from here: the one whose return is due, then the others.
    std::optional<std::size_t> next_candidate(frame& from) {
        const auto& point = returns_[from.at.explained];
        while (from.next < 1 + point.open.size() + point.optional_begun) {
            const auto number = from.next++;
            std::size_t candidate = point.op;
            if (number > 0) {
                const auto index = number - 1;
                if (index < point.open.size()) {
                    candidate = point.open[index];
                    if (candidate == point.op) {
                        continue;
                    }
                } else {
                    // The latest first: of many endings of leases that may be, it is that of the last one.
                    candidate = optional_[point.optional_begun - 1 - (index - point.open.size())];
                }
            }
            if (!contains(from.at.done, candidate) && !too_early(from.at.now, candidate)) {
                return candidate;
            }
        }
        return std::nullopt;
    }

    /// Whether a smaller rank is still to come.
    [[nodiscard]] bool too_early(const state& now, std::size_t op) const {
        const auto rank = Model::rank(ops_[op].what);
        if (!rank) {
            return false;
        }
        const auto next = std::upper_bound(ranks_.begin(), ranks_.end(), Model::reached(now));
        return next != ranks_.end() && *next < *rank;
    }

    /// Goes on to the first return that forces a choice. True when there is none left.
    bool enter(configuration at) {
        std::erase_if(at.done, [&](std::size_t op) {
            return ops_[op].optional() && Model::spent(at.now, ops_[op].what);
        });
        while (at.explained < returns_.size()) {
            const auto& point = returns_[at.explained];
            for (const auto op : point.open) {
                if (!contains(at.done, op) && Model::observes(ops_[op].what) &&
                    Model::step(at.now, ops_[op].what)) {
                    insert(at.done, op);
                }
            }
            if (!contains(at.done, point.op)) {
                break;
            }
            at.done.erase(std::lower_bound(at.done.begin(), at.done.end(), point.op));
            ++at.explained;
            ++report_.steps;
        }
        if (at.explained == returns_.size()) {
            report_.result = search_result::linearizable;
            return true;
        }
        furthest_ = std::max(furthest_, at.explained);
        if (seen_.insert(at).second) {
            stack_.push_back({std::move(at), 0});
        }
        return false;
    }

    const std::vector<op_type>& ops_;
    std::vector<return_point> returns_;
    std::vector<std::size_t> optional_;
    std::vector<std::int64_t> ranks_;  ///< of what has to take effect
    std::vector<frame> stack_;
    std::unordered_set<configuration, configuration_hash> seen_;
    search_report report_;
    std::size_t furthest_ = 0;
};

template <class Model>
[[nodiscard]] search_report linearize(const std::vector<operation<Model>>& ops,
                                      std::uint64_t steps_max) {
    return search<Model>{ops}.run(steps_max);
}

}  // namespace dibs_checker
