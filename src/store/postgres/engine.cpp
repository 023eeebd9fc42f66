// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/engine.hpp"

#include "store/postgres/advisory/pooler.hpp"
#include "store/postgres/advisory/session.hpp"
#include "store/postgres/conversation.hpp"
#include "store/postgres/requests.hpp"
#include "store/postgres/schema.hpp"

#include <dibs/error.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>

namespace dibs::store::postgres {

namespace {

using namespace std::chrono_literals;

constexpr auto silence_max = link::silence_max;
/// A renewal waits so long for the second connection, then it takes the first.
constexpr core::nanoseconds connects_within = 300ms;
constexpr core::nanoseconds farewell_max = 300ms;
/// How long a registration may take; the waiter's own timers do alone after that.
constexpr core::nanoseconds enrol_within = 5s;
/// Keys of one registration.
constexpr std::size_t keys_at_once = 256;
/// A look is passed by so many others, and then goes first.
constexpr unsigned looks_pass_max = 4;

constexpr std::size_t renewals = static_cast<std::size_t>(urgency::renewal);
constexpr std::size_t others = static_cast<std::size_t>(urgency::other);
constexpr std::size_t looks = static_cast<std::size_t>(urgency::look);

parameters keys_of(const std::vector<std::string>& keys, const caller& self) {
    parameters with;
    with.array(parameters::kind::text, keys.size());
    for (const auto& key : keys) {
        with.element(std::string_view{self.prefix + key});
    }
    with.text(self.process);
    return with;
}

}  // namespace

engine::engine(core::environment env,
               const address& where,
               std::shared_ptr<const caller> self,
               std::shared_ptr<mailbox> box,
               remote::announcements outside)
    : leader(env, std::move(box)),
      where_(where),
      texts_(where_.quoted_schema(), where_.by_session()),
      self_(std::move(self)),
      outside_(std::move(outside)),
      work_(where_,
            texts_,
            self_->own ? "dibs:" + self_->process : std::string{},
            self_->own.get()),
      ear_(where_, texts_, "dibs:" + self_->process) {}

trouble engine::start() {
    if (!sound()) {
        return {errc::store_unreachable, "no event descriptor"};
    }
    work_.by.open(env_.time.now());
    if (auto why = greeted(work_.by, env_); why.error) {
        return why;
    }
    if (self_->own && work_.by.pooled()) {
        if (auto why = check_pooler(work_.by, env_, where_); why.error) {
            return why;
        }
        work_.by.stays(env_.time.now());
        if (auto why = greeted(work_.by, env_); why.error) {
            return why;
        }
    }
    if (auto why = ensure_schema(work_.by, env_, where_); why.error) {
        return why;
    }
    pooled_ = work_.by.pooled() && !self_->own;
    work_.by.statements_exist(env_.time.now());
    ear_.by.statements_exist(env_.time.now());
    if (auto why = greeted(work_.by, env_); why.error) {
        return why;
    }
    work_.used = true;
    begin();
    return {};
}

// --- what comes in -------------------------------------------------------------------------------

void engine::submit(urgency how, std::unique_ptr<request> what) {
    auto held = enter();
    inbox_.add(how, std::move(what));
    send_or_call_leader(std::move(held), how);
}

void engine::subscribe(std::string key, watch_book::stay which) {
    auto held = enter();
    inbox_.changes.push_back({true, std::move(key), which});
    call_leader(std::move(held));
}

void engine::unsubscribe(std::string key) {
    auto held = enter();
    inbox_.changes.push_back({false, std::move(key), 0});
    call_leader(std::move(held));
}

bool engine::nothing_came_in() const noexcept {
    return inbox_.empty();
}

void engine::collect() {
    std::swap(collected_, inbox_);
}

// Who listens and who does not any more comes before what is looked at after that.
void engine::take_in() {
    apply(collected_.changes);
    collected_.changes.clear();
    collected_.pour_requests(queues_);
}

// --- the leader ----------------------------------------------------------------------------------

request::outcome engine::after(core::instant now, letters& told) noexcept {
    return {told, next_, now};
}

void engine::take_next() {
    for (auto& one : next_) {
        queues_[others].push_back(std::move(one));
    }
    next_.clear();
}

void engine::act(core::instant now, letters& told) {
    keep_ear_alive(now);
    keep(work_, now, told);
    keep(ear_, now, told);
    refuse_late(now, told);
}

void engine::send(core::instant now, letters& told) {
    act(now, told);
}

/// Whether requests of that queue are this connection's. Renewals have the second one, unless it
/// cannot be had.
bool engine::serves(const channel& which, std::size_t at) const noexcept {
    if (self_->own) {
        return &which == &work_;
    }
    const bool early =
        ear_.by.at() == link::phase::closed || env_.time.now() - ear_.by.opened() < connects_within;
    const bool second = ear_.by.ready() || (ear_.again.failures() == 0 && early);
    return &which == &ear_ ? at == renewals : at != renewals || !second;
}

/// Whether it takes them for the other one: batches while that is at another one, and renewals while
/// their own is at a batch.
bool engine::lends(const channel& which, std::size_t at) const noexcept {
    return !self_->own && (&which == &ear_ ? at == others && work_.flight != nullptr
                                           : at == renewals && ear_.flight != nullptr && ear_.lent);
}

/// What the server may keep waiting is not lent a connection, so that no renewal stands behind it.
bool engine::takes(const channel& which, std::size_t at, const request& one) const noexcept {
    return serves(which, at) || (lends(which, at) && (at == renewals || !one.may_wait()));
}

bool engine::wanted(const channel& which) const noexcept {
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        if (std::any_of(queues_[at].begin(), queues_[at].end(), [&](const auto& one) {
                return takes(which, at, *one);
            })) {
            return true;
        }
    }
    return &which == &listening() && (!listeners_.empty() || !queues_[renewals].empty());
}

