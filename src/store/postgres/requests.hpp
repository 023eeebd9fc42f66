// SPDX-License-Identifier: Apache-2.0
#pragma once
// The requests of the store: batches, and everything else, which is one statement each.

#include "core/batch.hpp"
#include "store/postgres/request.hpp"
#include "store/postgres/short_way.hpp"
#include "store/postgres/steps.hpp"
#include "store/remote/batch_job.hpp"
#include "store/remote/listing.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dibs::store::postgres {

using remote::batch_job;

class batch_request final : public request {
  public:
    /// The whole batch. Entries that make no sense are answered without the server.
    [[nodiscard]] static std::unique_ptr<batch_request> make(std::shared_ptr<const caller> self,
                                                             std::vector<core::entry> entries,
                                                             batch_completion done);

    enum class way : std::uint8_t { may_be_short, whole };

    batch_request(std::shared_ptr<const caller> self,
                  std::shared_ptr<batch_job> job,
                  std::vector<std::uint32_t> which,
                  unsigned tries = 0,
                  core::instant not_before = {},
                  way by = way::may_be_short);

    [[nodiscard]] core::instant deadline() const noexcept override { return deadline_; }
    [[nodiscard]] bool expire(outcome told) override;
    [[nodiscard]] core::instant not_before() const noexcept override { return not_before_; }
    /// Of several entries those whose rows are locked are passed over, or given up after a moment.
    [[nodiscard]] bool may_wait() const noexcept override { return which_.size() == 1; }
    [[nodiscard]] sending send(carrier& over, outcome told) override;
    void answered(const reply& told, outcome after) override;
    void refused(const trouble& why, outcome told) override;
    void lost(const trouble& why, outcome told) override;

  private:
    [[nodiscard]] short_way_habit& habit_of(std::size_t count) const noexcept;
    [[nodiscard]] bool may_go_short(const carrier& over) const noexcept;
    [[nodiscard]] std::optional<short_step> short_step_over(const carrier& over) const;
    [[nodiscard]] sending send_by_session(carrier& over, outcome told);
    [[nodiscard]] bool set_apart_what_is_short(outcome told);
    void go_the_whole_way(std::vector<std::uint32_t> which, outcome after) const;
    void hear_short_step(const reply& told, outcome after);
    void hear_locks(const std::vector<std::uint32_t>& but) const;
    [[nodiscard]] sending ask_numbers(carrier& over);
    void hear_numbers(const reply& told, outcome after);
    void doubt_locks(outcome after) const;
    [[nodiscard]] sending settle_locks(carrier& over);
    void hear_settled(const reply& told, outcome after) const;
    void note_deadline() noexcept;
    void leave_in_doubt(const std::string& why, outcome told) const;
    void failed(const reply& told, outcome after);
    void again(std::vector<std::uint32_t> which, outcome after, core::nanoseconds rest) const;

    const std::shared_ptr<const caller> self_;
    const std::shared_ptr<batch_job> job_;
    std::vector<std::uint32_t> which_;
    std::vector<std::string> unnumbered_;  ///< keys whose numbers were asked for instead
    std::vector<stand> stands_;
    core::instant deadline_;
    const unsigned tries_;
    const core::instant not_before_;
    const way by_;
    bool went_short_ = false;
    bool settles_ = false;  ///< the locks of failed steps, before anything else
};

/// One statement whose reply is looked at on the thread that does the I/O.
class plain_request final : public request {
  public:
    /// Null: it failed, see the trouble.
    using hearing = core::unique_function<void(const reply*, const trouble&, outcome)>;

    plain_request(statement what, parameters with, core::instant deadline, hearing heard)
        : what_(what), with_(std::move(with)), deadline_(deadline), heard_(std::move(heard)) {}
    /// In text form, for doctor.
    plain_request(std::string sql, core::instant deadline, hearing heard)
        : sql_(std::move(sql)), deadline_(deadline), heard_(std::move(heard)) {}

    [[nodiscard]] core::instant deadline() const noexcept override { return deadline_; }
    [[nodiscard]] bool expire(outcome told) override;
    [[nodiscard]] sending send(carrier& over, outcome told) override;
    void answered(const reply& told, outcome after) override { heard_(&told, {}, after); }
    void refused(const trouble& why, outcome told) override { heard_(nullptr, why, told); }
    void lost(const trouble& why, outcome told) override { heard_(nullptr, why, told); }

  private:
    statement what_ = statement::ping;
    parameters with_;
    std::string sql_;
    core::instant deadline_;
    hearing heard_;
};

[[nodiscard]] std::unique_ptr<request> make_listing(const std::shared_ptr<const caller>& self,
                                                    remote::listing wanted,
                                                    core::instant deadline);

}  // namespace dibs::store::postgres
