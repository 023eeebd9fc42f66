// SPDX-License-Identifier: Apache-2.0
#pragma once
// The outermost edge of a client: sees what leaves for the store and what comes back, writes it into
// the history, and knows, independently of the code under test, when a request left.

#include "simulation/history/recorder.hpp"
#include "simulation/process/process.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace dibs::simulation {

/// How much of the work of a run was done, by all of its processes.
struct traffic {
    std::uint64_t batches = 0;
    std::uint64_t answered = 0;  ///< acquires, renewals and releases that got an answer
};

class observed_store final : public store::store {
  public:
    /// `deadline_of` tells the deadline of a lease of this holder id, if the client holds one.
    using deadline_query = std::function<std::optional<core::instant>(const core::holder_id&)>;

    observed_store(process& in,
                   recorder& history,
                   traffic& counted,
                   std::unique_ptr<dibs::store::store> inner)
        : process_(in), history_(history), counted_(counted), inner_(std::move(inner)) {}

    /// To be given before the first renewal.
    void ask_for_deadlines(deadline_query asked) { deadline_of_ = std::move(asked); }

    /// What came back for an acquire or an adoption that was granted.
    struct granted {
        core::instant sent{};
        core::fence_block fences;
    };
    /// Null when no grant of this holder was heard of.
    [[nodiscard]] const granted* grant_of(const core::holder_id& holder) const {
        const auto at = grants_.find(holder);
        return at == grants_.end() ? nullptr : &at->second;
    }
    void forget(const core::holder_id& holder) { grants_.erase(holder); }

    [[nodiscard]] const dibs::store::capabilities& caps() const noexcept override {
        return inner_->caps();
    }
    [[nodiscard]] const std::string& location() const noexcept override {
        return inner_->location();
    }
    void execute(dibs::store::lane which,
                 std::vector<core::entry> batch,
                 dibs::store::batch_completion done) override;
    dibs::store::watch_id watch(std::string_view key,
                                dibs::store::watch_completion ready,
                                dibs::store::wake_callback wake) override;
    void unwatch(dibs::store::watch_id id) override { inner_->unwatch(id); }
    dibs::store::watch_id await_notices(std::string_view key,
                                        dibs::store::wake_callback wake) override;
    void list(std::string prefix,
              std::string after,
              std::size_t limit,
              dibs::store::page_completion done) override {
        inner_->list(std::move(prefix), std::move(after), limit, std::move(done));
    }
    void close() override { inner_->close(); }

  private:
    /// What must be known of an entry when its answer comes.
    struct sent_entry {
        core::holder_id holder;        ///< that will hold afterwards
        std::uint64_t call = 0;        ///< of a renewal that was written down
        std::string key;               ///< of a renewal
        core::fence_number fence = 0;  ///< of the lease that it is to prolong
        bool grants = false;           ///< an acquire or an adoption
    };
    [[nodiscard]] dibs::store::wake_callback written_down(std::string_view key,
                                                          dibs::store::wake_callback wake);
    [[nodiscard]] sent_entry leaves(const core::entry& what, core::instant now);
    void comes_back(const sent_entry& what, const core::answer& given, core::instant sent);
    void renewal_came_back(const sent_entry& what, const core::answer& given);

    process& process_;
    recorder& history_;
    traffic& counted_;
    const std::unique_ptr<dibs::store::store> inner_;
    deadline_query deadline_of_;
    std::map<core::holder_id, granted> grants_;
};

}  // namespace dibs::simulation
