// SPDX-License-Identifier: Apache-2.0
#pragma once
// The requests of the store: batches, single commands, and the listing, which is made of both.

#include "core/batch.hpp"
#include "store/redis/names.hpp"
#include "store/redis/request.hpp"
#include "store/redis/steps.hpp"
#include "store/remote/batch_job.hpp"
#include "store/remote/listing.hpp"
#include "store/store.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace dibs::store::redis {

struct speaker {
    names where;
    caller self;
};

using remote::batch_job;

class batch_request final : public request {
  public:
    /// The whole batch. Entries that cannot be sent are answered at once.
    [[nodiscard]] static std::unique_ptr<batch_request> make(std::shared_ptr<const speaker> self,
                                                             std::vector<core::entry> entries,
                                                             batch_completion done);

    batch_request(std::shared_ptr<const speaker> self,
                  std::shared_ptr<batch_job> job,
                  std::vector<std::uint32_t> which);

    [[nodiscard]] core::instant deadline() const noexcept override { return deadline_; }
    [[nodiscard]] bool leaves_word() const noexcept override { return leaves_word_; }
    [[nodiscard]] std::size_t bytes_to_keep() const noexcept override { return bytes_to_keep_; }
    [[nodiscard]] bool write(std::string& out, core::instant now, outcome told) override;
    [[nodiscard]] bool answered(const reply& told, outcome after) override;
    void refused(const trouble& why, outcome told) override;
    void lost(const trouble& why, outcome told) override;

  private:
    const std::shared_ptr<const speaker> self_;
    const std::shared_ptr<batch_job> job_;
    std::vector<std::uint32_t> which_;
    core::instant deadline_;
    bool leaves_word_ = false;
    std::size_t bytes_to_keep_ = 0;
    unsigned tries_ = 0;
};

/// A command whose reply is looked at on the thread that does the I/O.
class command_request final : public request {
  public:
    /// Null: it failed, see the trouble. May add requests that follow.
    using hearing = core::unique_function<void(const reply*, const trouble&, outcome)>;

    command_request(std::string bytes, core::instant deadline, hearing heard)
        : bytes_(std::move(bytes)), deadline_(deadline), heard_(std::move(heard)) {}

    [[nodiscard]] core::instant deadline() const noexcept override { return deadline_; }
    [[nodiscard]] bool write(std::string& out, core::instant now, outcome told) override;
    [[nodiscard]] bool answered(const reply& told, outcome after) override;
    void refused(const trouble& why, outcome told) override { heard_(nullptr, why, told); }
    void lost(const trouble& why, outcome told) override { heard_(nullptr, why, told); }

  private:
    std::string bytes_;
    core::instant deadline_;
    hearing heard_;
};

/// The first request of a listing; the others follow from it.
[[nodiscard]] std::unique_ptr<request> begin_listing(std::shared_ptr<const speaker> self,
                                                     remote::listing wanted,
                                                     core::instant deadline);

}  // namespace dibs::store::redis