void engine::keep(channel& which, core::instant now, letters& told) {
    if (which.by.at() == link::phase::closed) {
        if (!wanted(which) || now < which.again.until()) {
            return;
        }
        which.used = false;
        which.by.open(now);
        if (which.by.at() == link::phase::closed) {
            broke(which, now, told);
        }
        return;
    }
    if (!which.by.ready()) {
        if (now >= which.by.patience_ends()) {
            which.by.no_answer(now);
            if (which.by.at() == link::phase::closed) {
                broke(which, now, told);
            }
        }
        return;
    }
    if (which.flight) {
        if (now - std::max(which.sent, which.by.last_heard()) >= silence_max) {
            which.by.fail({errc::store_unreachable, where_.shown + ": the server does not answer"});
            broke(which, now, told);
        }
        return;
    }
    if (!which.by.prepares_again(now)) {
        fill(which, now, told);
    }
}

engine::queue* engine::next_queue(channel& which, core::instant now) noexcept {
    const auto due = [&](std::size_t at) {
        return std::any_of(queues_[at].begin(), queues_[at].end(), [&](const auto& one) {
            return one->not_before() <= now && takes(which, at, *one);
        });
    };
    if (due(renewals)) {
        return &queues_[renewals];
    }
    if (due(looks) && (!due(others) || which.looks_passed >= looks_pass_max)) {
        which.looks_passed = 0;
        return &queues_[looks];
    }
    if (due(others)) {
        ++which.looks_passed;
        return &queues_[others];
    }
    return nullptr;
}

void engine::fill(channel& which, core::instant now, letters& told) {
    while (!which.flight) {
        auto* from = next_queue(which, now);
        if (from == nullptr) {
            return;
        }
        // What is written to a connection that was closed long ago would be in doubt for nothing.
        if (!which.by.still_there()) {
            broke(which, now, told);
            return;
        }
        const auto queue_number = static_cast<std::size_t>(from - std::begin(queues_));
        const auto at = std::find_if(from->begin(), from->end(), [&](const auto& one) {
            return one->not_before() <= now && takes(which, queue_number, *one);
        });
        auto next = std::move(*at);
        from->erase(at);
        switch (next->send(which.by, after(now, told))) {
            case request::sending::sent:
                which.flight = std::move(next);
                which.lent = !serves(which, queue_number);
                which.sent = now;
                take_next();
                break;
            case request::sending::nothing:
                take_next();
                break;
            case request::sending::failed:
                from->push_front(std::move(next));
                take_next();
                broke(which, now, told);
                return;
        }
    }
}

