// SPDX-License-Identifier: Apache-2.0
// C6: a holder stops in time by its own clock, and what it has lost stays lost.
//
// The deadline is computed here from when the request had left, not taken from the code under
// test: sent + ttl, less the margin of the plan.
#include "checker/checks/checks.hpp"
#include "checker/ledger.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace dibs_checker {
namespace {

/// A request to renew that is on its way or was never answered. A shorter ttl may be in force from
/// when it left.
struct open_renewal {
    std::int64_t call;
    std::int64_t sent;
    std::int64_t deadline;
    position at;
};

struct holding {
    text_id proc = 0;
    std::int64_t fence_last = 0;
    std::int64_t sent = 0;  ///< of the latest request that was answered with success
    std::int64_t ttl = 0;
    std::int64_t deadline = 0;  ///< that goes with it
    std::int64_t told = 0;      ///< what the code under test believes
    position stems_from = nowhere;
    std::vector<open_renewal> renewals;
    std::unordered_map<std::int64_t, position> over;  ///< fences, and what ended them
    position all_over = nowhere;
    /// The process has been told this fence before (C3 judges that): which of its leases a handle
    /// speaks of cannot be told.
    bool repeated = false;
    bool closed = false;  ///< `all_over` is the end of the client
    /// A renewal with a ttl that is no shorter brought an earlier deadline. Right only if a shorter
    /// one was asked for already, and leaves next.
    std::optional<finding> moved_back;
};

class deadlines_check {
  public:
    explicit deadlines_check(const subject& of) : all_(of.all) { made_.check = check_id::c6; }

    verdict run() {
        for (position at = 0; at < all_.events.size(); ++at) {
            take(at);
        }
        for (auto& which : holdings_) {
            if (which.over.empty() && which.all_over == nowhere) {
                condemn(which);
            }
        }
        return std::move(made_);
    }

