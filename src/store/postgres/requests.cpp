// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/requests.hpp"

#include "store/postgres/advisory/session.hpp"
#include "store/postgres/advisory/short_way.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace dibs::store::postgres {

namespace {

using namespace std::chrono_literals;

/// How long an entry that is sent alone waits in the server for a locked row: longer than a commit
/// takes, so short that others on the same connection hardly feel it.
constexpr core::microseconds row_patience = 50ms;
/// After that it rests, longer each time.
constexpr core::nanoseconds rest_first = 5ms;
constexpr core::nanoseconds rest_max = 200ms;

constexpr std::string_view not_ours = "the answer is not one of our function";

/// A commit that is not as safe as it was asked to be is told as a success with a warning.
std::string warned_of(const reply& told) {
    return "the server warned: " + told.warning;
}

core::nanoseconds rest_after(unsigned tries) noexcept {
    return std::min(rest_first * (1U << std::min(tries, 6U)), rest_max);
}

}  // namespace

std::string_view state_of(const reply& told) noexcept {
    return told.error ? std::string_view{told.error->state} : std::string_view{};
}

trouble fault_of(const reply& told, std::string_view where) {
    if (!told.error && told.result) {
        return {};
    }
    if (state_of(told).empty()) {
        return {errc::store_unreachable,
                std::string{where} + ": the connection broke before the answer came"};
    }
    return trouble_of(where, told.error->state, told.error->words);
}

// --- batches -------------------------------------------------------------------------------------

std::unique_ptr<batch_request> batch_request::make(std::shared_ptr<const caller> self,
                                                   std::vector<core::entry> entries,
                                                   batch_completion done) {
    auto job = std::make_shared<batch_job>(std::move(entries), std::move(done));
    std::vector<std::uint32_t> sound;
    for (std::uint32_t at = 0; at < job->entries.size(); ++at) {
        auto fault = postgres::fault_of(job->entries[at].what);
        if (!fault && self->own) {
            fault = unsupported_in_session(job->entries[at].what);
        }
        if (fault) {
            job->settle(at, std::move(*fault));
        } else {
            sound.push_back(at);
        }
    }
    return std::make_unique<batch_request>(std::move(self), std::move(job), std::move(sound));
}

batch_request::batch_request(std::shared_ptr<const caller> self,
                             std::shared_ptr<batch_job> job,
                             std::vector<std::uint32_t> which,
                             unsigned tries,
                             core::instant not_before,
                             way by)
    : self_(std::move(self)),
      job_(std::move(job)),
      which_(order_of(job_->entries, std::move(which))),
      tries_(tries),
      not_before_(not_before),
      by_(by) {
    note_deadline();
}

void batch_request::note_deadline() noexcept {
    deadline_ = job_->deadline_of(which_);
}

bool batch_request::expire(outcome told) {
    std::erase_if(which_, [&](std::uint32_t at) {
        if (job_->entries[at].deadline > told.now) {
            return false;
        }
        job_->settle(at,
                     tries_ == 0 ? core::refused(errc::timed_out, "not begun before its deadline")
                                 : core::refused(errc::store_busy,
                                                 self_->where + ": " + std::string{row_is_kept} +
                                                     "; " + std::string{who_keeps_it}));
        return true;
    });
    note_deadline();
    if (!which_.empty()) {
        return false;
    }
    job_->tell_if_all(told.letters);
    return true;
}

short_way_habit& batch_request::habit_of(std::size_t count) const noexcept {
    return count == 1 ? self_->short_way->lone : self_->short_way->batches;
}

/// After a failure somebody has a row, or the server is in trouble: that is for the whole function.
bool batch_request::may_go_short(const carrier& over) const noexcept {
    return tries_ == 0 && by_ == way::may_be_short && over.is_set_up();
}

std::optional<short_step> batch_request::short_step_over(const carrier& over) const {
    if (!may_go_short(over)) {
        return std::nullopt;
    }
    auto step = short_step_of(job_->entries, which_, *self_);
    return step && habit_of(which_.size()).try_it() ? std::move(step) : std::nullopt;
}

request::sending batch_request::send(carrier& over, outcome told) {
    went_short_ = false;
    settles_ = false;
    if (self_->own && self_->own->in_doubt()) {
        return settle_locks(over);
    }
    if (expire(told)) {
        return sending::nothing;
    }
    if (self_->own) {
        return send_by_session(over, told);
    }
    if (const auto step = short_step_over(over)) {
        went_short_ = true;
        return over.send(step->which, step->with) ? sending::sent : sending::failed;
    }
    const auto with =
        parameters_of(job_->entries, which_, *self_, which_.size() == 1, row_patience);
    return over.send(statement::execute, with) ? sending::sent : sending::failed;
}

