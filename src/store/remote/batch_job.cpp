// SPDX-License-Identifier: Apache-2.0
#include "store/remote/batch_job.hpp"

#include <algorithm>
#include <utility>

namespace dibs::store::remote {

batch_job::batch_job(std::vector<core::entry> all, batch_completion when_answered)
    : entries(std::move(all)),
      replies(entries.size()),
      done(std::move(when_answered)),
      left(entries.size()) {}

void batch_job::settle(std::uint32_t entry, core::answer given) {
    replies[entry] = std::move(given);
    --left;
}

void batch_job::tell_if_all(std::vector<core::task>& letters) {
    if (left == 0 && done) {
        letters.push_back([told = std::exchange(done, {}), all = std::move(replies)]() mutable {
            told(std::move(all));
        });
    }
}

core::instant batch_job::deadline_of(const std::vector<std::uint32_t>& which) const noexcept {
    auto earliest = core::instant::max();
    for (const auto at : which) {
        earliest = std::min(earliest, entries[at].deadline);
    }
    return earliest;
}

}  // namespace dibs::store::remote
