// SPDX-License-Identifier: Apache-2.0
// C11: the provider sees each generation of a credential once, one call at a time; what the store
// keeps of it never gets older.
#include "checker/checks/checks.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <unordered_map>

namespace dibs_checker {
namespace {

struct credential {
    std::vector<position> open;                        ///< calls at the provider without an end yet
    std::unordered_map<std::int64_t, position> shown;  ///< by generation: the last call not refused
    position kept = nowhere;
};

class refreshes_check {
  public:
    explicit refreshes_check(const subject& of) : all_(of.all) { made_.check = check_id::c11; }

    verdict run() {
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            if (now.what == op::refresh) {
                if (now.ph == phase::inv) {
                    called(at);
                } else {
                    answered(at);
                }
            } else if (now.what == op::keep) {
                kept(at);
            }
        }
        return std::move(made_);
    }

  private:
    void called(position at) {
        const auto& now = all_.events[at];
        auto& which = credentials_[now[field::key]];
        ++made_.judged;
        const auto before = which.shown.find(now[field::generation]);
        const auto same_time =
            std::find_if(which.open.begin(), which.open.end(), [&](position other) {
                return all_.events[other][field::fence] == now[field::fence];
            });
        if (same_time != which.open.end()) {
            report("two refreshes of credential " + name_in(all_, now[field::key]) +
                       " were under way at once under one grant",
                   {*same_time, at});
        } else if (before != which.shown.end()) {
            again(at, before->second);
        }
        which.open.push_back(at);
        which.shown.insert_or_assign(now[field::generation], at);
    }

    void again(position at, position before) {
        const auto& now = all_.events[at];
        const auto* end = all_.end_of(all_.events[before]);
        if (end != nullptr && all_.where(*end) > at) {
            end = nullptr;
        }
        const bool rotated = end != nullptr && end->ph == phase::ok;
        if (!rotated && all_.plan()[field::grace] != 0) {
            return;
        }
        report("generation " + std::to_string(now[field::generation]) + " of credential " +
                   name_in(all_, now[field::key]) + " was shown to the provider again " +
                   (rotated ? "after it had been rotated"
                            : "after a call whose outcome was not known"),
               {before, end == nullptr ? before : all_.where(*end), at});
    }

    void answered(position at) {
        const auto& now = all_.events[at];
        auto& which = credentials_[now[field::key]];
        std::erase(which.open, now.partner);
        if (now.ph == phase::fail) {
            // The provider did not take it: it may be shown again.
            const auto found = which.shown.find(now[field::generation]);
            if (found != which.shown.end() && found->second == now.partner) {
                which.shown.erase(found);
            }
        }
    }

    void kept(position at) {
        const auto& now = all_.events[at];
        auto& which = credentials_[now[field::key]];
        ++made_.judged;
        if (which.kept != nowhere &&
            now[field::generation] < all_.events[which.kept][field::generation]) {
            report("the store keeps generation " + std::to_string(now[field::generation]) +
                       " of credential " + name_in(all_, now[field::key]) + " after generation " +
                       std::to_string(all_.events[which.kept][field::generation]),
                   {which.kept, at});
        }
        which.kept = at;
    }

    void report(std::string what, std::vector<position> events) {
        std::sort(events.begin(), events.end());
        events.erase(std::unique(events.begin(), events.end()), events.end());
        made_.violations.add({std::move(what), std::move(events)});
    }

    const history& all_;
    verdict made_;
    std::unordered_map<text_id, credential> credentials_;
};

}  // namespace

verdict check_refreshes(const subject& of) {
    return refreshes_check{of}.run();
}

}  // namespace dibs_checker