/// Holders ask again, and learn what became of their leases.
void engine::tell_losses(letters& told) {
    if (self_->own && self_->own->take_losses()) {
        told.push_back(outside_.doubted());
    }
}

void engine::notified(std::string of, core::instant now, letters& told) {
    // No key begins with such a byte. 1: an operator revoked a lease that is a lock of ours; a renewal
    // finds that and lets go. 2 and 3: the step of another process, or of this one, freed a key.
    const char kind = of.empty() || of.front() > '\x03' || of.front() < '\x01' ? '\0' : of.front();
    of.erase(0, kind != '\0' ? 1 : 0);
    if (!of.starts_with(self_->prefix)) {
        return;
    }
    of.erase(0, self_->prefix.size());
    if (kind != '\x01') {
        if (listeners_.contains(of)) {
            told.push_back(outside_.woken(std::move(of),
                                          kind == '\x02'   ? wake_by::other_process
                                          : kind == '\x03' ? wake_by::own_process
                                                           : wake_by::unknown));
        }
        return;
    }
    if (const auto* holder = self_->own ? self_->own->holder_of(of) : nullptr) {
        core::renew look;
        look.key = std::move(of);
        look.holder = *holder;
        look.ttl = 1s;
        std::vector<core::entry> one;
        one.push_back({std::move(look), now + enrol_within});
        queues_[renewals].push_back(batch_request::make(self_, std::move(one), {}));
    }
}

void engine::hear_one(channel& which, core::instant now, letters& told) {
    while (auto of = which.by.notification()) {
        notified(std::move(*of), now, told);
    }
    if (!which.flight) {
        if (which.by.hung_up()) {
            broke(which, now, told);
        }
        return;
    }
    if (auto answer = which.by.take()) {
        auto ended = std::move(which.flight);
        if (answer->result) {
            which.again.succeeded();
            ended->answered(*answer, after(now, told));
        } else {
            ended->lost({errc::store_unreachable,
                         where_.shown + ": the connection broke before the answer came"},
                        after(now, told));
        }
        take_next();
        tell_losses(told);
        if (self_->own && !self_->own->trusted()) {
            which.by.fail(
                {errc::store_unreachable,
                 where_.shown +
                     ": the session that had the locks is not the one it was; is there a "
                     "pooler that lends sessions by transaction in front of the server?"});
        }
        if (which.by.hung_up()) {
            broke(which, now, told);
            return;
        }
        fill(which, now, told);
    }
}

void engine::broke(channel& which, core::instant now, letters& told) {
    const bool greeted = std::exchange(which.used, false);
    const auto why = which.by.fault();
    tell_losses(told);
    if (auto flying = std::exchange(which.flight, nullptr)) {
        flying->lost(why, after(now, told));
        take_next();
    }
    if (!greeted || now - which.by.opened() < remote::flapping) {
        which.again.failed(now, env_.random);
    }
    if (greeted) {
        return;
    }
    // Who waits longer learns nothing more than this.
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        if (&which == &work_ && serves(which, at)) {
            refuse_waiting(at, why, told);
        }
    }
    if (&which == &listening()) {
        not_watched(why.error, told);
    }
}

void engine::refuse_waiting(std::size_t at, const trouble& why, letters& told) {
    queue waiting;
    waiting.swap(queues_[at]);
    for (const auto& one : waiting) {
        one->refused(why, after(env_.time.now(), told));
    }
    next_.clear();
}

void engine::refuse_late(core::instant now, letters& told) {
    for (auto& waiting : queues_) {
        std::erase_if(waiting, [&](const auto& one) {
            return one->deadline() <= now && one->expire(after(now, told));
        });
    }
}

bool engine::nothing_queued() const noexcept {
    return !work_.flight && !ear_.flight && queues_[renewals].empty() && queues_[others].empty() &&
           queues_[looks].empty();
}

bool engine::idle() const noexcept {
    // The end of a session that has locks is to be noticed at once.
    const bool keeps = self_->own && self_->own->holds_any() && work_.by.ready();
    return nothing_queued() && listeners_.empty() && !keeps;
}

bool engine::only_watches() const noexcept {
    return nothing_queued() && listeners_.empty();
}

bool engine::asked() const noexcept {
    return !nothing_queued();
}

