// SPDX-License-Identifier: Apache-2.0
// C5: what was added or counted with success is there for whoever looks afterwards, and nothing
// else is.
//
// Source: the set and counter workloads of the Jepsen tests. Each read is judged, not the last one
// alone: it must hold what had been done before it began, and nothing that did not begin before it
// ended. What two did behind one fence, of which a fault lifts that it is given once, may be lost.
#include "checker/checks/checks.hpp"
#include "checker/doubled_fences.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace dibs_checker {
namespace {

/// What was done to one set or counter.
struct item {
    std::vector<position> updates;  ///< the beginnings, in order; those that failed are not here
    std::vector<position> reads;    ///< the ends, in order
    position excused = nowhere;     ///< from here on an update may be missing
};

class updates_check {
  public:
    explicit updates_check(const subject& of) : all_(of.all), doubled_(of) {
        made_.check = check_id::c5;
    }

    verdict run() {
        std::map<text_id, item> sets;
        std::map<text_id, item> counters;
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            const bool of_counter = now.what == op::increment || now.what == op::count;
            if (!of_counter && now.what != op::add && now.what != op::members) {
                continue;
            }
            auto& which = (of_counter ? counters : sets)[now[field::key]];
            const bool update = now.what == op::add || now.what == op::increment;
            const auto* end = all_.end_of(now);
            if (update && now.ph == phase::inv && (end == nullptr || end->ph != phase::fail)) {
                which.updates.push_back(at);
            } else if (!update && now.ph == phase::ok) {
                which.reads.push_back(at);
            }
        }
        for (auto& [key, which] : sets) {
            which.excused = doubled_.shared_by(which.updates);
            judge_set(key, which);
        }
        for (auto& [key, which] : counters) {
            which.excused = doubled_.shared_by(which.updates);
            judge_counter(key, which);
        }
        return std::move(made_);
    }

  private:
    /// When an update was done for certain; `never` while it is in doubt.
    [[nodiscard]] std::int64_t done_at(position update) const {
        const auto* end = all_.end_of(all_.events[update]);
        return end != nullptr && end->ph == phase::ok ? end->sim() : never;
    }
    [[nodiscard]] std::int64_t began_at(position read_end) const {
        return all_.events[all_.events[read_end].partner].sim();
    }

    void judge_set(text_id key, const item& which) {
        // An element may be added more than once: it must be there from its first success on, and
        // may be from its first attempt on.
        struct times {
            std::int64_t first_tried = never;
            std::int64_t first_done = never;
            position tried = nowhere;
            position done = nowhere;
        };
        std::unordered_map<std::int64_t, times> elements;
        std::vector<std::int64_t> order;
        for (const auto at : which.updates) {
            const auto& now = all_.events[at];
            auto& element = elements[now[field::value]];
            if (element.tried == nowhere) {
                element.tried = at;
                element.first_tried = now.sim();
                order.push_back(now[field::value]);
            }
            if (done_at(at) < element.first_done) {
                element.first_done = done_at(at);
                element.done = now.partner;
            }
        }
        for (const auto at : which.reads) {
            ++made_.judged;
            const auto& read = all_.events[at];
            const auto& list = all_.arrays[static_cast<std::size_t>(read[field::values])];
            const std::unordered_set<std::int64_t> present(list.begin(), list.end());
            for (const auto value : order) {
                const auto& element = elements[value];
                if (element.first_done < began_at(at) && !present.contains(value)) {
                    missing(which,
                            "element " + all_.value_text(value) + " of set " + name_in(all_, key) +
                                " was added, and is missing afterwards: a lost update",
                            {all_.events[element.done].partner, element.done, read.partner, at});
                }
            }
            for (const auto value : list) {
                const auto found = elements.find(value);
                if (found == elements.end() || found->second.first_tried > read.sim()) {
                    report("set " + name_in(all_, key) + " holds element " +
                               all_.value_text(value) + ", which nobody had added",
                           {at});
                }
            }
        }
        judge_shrinking(key, which);
    }

