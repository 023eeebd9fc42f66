// SPDX-License-Identifier: Apache-2.0
#include "checker/beliefs.hpp"

#include "checker/ledger.hpp"

#include <algorithm>
#include <unordered_map>

namespace dibs_checker {
namespace {

class believer {
  public:
    believer(const history& of, const clock_map& clocks) : all_(of), clocks_(clocks) {}

    std::vector<belief> run() {
        for (position at = 0; at < all_.events.size(); ++at) {
            take(at);
        }
        return std::move(beliefs_);
    }

  private:
    /// What one process got of one grant: a block, and one deadline for all of its fences.
    struct holding {
        std::int64_t fence_last = 0;
        std::int64_t until = 0;
        position stems_from = nowhere;
        std::vector<std::size_t> open;  ///< beliefs that nothing but the deadline has ended
    };

    void take(position at) {
        const auto& now = all_.events[at];
        switch (now.what) {
            case op::acquire:
            case op::adopt:
                if (now.ph == phase::ok) {
                    begin(at);
                }
                break;
            case op::renew:
                if (now.ph == phase::inv) {
                    cap(at);
                } else if (now.ph == phase::ok && now.has(field::deadline_local_ns)) {
                    extend(at);
                } else if (now.ph == phase::fail && all_.text(now, field::error) == "not_held") {
                    end_all(at);
                }
                break;
            case op::release:
                if (now.ph == phase::inv) {
                    end_one(at);
                }
                break;
            case op::hand_over:
                if (now.ph == phase::ok) {
                    end_one(at);
                }
                break;
            case op::lost:
                end_one(at);
                break;
            case op::held:
                if (now[field::held] == 0) {
                    end_one(at);
                }
                break;
            case op::fault:
                if (now.ph == phase::at && (all_.text(now, field::name) == "kill" ||
                                            all_.text(now, field::name) == "close")) {
                    end_process(at);
                    over_.emplace(now[field::proc], at);
                }
                break;
            default:
                break;
        }
    }

    holding* find(const event& now) {
        const auto found = index_.find(pair_of(now[field::proc], now[field::key]));
        if (found == index_.end()) {
            return nullptr;
        }
        const auto index = found->second.at_or_below(now[field::fence]);
        if (index == block_index::none || holdings_[index].fence_last < now[field::fence]) {
            return nullptr;
        }
        return &holdings_[index];
    }

    /// In true time. It may have passed before the answer came: a process can be paused meanwhile.
    [[nodiscard]] std::int64_t deadline(const event& now) const {
        return clocks_.of_process(
            now[field::proc], now[field::deadline_local_ns], all_.events[now.partner].sim());
    }

    void begin(position at) {
        const auto& now = all_.events[at];
        holding* from = nullptr;
        if (now[field::handed_on] != 0) {
            from = find(now);
            if (from == nullptr) {
                return;
            }
        } else {
            index_[pair_of(now[field::proc], now[field::key])].add(now[field::fence],
                                                                   holdings_.size());
            of_process_[now[field::proc]].push_back(holdings_.size());
            holdings_.push_back({now[field::fence_last], deadline(now), at, {}});
            from = &holdings_.back();
        }
        belief made;
        made.proc = now[field::proc];
        made.key = now[field::key];
        made.fence = now[field::fence];
        made.weight = now[field::weight];
        made.capacity = now[field::capacity];
        made.from = now.sim();
        made.until = std::max(from->until, now.sim());
        made.deadline = from->until;
        made.begin = at;
        made.extended = from->stems_from;
        if (const auto over = over_.find(made.proc); over != over_.end()) {
            // Told of a lease that its client had given back by then.
            made.until = now.sim();
            made.end = over->second;
        }
        from->open.push_back(beliefs_.size());
        beliefs_.push_back(made);
    }

    void extend(position at) {
        const auto& now = all_.events[at];
        auto* which = find(now);
        if (which == nullptr) {
            return;
        }
        which->fence_last = std::max(which->fence_last, now[field::fence_last]);
        const bool was_over = which->until < now.sim();
        which->until = deadline(now);
        which->stems_from = at;
        for (auto& index : which->open) {
            if (was_over && which->until > now.sim()) {
                // It went on believing after its deadline had passed: a belief of its own.
                auto revived = beliefs_[index];
                revived.from = now.sim();
                revived.begin = at;
                index = beliefs_.size();
                beliefs_.push_back(revived);
            }
            if (!was_over || which->until > now.sim()) {
                beliefs_[index].until = which->until;
                beliefs_[index].deadline = which->until;
                beliefs_[index].extended = at;
            }
        }
    }

    /// A renewal that asks for less may be in force from when it leaves, whether its answer is heard
    /// or not. That its holder knows so is for C6 to see. The holder may have reckoned from an
    /// earlier moment, as it asked for it, and stops by that one then.
    void cap(position at) {
        const auto& now = all_.events[at];
        auto* which = find(now);
        if (which == nullptr || !now.has(field::ttl_ns) || !now.has(field::sent_local_ns)) {
            return;
        }
        const auto ttl = now[field::ttl_ns];
        const auto part = ttl / 1'000'000 * all_.plan()[field::margin_ppm];
        auto local = now[field::sent_local_ns] + ttl - part - all_.plan()[field::margin_ns];
        if (now.has(field::deadline_local_ns)) {
            local = std::min(local, now[field::deadline_local_ns]);
        }
        const auto at_worst = clocks_.of_process(now[field::proc], local, now.sim());
        if (at_worst >= which->until) {
            return;
        }
        which->until = at_worst;
        for (const auto index : which->open) {
            if (now.sim() <= beliefs_[index].until) {
                beliefs_[index].until = std::max(at_worst, now.sim());
                beliefs_[index].deadline = at_worst;
                beliefs_[index].extended = at;
            }
        }
    }

    void close(std::size_t index, position at) {
        auto& which = beliefs_[index];
        const auto sim = all_.events[at].sim();
        if (sim <= which.until) {
            which.until = sim;
            which.end = at;
        }
    }

    void end_one(position at) {
        const auto& now = all_.events[at];
        if (auto* which = find(now)) {
            std::erase_if(which->open, [&](std::size_t index) {
                if (beliefs_[index].fence != now[field::fence]) {
                    return false;
                }
                close(index, at);
                return true;
            });
        }
    }

    void end_whole(holding& which, position at) {
        for (const auto index : which.open) {
            close(index, at);
        }
        which.open.clear();
    }

    void end_all(position at) {
        if (auto* which = find(all_.events[at])) {
            end_whole(*which, at);
        }
    }

    void end_process(position at) {
        for (const auto index : of_process_[all_.events[at][field::proc]]) {
            end_whole(holdings_[index], at);
        }
    }

    const history& all_;
    const clock_map& clocks_;
    std::vector<belief> beliefs_;
    std::vector<holding> holdings_;
    std::unordered_map<std::uint64_t, block_index> index_;
    std::unordered_map<text_id, std::vector<std::size_t>> of_process_;
    std::unordered_map<text_id, position> over_;  ///< processes, and what ended them
};

}  // namespace

std::vector<belief> beliefs_in(const history& of, const clock_map& clocks) {
    return believer{of, clocks}.run();
}

}  // namespace dibs_checker
