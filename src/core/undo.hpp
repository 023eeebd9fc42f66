// SPDX-License-Identifier: Apache-2.0
#pragma once
// Settles doubt: an acquire that may have reached the store, and that nobody wants any more, is
// released by holder id until the store gives a definite answer, or until whatever it granted has
// expired.
//
// "Not held" alone is not definite while the acquire itself may still be on its way. It becomes
// definite when the store's clock has passed the acquire's `not_after`, or when the acquire's own
// answer came.
//
// Thread safety: none; it lives on the executor.

#include "core/batcher.hpp"
#include "core/environment.hpp"
#include "core/holder_id.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace dibs::core {

struct doubtful_acquire {
    std::string key;
    holder_id holder;
    nanoseconds ttl{};
    instant last_sent{};
    std::optional<store_instant> not_after;  ///< of all its tries; empty: some have none
    bool answered = false;                   ///< no try of it is on its way any more
};

class undo {
  public:
    undo(environment env, batcher& through);
    ~undo();
    undo(const undo&) = delete;
    undo& operator=(const undo&) = delete;

    void settle(doubtful_acquire what);

    /// Why a doubt is regarded as settled: nothing of the acquire is left, or can come.
    enum class proof : std::uint8_t {
        answered,  ///< all its tries were answered before the release was
        too_late,  ///< the store's clock has passed the instant after which it refuses them
        expired,   ///< whatever they may have granted has expired
    };
    /// For tests, which write it down.
    void on_settled(std::function<void(const doubtful_acquire&, proof)> told) {
        settled_ = std::move(told);
    }

    /// The last try of an acquire that is being settled was answered: nothing of it is on its way
    /// any more.
    void acquire_answered(const holder_id& holder);

    /// Doubts not settled yet.
    [[nodiscard]] std::size_t open() const noexcept { return cases_.size(); }
    /// How many grants were found and given back.
    [[nodiscard]] std::uint64_t undone() const noexcept { return undone_; }

  private:
    struct settlement;
    void ask(const std::shared_ptr<settlement>& which);
    void told(const std::shared_ptr<settlement>& which,
              const reply& heard,
              bool acquire_was_answered);

    environment env_;
    batcher& batcher_;
    std::function<void(const doubtful_acquire&, proof)> settled_;
    std::map<holder_id, std::shared_ptr<settlement>> cases_;
    std::uint64_t undone_ = 0;
};

}  // namespace dibs::core