bool engine::can_send(urgency how) const noexcept {
    const auto free = [](const channel& one) { return one.by.ready() && !one.flight; };
    if (self_->own) {
        return free(work_);
    }
    const bool first =
        free(work_) && (how != urgency::renewal || !ear_.by.ready() || lends(work_, renewals));
    return first || (free(ear_) && how != urgency::look);
}

bool engine::all_sent() const noexcept {
    const auto written = [](const channel& one) { return one.by.wanted() == POLLIN; };
    return work_.by.ready() && written(work_) &&
           (ear_.by.at() == link::phase::closed || written(ear_));
}

// --- listening -----------------------------------------------------------------------------------

void engine::apply(const std::vector<change>& wishes) {
    std::vector<std::string> keys;
    for (std::size_t at = 0; at < wishes.size(); ++at) {
        const auto& wish = wishes[at];
        if (wish.begins) {
            listeners_[wish.key] = {wish.which, false};
        } else {
            listeners_.erase(wish.key);
        }
        keys.push_back(wish.key);
        const bool last = at + 1 == wishes.size() || wishes[at + 1].begins != wish.begins ||
                          keys.size() == keys_at_once;
        if (last && wish.begins && listening().by.ready()) {
            ask_to_watch(std::move(keys));
        } else if (last && !wish.begins && ever_watched_) {
            ask_to_unwatch(std::move(keys));
        }
        if (last) {
            keys.clear();
        }
    }
}

void engine::ask_to_watch(std::vector<std::string> keys) {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    ever_watched_ = true;
    auto with = keys_of(keys, *self_);
    with.integer(listening().by.process());
    queues_[looks].push_back(std::make_unique<plain_request>(
        statement::watch,
        std::move(with),
        env_.time.now() + enrol_within,
        [this, keys = std::move(keys)](
            const reply* told, const trouble& why, request::outcome follows) {
            const auto fault = told == nullptr ? why : fault_of(*told, where_.shown);
            watched(keys, fault.error, follows.letters);
        }));
}

void engine::ask_to_unwatch(std::vector<std::string> keys) {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    queues_[looks].push_back(
        std::make_unique<plain_request>(statement::unwatch,
                                        keys_of(keys, *self_),
                                        env_.time.now() + enrol_within,
                                        [](const reply*, const trouble&, request::outcome) {}));
}

void engine::watched(const std::vector<std::string>& keys, std::error_code outcome, letters& told) {
    for (const auto& key : keys) {
        const auto known = listeners_.find(key);
        if (known == listeners_.end()) {
            continue;
        }
        if (!std::exchange(known->second.told, true)) {
            told.push_back(outside_.entered(key, known->second.which, outcome));
        } else if (!outcome) {
            // Whatever was said while nobody listened is lost.
            told.push_back(outside_.woken(key, wake_by::unknown));
        }
    }
}

void engine::not_watched(std::error_code why, letters& told) {
    for (auto& [key, one] : listeners_) {
        if (!std::exchange(one.told, true)) {
            told.push_back(outside_.entered(key, one.which, why));
        }
    }
}

void engine::became_ready(channel& which, letters& told) {
    which.used = true;
    if (&which != &listening()) {
        return;
    }
    if (which.by.pooled() && !self_->own) {
        not_watched(errc::unsupported, told);
        return;
    }
    std::vector<std::string> keys;
    for (const auto& [key, one] : listeners_) {
        keys.push_back(key);
        if (keys.size() == keys_at_once) {
            ask_to_watch(std::exchange(keys, {}));
        }
    }
    if (!keys.empty()) {
        ask_to_watch(std::move(keys));
    }
}

void engine::keep_ear_alive(core::instant now) {
    const auto& ear = listening();
    if (!ear.by.ready() || ear.flight || listeners_.empty() || !queues_[renewals].empty() ||
        now - ear.by.last_heard() < remote::ping_every) {
        return;
    }
    queues_[renewals].push_back(
        std::make_unique<plain_request>(statement::ping,
                                        parameters{},
                                        now + enrol_within,
                                        [](const reply*, const trouble&, request::outcome) {}));
}

// --- waiting -------------------------------------------------------------------------------------