request::sending batch_request::send_by_session(carrier& over, outcome told) {
    unnumbered_ = self_->own->unnumbered(job_->entries, which_);
    if (!unnumbered_.empty()) {
        return ask_numbers(over);
    }
    for (const auto at : self_->own->beyond_capacity(job_->entries, which_)) {
        job_->settle(
            at,
            core::refused(errc::store_refused,
                          self_->where + ": this process holds " +
                              std::to_string(self_->own->capacity()) +
                              " advisory locks, and leaves room for others; raise "
                              "max_locks_per_transaction of the server, or use postgres://"));
    }
    if (which_.empty()) {
        job_->tell_if_all(told.letters);
        return sending::nothing;
    }
    std::vector<std::uint32_t> later;
    stands_ = self_->own->stands(job_->entries, which_, later);
    if (!later.empty()) {
        told.next.push_back(std::make_unique<batch_request>(self_, job_, std::move(later), tries_));
    }
    if (may_go_short(over) && set_apart_what_is_short(told)) {
        went_short_ = true;
        const auto step = short_session_step(job_->entries, which_, stands_, *self_);
        return over.send(step.which, step.with) ? sending::sent : sending::failed;
    }
    const auto with =
        parameters_of(job_->entries, which_, *self_, which_.size() == 1, row_patience, stands_);
    return over.send(statement::execute, with) ? sending::sent : sending::failed;
}

/// Leaves what has a short way; the rest goes the whole way after it. False: all of it does.
bool batch_request::set_apart_what_is_short(outcome told) {
    std::vector<std::uint32_t> rest;
    std::vector<std::uint32_t> simple;
    std::vector<stand> stands;
    for (std::size_t at = 0; at < which_.size(); ++at) {
        if (has_short_way(job_->entries[which_[at]].what, stands_[at])) {
            simple.push_back(which_[at]);
            stands.push_back(stands_[at]);
        } else {
            rest.push_back(which_[at]);
        }
    }
    if (simple.empty() || !habit_of(simple.size()).try_it()) {
        return false;
    }
    which_ = std::move(simple);
    stands_ = std::move(stands);
    if (!rest.empty()) {
        go_the_whole_way(std::move(rest), told);
    }
    return true;
}

/// At once, also when nothing else is sent.
void batch_request::doubt_locks(outcome after) const {
    self_->own->doubt(stands_);
    if (self_->own->in_doubt()) {
        after.next.push_back(
            std::make_unique<batch_request>(self_, job_, std::vector<std::uint32_t>{}));
    }
}

request::sending batch_request::settle_locks(carrier& over) {
    settles_ = true;
    const auto& doubts = self_->own->doubts();
    parameters with;
    for (const auto* locks : {&doubts.tried, &doubts.own}) {
        with.array(parameters::kind::number, locks->size());
        for (const auto lock : *locks) {
            with.element(lock);
        }
    }
    return over.send(statement::settle_locks, with) ? sending::sent : sending::failed;
}

void batch_request::hear_settled(const reply& told, outcome after) const {
    const bool answered = !told.error && ::PQntuples(told.result.get()) == 1;
    self_->own->settled(answered && row{*told.result, 0}.truth(1));
    if (!which_.empty()) {
        after.next.push_back(
            std::make_unique<batch_request>(self_, job_, which_, tries_, not_before_, by_));
    }
}

request::sending batch_request::ask_numbers(carrier& over) {
    parameters with;
    with.array(parameters::kind::text, unnumbered_.size());
    for (const auto& key : unnumbered_) {
        with.element(std::string_view{self_->prefix + key});
    }
    return over.send(statement::numbers, with) ? sending::sent : sending::failed;
}

void batch_request::hear_numbers(const reply& told, outcome after) {
    if (static_cast<std::size_t>(::PQntuples(told.result.get())) != unnumbered_.size()) {
        refused({errc::store_refused, self_->where + ": the server numbers names otherwise"},
                after);
        return;
    }
    for (std::size_t at = 0; at < unnumbered_.size(); ++at) {
        self_->own->learn(unnumbered_[at], row{*told.result, static_cast<int>(at)}.number(0));
    }
    after.next.push_back(
        std::make_unique<batch_request>(self_, job_, which_, tries_, core::instant{}, by_));
}

void batch_request::again(std::vector<std::uint32_t> which,
                          outcome after,
                          core::nanoseconds rest) const {
    after.next.push_back(std::make_unique<batch_request>(
        self_, job_, std::move(which), tries_ + 1, after.now + rest));
}

void batch_request::answered(const reply& told, outcome after) {
    if (settles_) {
        hear_settled(told, after);
        return;
    }
    if (!told.result || told.error) {
        failed(told, after);
        return;
    }
    if (!unnumbered_.empty()) {
        hear_numbers(told, after);
        return;
    }
    if (went_short_) {
        hear_short_step(told, after);
        return;
    }
    std::vector<std::uint32_t> locked;
    auto replies = std::move(job_->replies);
    const bool ours = read_answers(*told.result, job_->entries, which_, *self_, replies, locked);
    job_->replies = std::move(replies);
    bool warned = !told.warning.empty();
    if (self_->own && ours) {
        hear_locks(locked);
        // The server warns of locks that were given back and not held, which the answers tell.
        warned = warned && self_->own->trusted();
    }
    if (!ours || warned) {
        leave_in_doubt(ours ? warned_of(told) : std::string{not_ours}, after);
        return;
    }
    job_->settled(which_.size() - locked.size());
    // Each alone: the server waits for the row of each, and no other entry waits with it.
    for (const auto at : locked) {
        again({at}, after, 0ns);
    }
    job_->tell_if_all(after.letters);
}

