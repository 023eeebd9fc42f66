// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a store answers when it can do nothing: after its end, and in a forked child, where its
// threads and connections are not. Told on the executor, never inside the call.

#include "core/environment.hpp"
#include "core/verbs.hpp"
#include "store/store.hpp"

#include <dibs/error.hpp>

#include <utility>

namespace dibs::store {

[[nodiscard]] inline core::answer unusable(bool forked) {
    return forked ? core::refused(errc::unsupported,
                                  "the process was forked after the store was opened; open it "
                                  "again in the child")
                  : core::refused(errc::closed, "the store was closed");
}

inline void refuse(const core::environment& env,
                   std::size_t entries,
                   const core::answer& why,
                   batch_completion done) {
    answers replies(entries, why);
    env.exec.post([done = std::move(done), replies = std::move(replies)]() mutable {
        done(std::move(replies));
    });
}

inline void refuse(const core::environment& env, const core::answer& why, watch_completion ready) {
    env.exec.post([ready = std::move(ready), error = why.error]() mutable { ready(error); });
}

inline void refuse(const core::environment& env, const core::answer& why, page_completion done) {
    core::page none;
    none.error = why.error;
    none.detail = why.detail;
    env.exec.post(
        [done = std::move(done), none = std::move(none)]() mutable { done(std::move(none)); });
}

}  // namespace dibs::store