core::instant engine::next_event() const noexcept {
    auto next = core::instant::max();
    const auto at = [&](core::instant when) { next = std::min(next, when); };
    for (const auto& waiting : queues_) {
        for (const auto& one : waiting) {
            at(one->deadline());
            if (one->not_before() != core::instant{}) {
                at(one->not_before());
            }
        }
    }
    for (const auto* which : {&work_, &ear_}) {
        if (which->by.at() == link::phase::closed) {
            if (wanted(*which)) {
                at(which->again.until());
            }
        } else if (!which->by.ready()) {
            at(which->by.patience_ends());
        } else if (which->flight) {
            at(std::max(which->sent, which->by.last_heard()) + silence_max);
        }
    }
    if (const auto& ear = listening(); ear.by.ready() && !ear.flight && !listeners_.empty()) {
        at(ear.by.last_heard() + remote::ping_every);
    }
    return next;
}

std::array<pollfd, 2> engine::awaited() const noexcept {
    return {pollfd{work_.by.descriptor(), work_.by.wanted(), 0},
            pollfd{ear_.by.descriptor(), ear_.by.wanted(), 0}};
}

void engine::hear(const std::array<pollfd, 2>& seen, core::instant now, letters& told) {
    std::size_t at = 0;
    for (auto* which : {&work_, &ear_}) {
        const auto& one = seen[at++];
        // Unless a caller that wrote to it found it broken.
        if (one.revents == 0 || one.fd != which->by.descriptor()) {
            continue;
        }
        const bool was_ready = which->by.ready();
        if (which->by.go_on(now)) {
            if (which->by.ready() && !was_ready) {
                became_ready(*which, told);
            }
            if (which->by.ready()) {
                hear_one(*which, now, told);
            }
        } else {
            broke(*which, now, told);
        }
    }
}

// --- the end -------------------------------------------------------------------------------------

/// Whoever asks the server after this shall not be told that this process still waits.
void engine::say_farewell() {
    const auto end = env_.time.now() + farewell_max;
    const auto heard = [&] {
        for (auto left = end - env_.time.now(); left > 0ns; left = end - env_.time.now()) {
            remote::wait_for(work_.by.descriptor(), work_.by.wanted(), left);
            if (!work_.by.go_on(env_.time.now()) || work_.by.take()) {
                return;
            }
        }
    };
    const auto can = [&] { return work_.by.ready() && !work_.by.busy(); };
    if (ever_watched_ && can()) {
        parameters with;
        with.null();
        with.text(self_->process);
        if (work_.by.send(statement::unwatch, with)) {
            heard();
        }
    }
    // The server would do it too, a moment after the connection is closed.
    if (self_->own && can() && work_.by.send_text("SELECT pg_advisory_unlock_all()")) {
        heard();
    }
}

/// What is under way arrives, if it does so soon.
void engine::let_arrive(channel& which, letters& told) {
    const auto end = env_.time.now() + farewell_max;
    while (which.flight && which.by.ready()) {
        const auto left = end - env_.time.now();
        if (left <= 0ns) {
            return;
        }
        remote::wait_for(which.by.descriptor(), which.by.wanted(), left);
        if (!which.by.go_on(env_.time.now())) {
            return;
        }
        if (auto answer = which.by.take()) {
            const auto ended = std::move(which.flight);
            if (answer->result) {
                ended->answered(*answer, after(env_.time.now(), told));
            } else {
                ended->lost({errc::store_unreachable,
                             where_.shown + ": the connection broke before the answer came"},
                            after(env_.time.now(), told));
            }
            take_next();
        }
    }
}

void engine::finish(letters& told) {
    let_arrive(work_, told);
    let_arrive(ear_, told);
    const auto now = env_.time.now();
    for (auto* which : {&work_, &ear_}) {
        if (auto flying = std::exchange(which->flight, nullptr)) {
            flying->lost({errc::closed, "the store was closed before the answer came"},
                         after(now, told));
            which->by.close();
        }
    }
    next_.clear();
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        refuse_waiting(at, {errc::closed, "the store was closed"}, told);
    }
    say_farewell();
    ear_.by.close();
    work_.by.close();
    listeners_.clear();
}

void engine::let_go() noexcept {
    work_.by.abandon();
    ear_.by.abandon();
}

}  // namespace dibs::store::postgres