/// What the session has now, but for entries that were not carried out.
void batch_request::hear_locks(const std::vector<std::uint32_t>& but) const {
    for (std::size_t at = 0; at < which_.size(); ++at) {
        if (std::find(but.begin(), but.end(), which_[at]) == but.end()) {
            self_->own->heard(
                job_->entries[which_[at]].what, stands_[at], job_->replies[which_[at]]);
        }
    }
}

void batch_request::go_the_whole_way(std::vector<std::uint32_t> which, outcome after) const {
    after.next.push_back(std::make_unique<batch_request>(
        self_, job_, std::move(which), tries_, core::instant{}, way::whole));
}

void batch_request::hear_short_step(const reply& told, outcome after) {
    std::vector<std::uint32_t> passed_over;
    auto replies = std::move(job_->replies);
    const auto& read = self_->own ? read_short_session_step : read_short_step;
    const bool ours = read(*told.result, job_->entries, which_, replies, passed_over);
    job_->replies = std::move(replies);
    bool warned = !told.warning.empty();
    if (self_->own && ours) {
        hear_locks(passed_over);
        warned = warned && self_->own->trusted();
    }
    if (!ours || (warned && passed_over.size() < which_.size())) {
        leave_in_doubt(ours ? warned_of(told) : std::string{not_ours}, after);
        return;
    }
    habit_of(which_.size()).led_there(2 * passed_over.size() < which_.size());
    job_->settled(which_.size() - passed_over.size());
    if (!passed_over.empty()) {
        go_the_whole_way(std::move(passed_over), after);
    }
    job_->tell_if_all(after.letters);
}

void batch_request::leave_in_doubt(const std::string& why, outcome told) const {
    for (const auto at : which_) {
        job_->settle(at, core::in_doubt(self_->where + ": " + why));
    }
    job_->tell_if_all(told.letters);
}

void batch_request::failed(const reply& told, outcome after) {
    const auto why = postgres::fault_of(told, self_->where);
    if (self_->own && state_of(told) == another_session) {
        self_->own->distrust();
    }
    if (!told.error || told.error->fatal) {
        lost(why, after);
        return;
    }
    if (self_->own) {
        doubt_locks(after);
    }
    // The transaction was undone, so nothing of it has happened.
    const auto what = remedy_for(state_of(told));
    if (what == remedy::none || (what == remedy::split && which_.size() == 1 && !went_short_)) {
        refused(why, after);
        return;
    }
    if (went_short_) {
        habit_of(which_.size()).led_there(false);
        go_the_whole_way(which_, after);
        return;
    }
    if (which_.size() == 1) {
        again(which_, after, rest_after(tries_));
        return;
    }
    const auto middle = which_.begin() + static_cast<std::ptrdiff_t>(which_.size() / 2);
    again({which_.begin(), middle}, after, 0ns);
    again({middle, which_.end()}, after, 0ns);
}

void batch_request::refused(const trouble& why, outcome told) {
    for (const auto at : which_) {
        job_->settle(at, core::refused(why.error, why.detail));
    }
    job_->tell_if_all(told.letters);
}

void batch_request::lost(const trouble& why, outcome told) {
    if (settles_) {
        refused(why, told);
        return;
    }
    for (const auto at : which_) {
        job_->settle(at, core::in_doubt(why.detail));
    }
    job_->tell_if_all(told.letters);
}

// --- plain ones ----------------------------------------------------------------------------------

bool plain_request::expire(outcome told) {
    if (deadline_ > told.now) {
        return false;
    }
    heard_(nullptr, {errc::timed_out, "not begun before its deadline"}, told);
    return true;
}

request::sending plain_request::send(carrier& over, outcome told) {
    if (expire(told)) {
        return sending::nothing;
    }
    const bool sent = sql_.empty() ? over.send(what_, with_) : over.send_text(sql_);
    return sent ? sending::sent : sending::failed;
}

std::unique_ptr<request> make_listing(const std::shared_ptr<const caller>& self,
                                      remote::listing wanted,
                                      core::instant deadline) {
    auto with = listing_parameters(wanted.prefix, wanted.after, wanted.limit, *self);
    return std::make_unique<plain_request>(
        statement::list,
        std::move(with),
        deadline,
        [self, done = std::move(wanted.done)](
            const reply* told, const trouble& why, request::outcome after) mutable {
            core::page page;
            auto fault = told == nullptr ? why : postgres::fault_of(*told, self->where);
            if (!fault.error && !read_page(*told->result, *self, page)) {
                fault = {errc::store_refused,
                         self->where + ": the answer is not one of our function"};
            }
            if (fault.error) {
                page = {};
                page.error = fault.error;
                page.detail = std::move(fault.detail);
            }
            after.letters.push_back([done = std::move(done), page = std::move(page)]() mutable {
                done(std::move(page));
            });
        });
}

}  // namespace dibs::store::postgres