  private:
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
                    renewing(at);
                } else if (now.ph == phase::ok) {
                    renewed(at);
                } else if (now.ph == phase::fail) {
                    not_renewed(at);
                }
                break;
            case op::release:
                if (now.ph == phase::inv) {
                    end(at);
                }
                break;
            case op::hand_over:
                if (now.ph == phase::ok) {
                    end(at);
                }
                break;
            case op::lost:
                end(at);
                break;
            case op::held:
                if (now[field::held] != 0) {
                    held(at);
                } else {
                    end(at);
                }
                break;
            case op::fault:
                if (all_.text(now, field::name) == "kill") {
                    killed(now[field::proc]);
                } else if (all_.text(now, field::name) == "close") {
                    closed(at);
                }
                break;
            default:
                break;
        }
    }

    /// What it had asked for will never leave.
    void killed(text_id proc) {
        for (auto& which : holdings_) {
            if (which.proc == proc) {
                which.moved_back.reset();
            }
        }
    }

    /// Its leases have ended with it.
    void closed(position at) {
        killed(all_.events[at][field::proc]);
        for (auto& which : holdings_) {
            if (which.proc == all_.events[at][field::proc] && which.all_over == nowhere) {
                which.all_over = at;
                which.closed = true;
            }
        }
    }

    [[nodiscard]] std::int64_t deadline_of(std::int64_t sent, std::int64_t ttl) const {
        const auto ppm = all_.plan()[field::margin_ppm];
        const auto part = ttl / 1'000'000 * ppm + ttl % 1'000'000 * ppm / 1'000'000;
        return sent + ttl - part - all_.plan()[field::margin_ns];
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

    void begin(position at) {
        const auto& now = all_.events[at];
        if (now[field::handed_on] != 0) {
            ++made_.judged;
            const auto* from = find(now);
            if (from == nullptr) {
                report(process_in(all_, now[field::proc]) + " handed on fence " +
                           std::to_string(now[field::fence]) + " of key " +
                           name_in(all_, now[field::key]) + ", which it never got",
                       {at});
            }
            return;
        }
        const auto* before = find(now);
        const bool repeated = before != nullptr;
        index_[pair_of(now[field::proc], now[field::key])].add(now[field::fence], holdings_.size());
        auto& made = holdings_.emplace_back();
        made.proc = now[field::proc];
        made.fence_last = now[field::fence_last];
        made.repeated = repeated;
        confirm(made, at, now[field::sent_local_ns], now[field::ttl_ns]);
        tell(made, at);
    }

    void confirm(holding& which, position at, std::int64_t sent, std::int64_t ttl) {
        which.sent = sent;
        which.ttl = ttl;
        which.deadline = deadline_of(sent, ttl);
        which.stems_from = at;
    }

    void renewing(position at) {
        const auto& now = all_.events[at];
        if (auto* which = find(now)) {
            const auto sent = now[field::sent_local_ns];
            if (now[field::ttl_ns] < which->ttl) {
                which->moved_back.reset();
                if (now.has(field::deadline_local_ns)) {
                    which->told = std::min(which->told, now[field::deadline_local_ns]);
                }
            }
            which->renewals.push_back(
                {now[field::call], sent, deadline_of(sent, now[field::ttl_ns]), at});
        }
    }

    void renewed(position at) {
        const auto& now = all_.events[at];
        auto* which = find(now);
        if (which == nullptr) {
            return;
        }
        which->fence_last = std::max(which->fence_last, now[field::fence_last]);
        if (which->all_over != nowhere || came_too_late(*which, at)) {
            return;
        }
        const auto sent = now[field::sent_local_ns];
        condemn(*which);
        if (sent >= which->sent) {
            const auto before = which->stems_from;
            const bool shorter = now[field::ttl_ns] < which->ttl;
            confirm(*which, at, sent, now[field::ttl_ns]);
            // What left earlier has no say any more.
            std::erase_if(which->renewals,
                          [&](const open_renewal& other) { return other.sent <= sent; });
            if (now.has(field::deadline_local_ns) && !shorter &&
                now[field::deadline_local_ns] < which->told) {
                which->moved_back = {"the deadline of " + lease_text(now) + " went back from " +
                                         time_text(which->told) + " to " +
                                         time_text(now[field::deadline_local_ns]) +
                                         " by a renewal with no shorter ttl",
                                     {before, at}};
            }
        } else {
            forget(*which, now[field::call]);
        }
        if (now.has(field::deadline_local_ns)) {
            tell(*which, at);
        }
    }

    /// An answer after the deadline renews nothing: what was lost stays lost.
    bool came_too_late(holding& which, position at) {
        const auto& now = all_.events[at];
        const auto [deadline, stems_from] = latest_of(which);
        const auto over = std::min(deadline, which.told);
        if (now[field::local_ns] < over) {
            return false;
        }
        which.all_over = at;
        ++made_.judged;
        if (now[field::deadline_local_ns] > now[field::local_ns]) {
            report(lease_text(now) + " came back to life by an answer at " +
                       time_text(now[field::local_ns]) + " by the process's clock; its deadline " +
                       "had been " + time_text(over),
                   {stems_from, at});
        }
        return true;
    }

    void not_renewed(position at) {
        const auto& now = all_.events[at];
        if (auto* which = find(now)) {
            forget(*which, now[field::call]);
            if (all_.text(now, field::error) == "not_held" && which->all_over == nowhere) {
                which->all_over = at;
            }
        }
    }

    static void forget(holding& which, std::int64_t call) {
        std::erase_if(which.renewals,
                      [&](const open_renewal& other) { return other.call == call; });
    }

    void end(position at) {
        const auto& now = all_.events[at];
        if (auto* which = find(now)) {
            which->over.emplace(now[field::fence], at);
        }
    }

    struct latest {
        std::int64_t deadline;
        position stems_from;
    };
    [[nodiscard]] static latest latest_of(const holding& which) {
        latest made{which.deadline, which.stems_from};
        for (const auto& renewal : which.renewals) {
            if (renewal.sent >= which.sent && renewal.deadline < made.deadline) {
                made = {renewal.deadline, renewal.at};
            }
        }
        return made;
    }

    /// What the code under test believes may not be later than what the request allows.
    void tell(holding& which, position at) {
        const auto& now = all_.events[at];
        which.told = now[field::deadline_local_ns];
        ++made_.judged;
        const auto [deadline, stems_from] = latest_of(which);
        if (which.told > deadline) {
            report(lease_text(now) + " has its deadline at " + time_text(which.told) +
                       " by the process's clock; its request allows " + time_text(deadline),
                   {all_.events[stems_from].ph == phase::ok ? all_.events[stems_from].partner
                                                            : stems_from,
                    at});
        }
    }

    void held(position at) {
        const auto& now = all_.events[at];
        ++made_.judged;
        const auto* which = find(now);
        if (which == nullptr) {
            report(lease_text(now) + " says that it is held, and was never granted to it", {at});
            return;
        }
        if (which->repeated) {
            return;
        }
        const auto over = which->over.find(now[field::fence]);
        if (over != which->over.end()) {
            report(lease_text(now) + " says that it is held after it had ended for its holder",
                   {over->second, at});
            return;
        }
        if (which->all_over != nowhere) {
            report(
                lease_text(now) + " says that it is held after " +
                    (which->closed ? "its client was closed" : "the store had said that it is not"),
                {which->all_over, at});
            return;
        }
        const auto [deadline, stems_from] = latest_of(*which);
        if (now[field::local_ns] >= std::min(deadline, which->told)) {
            report(lease_text(now) + " says that it is held when its process's clock shows " +
                       time_text(now[field::local_ns]) + "; its deadline was " +
                       time_text(std::min(deadline, which->told)),
                   {stems_from, at});
        }
    }

    [[nodiscard]] std::string lease_text(const event& now) const {
        return "the lease of " + process_in(all_, now[field::proc]) + " on key " +
               name_in(all_, now[field::key]) + " (fence " + std::to_string(now[field::fence]) +
               ")";
    }

    void condemn(holding& which) {
        if (const auto found = std::exchange(which.moved_back, std::nullopt)) {
            report(found->what, found->events);
        }
    }

    void report(std::string what, std::vector<position> events) {
        std::sort(events.begin(), events.end());
        made_.violations.add({std::move(what), std::move(events)});
    }

    const history& all_;
    verdict made_;
    std::vector<holding> holdings_;
    std::unordered_map<std::uint64_t, block_index> index_;
};

}  // namespace

verdict check_deadlines(const subject& of) {
    return deadlines_check{of}.run();
}

}  // namespace dibs_checker
