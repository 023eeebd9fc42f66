// SPDX-License-Identifier: Apache-2.0
#include "client/async/operation_state.hpp"
#include "client/client_core.hpp"
#include "client/recipes/idempotent_work.hpp"
#include "core/key.hpp"
#include "recipes/idempotent.hpp"

#include <dibs/async_idempotent.hpp>

#include <utility>

namespace dibs {

using recipes::idempotent_state;

struct idempotent_turn::state {
    lease held;
    recipes::idempotent_terms terms;
    recipes::idempotent_record mine;
    idempotent_call call;
};

idempotent_turn::idempotent_turn() noexcept = default;
idempotent_turn::idempotent_turn(idempotent_turn&& other) noexcept = default;
idempotent_turn& idempotent_turn::operator=(idempotent_turn&& other) noexcept = default;
/// Giving the lease back leaves the mark that the work was begun.
idempotent_turn::~idempotent_turn() = default;

const idempotent_call& idempotent_turn::call() const noexcept {
    return state_->call;
}

namespace detail {

struct idempotent_turn_access {
    using state = idempotent_turn::state;
    static idempotent_turn make(std::unique_ptr<state> state) {
        idempotent_turn made;
        made.state_ = std::move(state);
        return made;
    }
    static std::unique_ptr<state> take(idempotent_turn& turn) noexcept {
        return std::move(turn.state_);
    }
};

}  // namespace detail

using detail::idempotent_turn_access;

void operation::state::start(const std::shared_ptr<detail::client_core>& core,
                             recipes::idempotent_terms terms,
                             recipes::idempotent::completion done) {
    recipes::idempotent_outcome at_once;
    if (core->closed()) {
        at_once.error = core->refusal().error;
    } else if (cancelled) {
        at_once.error = errc::cancelled;
    }
    if (at_once.error) {
        done(std::move(at_once));
        return;
    }
    claims = detail::recipe_of_work(*core);
    claim = claims->claim(std::move(terms),
                          [self = shared_from_this(),
                           done = std::move(done)](recipes::idempotent_outcome ended) mutable {
                              self->claim.reset();
                              self->claims.reset();
                              done(std::move(ended));
                          });
}

namespace {

idempotent_claim claim_of(const std::shared_ptr<detail::client_core>& core,
                          recipes::idempotent_terms terms,
                          recipes::idempotent_outcome ended,
                          std::error_code& error) {
    using verdict = recipes::idempotent_verdict;
    idempotent_claim told;
    error = ended.error;
    if (error) {
        return told;
    }
    switch (ended.verdict) {
        case verdict::granted: {
            auto turn = std::make_unique<idempotent_turn_access::state>();
            turn->held = detail::lease_access::make(core, std::move(ended.lease));
            turn->terms = std::move(terms);
            turn->call = {.fence = turn->held.last_fence(),
                          .attempt = ended.mine.attempt,
                          .lost = turn->held.lost()};
            turn->mine = std::move(ended.mine);
            told.how = idempotent_claim::outcome::to_do;
            told.turn = idempotent_turn_access::make(std::move(turn));
            break;
        }
        case verdict::answered:
            told.how = ended.found->state == idempotent_state::failed
                           ? idempotent_claim::outcome::failed
                           : idempotent_claim::outcome::replayed;
            told.answer = std::move(ended.found->answer);
            break;
        case verdict::in_flight:
        case verdict::blocked:
            break;
        case verdict::differs:
            error = errc::fingerprint_differs;
            break;
        case verdict::in_doubt:
            error = errc::work_in_doubt;
            break;
        case verdict::trouble:
            error = errc::store_refused;
            break;
    }
    return told;
}

using finish = core::unique_function<void(recipes::idempotent& recipe,
                                          const recipes::lease_ptr& lease,
                                          idempotent_turn_access::state& turn,
                                          recipes::mutex::release_completion done)>;

void end(idempotent_turn& turn,
         std::error_code kept_something_else,
         std::unique_ptr<release_handler> handler,
         finish how) {
    std::shared_ptr<idempotent_turn_access::state> ended{idempotent_turn_access::take(turn)};
    const auto handle = ended ? detail::lease_access::handle(ended->held) : nullptr;
    if (!handle) {
        handler.release()->complete_and_go({}, release_outcome::not_held);
        return;
    }
    handle->core->post([handle,
                        ended = std::move(ended),
                        kept_something_else,
                        handler = std::move(handler),
                        how = std::move(how)]() mutable {
        auto& core = *handle->core;
        if (core.closed()) {
            handler.release()->complete_and_go(errc::closed, release_outcome::not_held);
            return;
        }
        const std::shared_ptr<recipes::idempotent> recipe = detail::recipe_of_work(core);
        auto& what = *ended;
        how(*recipe,
            handle->state,
            what,
            [recipe,
             handle,
             ended = std::move(ended),
             kept_something_else,
             handler = std::move(handler)](const recipes::release_reply& told) mutable {
                handler.release()->complete_and_go(
                    told.released ? kept_something_else : told.error,
                    told.released ? release_outcome::released : release_outcome::not_held);
            });
    });
}

void end_with(idempotent_turn& turn,
              idempotent_state how,
              std::string answer,
              std::error_code kept_something_else,
              std::unique_ptr<release_handler> handler) {
    end(turn,
        kept_something_else,
        std::move(handler),
        [how, answer = std::move(answer)](recipes::idempotent& recipe,
                                          const recipes::lease_ptr& lease,
                                          idempotent_turn_access::state& what,
                                          recipes::mutex::release_completion done) mutable {
            what.mine.state = how;
            what.mine.answer = std::move(answer);
            recipe.finish(lease, what.terms, std::move(what.mine), std::move(done));
        });
}

}  // namespace

void start_idempotent(client& through,
                      std::string_view key,
                      std::string_view fingerprint,
                      const idempotent_options& options,
                      std::unique_ptr<idempotent_handler> handler,
                      const operation& call) {
    const auto& core = detail::lease_access::core(through);
    const auto asked = detail::work_terms_of(key, fingerprint, options);
    std::error_code fault;
    if (!core) {
        fault = errc::closed;
    } else if (!core::fault_of_key(key).empty()) {
        fault = errc::invalid_key;
    } else if (!detail::fault_of_work(asked, through).empty()) {
        fault = errc::invalid_argument;
    }
    if (fault) {
        handler.release()->complete_and_go(fault, {});
        return;
    }
    const auto& state = detail::operation_access::state_of(call);
    state->attach(core);
    core->post([core,
                state,
                terms = detail::recipe_terms_of(asked),
                handler = std::move(handler)]() mutable {
        auto kept = terms;
        state->start(core,
                     std::move(terms),
                     [core, terms = std::move(kept), handler = std::move(handler)](
                         recipes::idempotent_outcome ended) mutable {
                         std::error_code error;
                         auto claim = claim_of(core, std::move(terms), std::move(ended), error);
                         handler.release()->complete_and_go(error, std::move(claim));
                     });
    });
}

void start_finish(idempotent_turn&& turn,
                  std::string answer,
                  std::unique_ptr<release_handler> handler) {
    if (answer.size() > idempotent_answer_bytes_max) {
        end_with(turn,
                 idempotent_state::failed,
                 detail::answer_too_long(answer.size()),
                 errc::invalid_argument,
                 std::move(handler));
    } else {
        end_with(turn, idempotent_state::done, std::move(answer), {}, std::move(handler));
    }
}

void start_fail(idempotent_turn&& turn,
                std::string failure,
                std::unique_ptr<release_handler> handler) {
    if (failure.size() > idempotent_answer_bytes_max) {
        failure.resize(idempotent_answer_bytes_max);
    }
    end_with(turn, idempotent_state::failed, std::move(failure), {}, std::move(handler));
}

void start_give_up(idempotent_turn&& turn, std::unique_ptr<release_handler> handler) {
    end(turn,
        {},
        std::move(handler),
        [](recipes::idempotent& recipe,
           const recipes::lease_ptr& lease,
           idempotent_turn_access::state& /*what*/,
           recipes::mutex::release_completion done) { recipe.abandon(lease, std::move(done)); });
}

}  // namespace dibs
