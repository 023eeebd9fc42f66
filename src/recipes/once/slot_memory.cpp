// SPDX-License-Identifier: Apache-2.0
#include "recipes/once/slot_memory.hpp"

#include "core/holder_id.hpp"
#include "recipes/once/slot_record.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace dibs::recipes {

namespace {

using json = nlohmann::ordered_json;

constexpr int format = 1;
constexpr unsigned witnesses_needed = 3;
/// Fewer than these are not worth the steps.
constexpr std::size_t worth_a_pass = 8;
constexpr std::size_t most_in_a_pass = 32;
constexpr std::size_t page_size = 128;
constexpr unsigned most_pages = 8;
constexpr core::nanoseconds patience = std::chrono::seconds{2};

constexpr std::size_t most_stretches = 64;

/// Slots by different schedules have names of different shapes: `####-##[UTC]`. The months of a job
/// that ran by the hour before must not be taken for its hours that were forgotten.
std::string shape_of(std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](char letter) { return letter >= '0' && letter <= '9'; }, '#');
    return name;
}

struct horizon {
    std::error_code error;
    std::map<std::string, forgotten_stretches> known;  ///< by the shape of their names
};

std::string text_of(const std::string& job, const horizon& shown_one) {
    json shown{{"v", format}, {"job", job}, {"forgotten", json::object()}};
    for (const auto& [shape, known] : shown_one.known) {
        auto& list = shown["forgotten"][shape] = json::array();
        for (const auto& one : known) {
            list.push_back(json::array({one.from_ms, one.to_ms}));
        }
    }
    return shown.dump(-1, ' ', false, json::error_handler_t::replace);
}

horizon read_horizon(std::string_view text) {
    const auto read = json::parse(text, nullptr, false);
    if (!read.is_object() || !read.contains("v") || !read["v"].is_number_integer()) {
        return {errc::store_damaged, {}};
    }
    if (read["v"].get<std::int64_t>() > format) {
        return {errc::newer_format, {}};
    }
    try {
        horizon found;
        for (const auto& [shape, known] : read.at("forgotten").items()) {
            for (const auto& one : known) {
                found.known[shape].push_back(
                    {one.at(0).get<std::int64_t>(), one.at(1).get<std::int64_t>()});
            }
        }
        return found;
    } catch (const json::exception&) {
        return {errc::store_damaged, {}};
    }
}

bool lies_in(const horizon& of, const std::string& slot, std::int64_t begin_ms) {
    const auto found = of.known.find(shape_of(slot));
    return found != of.known.end() &&
           std::any_of(found->second.begin(), found->second.end(), [&](const auto& one) {
               return one.from_ms <= begin_ms && begin_ms <= one.to_ms;
           });
}

horizon horizon_of(const core::boxed<core::kept_result>& kept) {
    return kept ? read_horizon(kept->value) : horizon{};
}

/// Of a slot that was planned and started.
std::optional<slot_record> run_in(const core::record_info& record) {
    bool newer = false;
    auto kept = record.result ? slot_record_of(record.result->value, newer) : std::nullopt;
    return kept && kept->begin_ms && kept->state != slot_state::skipped ? kept : std::nullopt;
}

}  // namespace

