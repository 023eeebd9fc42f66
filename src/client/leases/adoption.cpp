// SPDX-License-Identifier: Apache-2.0
#include "client/leases/adoption.hpp"

#include "client/checked_options.hpp"
#include "client/complaint.hpp"
#include "core/deadline.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace dibs::detail {

namespace {

std::error_code why_not_held(const core::lease_state& lease, errc otherwise) {
    const auto lost = lease.lost_reason();
    return lost ? lost : make_error_code(otherwise);
}

}  // namespace

void hand_over(std::shared_ptr<lease_handle> handle,
               core::unique_function<void(hand_over_outcome&&)> done) {
    auto& core = *handle->core;
    const auto lease = handle->state;
    if (core.closed() || !lease->held(core.env().time.now())) {
        done({.text = {},
              .error = core.closed() ? core.refusal().error : why_not_held(*lease, errc::not_held),
              .detail = {}});
        return;
    }
    const core::renew::change into{.holder = lease->holder, .attached = core::attachment::detached};
    core.watchdog().change(
        lease,
        into,
        [handle = std::move(handle), done = std::move(done)](const core::reply& told) mutable {
            auto& held = handle->state;
            hand_over_outcome ended;
            if (told.given.took != core::effect::yes) {
                ended.error = told.given.error;
                ended.detail = told.given.detail;
            } else if (told.given.what != core::verdict::renewed) {
                ended.error = why_not_held(*held, errc::lease_gone);
            } else if (!handle->core->mutex().give_away(held)) {
                ended.error = why_not_held(*held, errc::not_held);
            } else {
                const handed_over text{
                    .holder = held->holder, .fence = held->fence(), .key = held->key()};
                ended.text = text.text();
            }
            done(std::move(ended));
        });
}

hand_over_outcome hand_over_and_wait(lease& held) noexcept {
    const auto handle = lease_access::handle(held);
    hand_over_outcome ended;
    if (!held.held()) {
        const auto lost = held.lost_reason();
        ended.error = lost ? lost : make_error_code(errc::not_held);
        return ended;
    }
    handle->core->run([&](core::task done) {
        hand_over(handle, [&ended, done = std::move(done)](hand_over_outcome&& told) mutable {
            ended = std::move(told);
            done();
        });
    });
    if (!ended.error) {
        (void)lease_access::take(held);
    }
    return ended;
}

std::optional<adoption> checked_adoption(client_core& core,
                                         std::string_view text,
                                         const acquire_options& options,
                                         std::error_code& error,
                                         std::string& message) {
    auto parsed = handed_over::parse(text);
    if (!parsed) {
        error = errc::invalid_argument;
        message = "this is not the text of a lease that was handed over";
        return std::nullopt;
    }
    if (const auto fault = fault_of_options(options, core.store().caps()); !fault.empty()) {
        error = errc::invalid_argument;
        message = complaint(parsed->key, core.store().location(), fault);
        return std::nullopt;
    }
    return adoption{std::move(*parsed), options};
}

namespace {

/// An adoption that was sent.
class under_way {
  public:
    under_way(std::shared_ptr<client_core> through,
              adoption asked,
              core::unique_function<void(adoption_outcome&&)> done)
        : core_(std::move(through)),
          asked_(std::move(asked)),
          terms_(terms_of(asked_.options).lease),
          holder_(core::holder_id::draw(core_->env().random)),
          done_(std::move(done)) {}

    [[nodiscard]] core::renew request() const {
        core::renew made;
        made.key = asked_.text.key;
        made.holder = asked_.text.holder;
        made.ttl = std::chrono::duration_cast<core::microseconds>(terms_.ttl);
        made.fences = 1;
        made.adopt = core::renew::change{
            .holder = holder_,
            .attached = terms_.attached ? core::attachment::attached : core::attachment::detached};
        return made;
    }
    [[nodiscard]] core::nanoseconds patience() const { return terms_.ttl / 6; }

    void answered(core::reply&& heard) {
        if (std::exchange(told_, true)) {
            if (heard.given.took != core::effect::unknown) {
                core_->undo().acquire_answered(holder_);
            }
            return;
        }
        const auto& given = heard.given;
        const auto now = core_->env().time.now();
        const auto deadline = core::local_deadline(heard.sent, terms_.ttl);
        const bool ours = given.took == core::effect::yes && given.what == core::verdict::renewed;
        // Its own, larger one: after a failover the same text may be adopted once more, and then the
        // fence is all that keeps the two apart.
        const auto fence = given.fences.first;
        const bool usable = fence > asked_.text.fence && now < deadline;
        adoption_outcome ended;
        if (ours && usable && !core_->closed()) {
            ended.lease = std::make_shared<core::lease_state>(
                asked_.text.key, holder_, fence, terms_, now, deadline);
            core_->mutex().adopted(ended.lease, heard.sent);
        } else if (ours || given.took == core::effect::unknown) {
            // The text may be worthless by now, and nobody else knows the new holder id.
            core_->undo().settle({.key = asked_.text.key,
                                  .holder = holder_,
                                  .ttl = terms_.ttl,
                                  .last_sent = std::max(heard.sent, now),
                                  .not_after = std::nullopt,
                                  .answered = ours});
        }
        if (core_->closed()) {
            ended.error = errc::closed;
            ended.detail = "the client was closed meanwhile";
        } else if (given.what == core::verdict::not_ready) {
            ended.error = errc::not_ready;
            ended.detail = given.detail;
        } else if (!ended.lease && given.took == core::effect::yes) {
            ended.error = errc::lease_gone;
            ended.detail =
                "the lease has expired, was given back, or was adopted by another process";
        } else if (!ended.lease) {
            ended.error = given.error;
            ended.detail = given.detail;
        }
        auto done = std::move(done_);
        done(std::move(ended));
    }

  private:
    const std::shared_ptr<client_core> core_;
    const adoption asked_;
    const core::lease_terms terms_;
    const core::holder_id holder_;
    core::unique_function<void(adoption_outcome&&)> done_;
    bool told_ = false;
};

}  // namespace

void adopt(const std::shared_ptr<client_core>& core,
           const adoption& asked,
           core::unique_function<void(adoption_outcome&&)> done) {
    if (core->closed()) {
        auto refusal = core->refusal();
        done({.lease = nullptr, .error = refusal.error, .detail = std::move(refusal.detail)});
        return;
    }
    auto made = std::make_shared<under_way>(core, asked, std::move(done));
    auto request = made->request();
    const auto give_up = core->env().time.now() + std::chrono::nanoseconds(asked.options.timeout);
    core->batcher().submit(
        std::move(request), made->patience(), give_up, [made](core::reply&& heard) {
            made->answered(std::move(heard));
        });
}

}  // namespace dibs::detail
