// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a batcher sends to, where the test sees every batch and answers when it likes, or never.
// Thread safety: none.

#include "core/batch.hpp"
#include "core/environment.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <variant>
#include <vector>

namespace dibs::testing {

[[nodiscard]] inline core::answer answer_of(core::verdict what) {
    core::answer given;
    given.what = what;
    given.took = core::effect::yes;
    return given;
}

class manual_target final : public core::batch_target {
  public:
    struct batch {
        core::lane which{};
        std::vector<core::entry> entries;
        core::batch_completion done;
        core::instant when{};

        template <typename Verb>
        [[nodiscard]] std::size_t count() const {
            return static_cast<std::size_t>(
                std::count_if(entries.begin(), entries.end(), [](const core::entry& one) {
                    return std::holds_alternative<Verb>(one.what);
                }));
        }
        template <typename Verb>
        [[nodiscard]] const Verb& as(std::size_t at = 0) const {
            return std::get<Verb>(entries.at(at).what);
        }

        /// Every entry gets the same answer.
        void answer_all(const core::answer& given) { done(core::answers(entries.size(), given)); }
    };

    explicit manual_target(core::environment env) : env_{env} {}

    void execute(core::lane which,
                 std::vector<core::entry> entries,
                 core::batch_completion done) override {
        batches.push_back({which, std::move(entries), std::move(done), env_.time.now()});
    }

    /// In the order in which they came. A batch stays when it was answered.
    std::deque<batch> batches;

  private:
    core::environment env_;
};

}  // namespace dibs::testing