void note_forgotten(forgotten_stretches& known, forgotten_stretch more, std::int64_t gap_ms) {
    const auto by_beginning = [](const auto& one, const auto& other) {
        return one.from_ms < other.from_ms;
    };
    known.insert(std::upper_bound(known.begin(), known.end(), more, by_beginning), more);
    const auto join = [&](std::size_t first) {
        known[first].to_ms = std::max(known[first].to_ms, known[first + 1].to_ms);
        known.erase(known.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    };
    const auto gap_after = [&](std::size_t first) {
        return known[first + 1].from_ms - known[first].to_ms;
    };
    for (std::size_t at = 0; at + 1 < known.size();) {
        if (gap_after(at) <= gap_ms) {
            join(at);
        } else {
            ++at;
        }
    }
    while (known.size() > most_stretches) {
        std::size_t nearest = 0;
        for (std::size_t at = 0; at + 1 < known.size(); ++at) {
            nearest = gap_after(at) < gap_after(nearest) ? at : nearest;
        }
        join(nearest);
    }
}

bool may_be_forgotten(std::string_view horizon, const std::string& slot, std::int64_t begin_ms) {
    return lies_in(read_horizon(horizon), slot, begin_ms);
}

struct slot_memory::pass {
    struct old_slot {
        std::string key;
        core::fence_number fence = 0;
        std::int64_t begin_ms = 0;
        std::string slot;
    };
    std::string job;
    std::int64_t begin_ms = 0;
    std::int64_t keep_ms = 0;
    calendar name_at;
    core::task done;
    std::vector<old_slot> old;
    std::int64_t newest_ms = 0;  ///< of the old ones
    unsigned witnesses = 0;
    unsigned pages = 0;
};

slot_memory::slot_memory(core::environment env, store::store& through)
    : env_(env), store_(through) {}

slot_memory::~slot_memory() = default;

void slot_memory::beyond(const std::string& job,
                         std::string slot,
                         std::int64_t begin_ms,
                         verdict_told done) {
    const auto key = key_of_horizon(job);
    store_.list(
        key,
        {},
        1,
        [key, slot = std::move(slot), begin_ms, done = std::move(done)](core::page page) mutable {
            if (page.error) {
                done(page.error, std::move(page.detail), false);
                return;
            }
            const bool found = !page.records.empty() && page.records.front().key == key;
            const auto known = found ? horizon_of(page.records.front().result) : horizon{};
            done(known.error,
                 known.error ? "what is kept of the slots that were forgotten cannot be read" : "",
                 lies_in(known, slot, begin_ms));
        });
}

void slot_memory::forget(std::string job,
                         std::int64_t begin_ms,
                         core::milliseconds keep,
                         calendar name_at,
                         core::task done) {
    auto made = std::make_shared<pass>();
    made->job = std::move(job);
    made->begin_ms = begin_ms;
    made->keep_ms = keep.count();
    made->name_at = std::move(name_at);
    made->done = std::move(done);
    gather(made, {});
}

void slot_memory::gather(const pass_ptr& which, std::string after) {
    const auto prefix = key_of_slot(which->job, "");
    store_.list(prefix, std::move(after), page_size, [this, which](core::page page) {
        for (const auto& record : page.records) {
            const auto run = run_in(record);
            if (!run || !record.holders.empty() || run->job != which->job ||
                *run->begin_ms >= which->begin_ms - which->keep_ms ||
                which->old.size() == most_in_a_pass) {
                continue;
            }
            which->old.push_back({record.key, record.result->fence, *run->begin_ms, run->slot});
        }
        if (page.error) {
            end(which);
        } else if (page.more && which->old.size() < most_in_a_pass && ++which->pages < most_pages) {
            gather(which, page.records.back().key);
        } else {
            std::sort(which->old.begin(), which->old.end(), [](const auto& one, const auto& other) {
                return one.begin_ms < other.begin_ms;
            });
            weigh(which);
        }
    });
}

/// The witnesses against the newest of the old slots are witnesses against all of them.
void slot_memory::weigh(const pass_ptr& which) {
    if (which->old.size() < worth_a_pass) {
        end(which);
        return;
    }
    which->newest_ms = which->old.back().begin_ms;
    which->pages = 0;
    which->witnesses = 0;
    ask_witnesses(which,
                  key_of_slot(which->job, which->name_at(which->newest_ms + which->keep_ms)));
}

void slot_memory::ask_witnesses(const pass_ptr& which, std::string after) {
    const auto prefix = key_of_slot(which->job, "");
    store_.list(prefix, std::move(after), page_size, [this, which](core::page page) {
        for (const auto& record : page.records) {
            const auto run = run_in(record);
            if (run && run->job == which->job &&
                *run->begin_ms > which->newest_ms + which->keep_ms) {
                ++which->witnesses;
            }
        }
        if (which->witnesses >= witnesses_needed) {
            note_stretch(which);
        } else if (page.error) {
            end(which);
        } else if (page.more && ++which->pages < most_pages) {
            ask_witnesses(which, page.records.back().key);
        } else {
            // Too few; the older half has more against it.
            which->old.resize(which->old.size() / 2);
            weigh(which);
        }
    });
}

void slot_memory::note_stretch(const pass_ptr& which) {
    auto asked = asked_for(key_of_horizon(which->job));
    asked.seen = std::numeric_limits<std::int64_t>::max();
    const core::release plain{.key = asked.key, .holder = asked.holder, .result = {}};
    std::vector<core::verb> steps;
    steps.emplace_back(std::move(asked));
    send(std::move(steps), [this, which, plain](store::answers heard) {
        if (heard.size() != 1 || heard.front().what != core::verdict::granted) {
            end(which);  // somebody else is at it
            return;
        }
        auto found = horizon_of(heard.front().result);
        auto given_back = plain;
        if (!found.error) {
            for (const auto& one : which->old) {
                note_forgotten(
                    found.known[shape_of(one.slot)], {one.begin_ms, one.begin_ms}, which->keep_ms);
            }
            given_back.result = core::result_to_keep{.value = text_of(which->job, found),
                                                     .fresh = core::microseconds{0},
                                                     .keep = core::result_to_keep::forever};
        }
        std::vector<core::verb> last;
        last.emplace_back(std::move(given_back));
        send(std::move(last), [this, which](const store::answers& told) {
            if (told.size() == 1 && told.front().what == core::verdict::finished) {
                free_all(which);
            } else {
                end(which);
            }
        });
    });
}

void slot_memory::free_all(const pass_ptr& which) {
    std::vector<core::verb> steps;
    std::vector<core::release> releases;
    for (const auto& one : which->old) {
        auto asked = asked_for(one.key);
        asked.seen = one.fence;
        releases.push_back({.key = asked.key, .holder = asked.holder, .result = {}});
        steps.emplace_back(std::move(asked));
    }
    send(std::move(steps), [this, which, releases](const store::answers& heard) {
        std::vector<core::verb> last;
        for (std::size_t at = 0; at < heard.size() && at < releases.size(); ++at) {
            if (heard[at].what != core::verdict::granted) {
                continue;
            }
            auto given_back = releases[at];
            if (heard[at].result && heard[at].result->fence == which->old[at].fence) {
                // Its time ends in a moment. Where now was a dream, it says again what became of the
                // slot.
                given_back.result = core::result_to_keep{.value = heard[at].result->value,
                                                         .fresh = core::microseconds{1},
                                                         .keep = core::microseconds{1}};
            }
            last.emplace_back(std::move(given_back));
        }
        if (last.empty()) {
            end(which);
            return;
        }
        send(std::move(last), [this, which](const store::answers&) { end(which); });
    });
}

void slot_memory::end(const pass_ptr& which) {
    env_.exec.post([which] {
        auto done = std::move(which->done);
        done();
    });
}

void slot_memory::send(std::vector<core::verb> steps, store::batch_completion done) {
    std::vector<core::entry> batch;
    const auto deadline = env_.time.now() + patience;
    batch.reserve(steps.size());
    for (auto& step : steps) {
        batch.push_back({std::move(step), deadline});
    }
    store_.execute(store::lane::others, std::move(batch), std::move(done));
}

core::acquire slot_memory::asked_for(std::string key) {
    core::acquire asked;
    asked.key = std::move(key);
    asked.holder = core::holder_id::draw(env_.random);
    asked.ttl = std::clamp<core::microseconds>(
        std::chrono::seconds{5}, store_.caps().ttl_min, store_.caps().ttl_max);
    return asked;
}

}  // namespace dibs::recipes