    /// What one read saw, a later one sees too.
    void judge_shrinking(text_id key, const item& which) {
        // A seen element and the first read that saw it.
        std::unordered_map<std::int64_t, position> seen;
        std::vector<std::int64_t> order;
        auto reads = which.reads;
        std::sort(reads.begin(), reads.end(), [&](position left, position right) {
            return all_.events[left].partner < all_.events[right].partner;
        });
        auto ended = which.reads.begin();
        for (const auto at : reads) {
            for (; ended != which.reads.end() && all_.events[*ended].sim() < began_at(at);
                 ++ended) {
                for (const auto value : values_of(*ended)) {
                    if (seen.emplace(value, *ended).second) {
                        order.push_back(value);
                    }
                }
            }
            const auto& list = values_of(at);
            const std::unordered_set<std::int64_t> present(list.begin(), list.end());
            for (const auto value : order) {
                if (!present.contains(value)) {
                    missing(which,
                            "element " + all_.value_text(value) + " of set " + name_in(all_, key) +
                                " was seen, and is missing afterwards",
                            {seen[value], all_.events[at].partner, at});
                }
            }
        }
    }

    [[nodiscard]] const std::vector<std::int64_t>& values_of(position read) const {
        return all_.arrays[static_cast<std::size_t>(all_.events[read][field::values])];
    }

    [[nodiscard]] std::int64_t number_in(position read) const {
        const auto& text = all_.texts.text(all_.events[read][field::value]);
        std::int64_t number = 0;
        std::from_chars(text.data(), text.data() + text.size(), number);
        return number;
    }

    void judge_counter(text_id key, const item& which) {
        // Both sums grow as time goes on, so one walk through each order will do.
        auto done = which.updates;
        std::erase_if(done, [&](position at) { return done_at(at) == never; });
        std::stable_sort(done.begin(), done.end(), [&](position left, position right) {
            return done_at(left) < done_at(right);
        });
        auto reads = which.reads;
        std::stable_sort(reads.begin(), reads.end(), [&](position left, position right) {
            return began_at(left) < began_at(right);
        });
        std::int64_t least = 0;
        auto next_done = done.begin();
        std::int64_t largest_seen = 0;
        position seen_by = nowhere;
        auto ended = which.reads.begin();
        for (const auto at : reads) {
            for (; next_done != done.end() && done_at(*next_done) < began_at(at); ++next_done) {
                least += all_.events[*next_done][field::amount];
            }
            for (; ended != which.reads.end() && all_.events[*ended].sim() < began_at(at);
                 ++ended) {
                if (number_in(*ended) > largest_seen) {
                    largest_seen = number_in(*ended);
                    seen_by = *ended;
                }
            }
            ++made_.judged;
            const auto number = number_in(at);
            if (number < least) {
                const auto last = *(next_done - 1);
                missing(which,
                        "counter " + name_in(all_, key) + " shows " + std::to_string(number) +
                            " after increments that add up to " + std::to_string(least) +
                            ": a lost update",
                        {last, all_.events[last].partner, all_.events[at].partner, at});
            } else if (number < largest_seen) {
                missing(which,
                        "counter " + name_in(all_, key) + " fell from " +
                            std::to_string(largest_seen) + " to " + std::to_string(number),
                        {seen_by, all_.events[at].partner, at});
            }
        }
        std::int64_t most = 0;
        auto next_tried = which.updates.begin();
        for (const auto at : which.reads) {
            for (; next_tried != which.updates.end() &&
                   all_.events[*next_tried].sim() <= all_.events[at].sim();
                 ++next_tried) {
                most += all_.events[*next_tried][field::amount];
            }
            if (number_in(at) > most) {
                report("counter " + name_in(all_, key) + " shows " + std::to_string(number_in(at)) +
                           " when all increments so far add up to " + std::to_string(most),
                       {at});
            }
        }
    }

    /// The read, which comes last in `events`, lacks something.
    void missing(const item& which, std::string what, std::vector<position> events) {
        const bool excused = which.excused < events.back();
        std::sort(events.begin(), events.end());
        (excused ? made_.excused : made_.violations).add({std::move(what), std::move(events)});
    }

    void report(std::string what, std::vector<position> events) {
        std::sort(events.begin(), events.end());
        made_.violations.add({std::move(what), std::move(events)});
    }

    const history& all_;
    const doubled_fences doubled_;
    verdict made_;
};

}  // namespace

verdict check_updates(const subject& of) {
    return updates_check{of}.run();
}

}  // namespace dibs_checker
