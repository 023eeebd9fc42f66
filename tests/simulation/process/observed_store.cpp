// SPDX-License-Identifier: Apache-2.0
#include "simulation/process/observed_store.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace dibs::simulation {

observed_store::sent_entry observed_store::leaves(const core::entry& what, core::instant now) {
    sent_entry seen;
    if (const auto* asked = std::get_if<core::acquire>(&what.what)) {
        seen.holder = asked->holder;
        seen.grants = true;
        history_.event("try")
            .text("proc", process_.name())
            .time("local_ns", now)
            .text("key", asked->key);
    } else if (const auto* prolonged = std::get_if<core::renew>(&what.what)) {
        seen.holder = prolonged->adopt ? prolonged->adopt->holder : prolonged->holder;
        const bool adopts = seen.holder != prolonged->holder;
        seen.grants = adopts;
        const auto known = grants_.find(prolonged->holder);
        if (!adopts && known != grants_.end()) {
            seen.call = history_.new_id();
            seen.key = prolonged->key;
            seen.fence = known->second.fences.first;
            auto told = history_.event("renew", "inv");
            told.number("call", seen.call)
                .text("proc", process_.name())
                .time("local_ns", now)
                .text("key", prolonged->key)
                .number("fence", seen.fence)
                .time("ttl_ns", core::nanoseconds{prolonged->ttl})
                .time("sent_local_ns", now);
            if (const auto deadline = deadline_of_(seen.holder)) {
                told.time("deadline_local_ns", *deadline);
            }
        }
    }
    return seen;
}

void observed_store::comes_back(const sent_entry& what,
                                const core::answer& given,
                                core::instant sent) {
    const bool executed = given.took == core::effect::yes;
    if (what.grants && executed &&
        (given.what == core::verdict::granted || given.what == core::verdict::renewed)) {
        grants_[what.holder] = {sent, given.fences};
    } else if (what.call != 0 && executed && given.what == core::verdict::renewed) {
        grants_[what.holder].fences.last = given.fences.last;
    }
}

void observed_store::renewal_came_back(const sent_entry& what, const core::answer& given) {
    const bool executed = given.took == core::effect::yes;
    const bool renewed = executed && given.what == core::verdict::renewed;
    const auto phase = renewed                                      ? "ok"
                       : executed || given.took == core::effect::no ? "fail"
                                                                    : "info";
    auto told = history_.event("renew", phase);
    told.number("call", what.call)
        .text("proc", process_.name())
        .time("local_ns", process_.now())
        .text("key", what.key);
    if (renewed) {
        told.number("fence", what.fence);
        if (const auto deadline = deadline_of_(what.holder)) {
            told.time("deadline_local_ns", *deadline);
        }
        if (given.fences.last != given.fences.first) {
            told.number("fence_last", given.fences.last);
        }
    } else {
        told.text("error", executed ? "not_held" : given.error.message());
    }
}

void observed_store::execute(dibs::store::lane which,
                             std::vector<core::entry> batch,
                             dibs::store::batch_completion done) {
    const auto sent = process_.now();
    std::vector<sent_entry> seen;
    seen.reserve(batch.size());
    for (const auto& one : batch) {
        seen.push_back(leaves(one, sent));
    }
    ++counted_.batches;
    inner_->execute(
        which,
        std::move(batch),
        [this, sent, seen = std::move(seen), done = std::move(done)](
            dibs::store::answers given) mutable {
            if (!process_.alive()) {
                done(std::move(given));
                return;
            }
            const auto each_entry = [&](const auto& each) {
                for (std::size_t at = 0; at < seen.size() && at < given.size(); ++at) {
                    each(seen[at], given[at]);
                }
            };
            each_entry([&](const auto& what, const auto& answer) {
                counted_.answered += answer.took == core::effect::yes ? 1 : 0;
                comes_back(what, answer, sent);
            });
            const bool any_renewal = std::any_of(
                seen.begin(), seen.end(), [](const auto& one) { return one.call != 0; });
            if (!any_renewal) {
                done(std::move(given));
                return;
            }
            // What the client makes of it is known once it was told.
            const auto told = given;
            done(std::move(given));
            for (std::size_t at = 0; at < seen.size() && at < told.size(); ++at) {
                if (seen[at].call != 0) {
                    renewal_came_back(seen[at], told[at]);
                }
            }
        });
}

dibs::store::wake_callback observed_store::written_down(std::string_view key,
                                                        dibs::store::wake_callback wake) {
    return
        [this, key = std::string{key}, wake = std::move(wake)](dibs::store::wake_by whose) mutable {
            history_.event("wake")
                .text("proc", process_.name())
                .time("local_ns", process_.now())
                .text("key", key);
            wake(whose);
        };
}

dibs::store::watch_id observed_store::watch(std::string_view key,
                                            dibs::store::watch_completion ready,
                                            dibs::store::wake_callback wake) {
    return inner_->watch(key, std::move(ready), written_down(key, std::move(wake)));
}

dibs::store::watch_id observed_store::await_notices(std::string_view key,
                                                    dibs::store::wake_callback wake) {
    return inner_->await_notices(key, written_down(key, std::move(wake)));
}

}  // namespace dibs::simulation
