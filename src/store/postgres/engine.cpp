// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/engine.hpp"

#include "store/library_thread.hpp"
#include "store/postgres/requests.hpp"
#include "store/postgres/schema.hpp"

#include <dibs/error.hpp>

#include <poll.h>
#include <sys/eventfd.h>
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
constexpr core::nanoseconds again_first = 20ms;
constexpr core::nanoseconds again_max = 2s;
/// A connection that breaks sooner is not made again at once.
constexpr core::nanoseconds flapping = 500ms;
/// A renewal waits so long for the second connection, then it takes the first.
constexpr core::nanoseconds connects_within = 300ms;
/// How often the listening connection is asked whether anybody is there.
constexpr core::nanoseconds ping_every = 10s;
/// How long a caller lends its thread for one call; a slower answer is left to ours.
constexpr core::nanoseconds assist_max = 20ms;
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

thread_local const engine* assisted = nullptr;
thread_local core::instant assisted_since{};

timespec as_timespec(core::nanoseconds time) noexcept {
    const auto positive = std::max(time, core::nanoseconds{0});
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(positive);
    timespec made{};
    made.tv_sec = static_cast<time_t>(whole.count());
    made.tv_nsec = static_cast<long>((positive - whole).count());
    return made;
}

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
               hooks outside)
    : env_(env),
      where_(where),
      texts_(where_.quoted_schema()),
      self_(std::move(self)),
      box_(std::move(box)),
      outside_(std::move(outside)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      work_(where_, texts_, ""),
      ear_(where_, texts_, "dibs:" + self_->process) {}

engine::~engine() {
    if (bell_ >= 0) {
        ::close(bell_);
    }
}

trouble engine::greet(channel& of) {
    while (of.by.at() != link::phase::closed && !of.by.ready()) {
        const auto left = of.by.patience_ends() - env_.time.now();
        if (left <= 0ns) {
            of.by.fail({errc::store_unreachable, where_.shown + ": the server does not answer"});
            break;
        }
        pollfd one{of.by.descriptor(), of.by.wanted(), 0};
        const auto longest = as_timespec(left);
        ::ppoll(&one, 1, &longest, nullptr);
        of.by.go_on(env_.time.now());
    }
    return of.by.ready() ? trouble{} : of.by.fault();
}

trouble engine::start() {
    if (bell_ < 0) {
        return {errc::store_unreachable, "no event descriptor"};
    }
    work_.by.open(env_.time.now());
    if (auto why = greet(work_); why.error) {
        return why;
    }
    if (auto why = ensure_schema(work_.by, env_, where_); why.error) {
        return why;
    }
    pooled_ = work_.by.pooled();
    work_.by.statements_exist(env_.time.now());
    ear_.by.statements_exist(env_.time.now());
    if (auto why = greet(work_); why.error) {
        return why;
    }
    work_.used = true;
    thread_ = library_thread([self = shared_from_this()] { self->work(); });
    return {};
}

// --- who leads -----------------------------------------------------------------------------------

bool engine::something_to_do() const noexcept {
    return !inbox_.empty() || !idle_;
}

void engine::ring() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(::write(bell_, &one, sizeof one) == sizeof one);
}

void engine::call_leader(std::unique_lock<std::mutex> held) {
    if (leading_) {
        if (std::exchange(polling_, false)) {
            ring();
        }
        return;
    }
    // Whoever lends its thread comes for its work.
    const bool call = assisted != this;
    held.unlock();
    if (call) {
        changed_.notify_all();
    }
}

void engine::submit(urgency how, std::unique_ptr<request> what) {
    std::unique_lock held{lock_};
    inbox_.requests[static_cast<std::size_t>(how)].push_back(std::move(what));
    // Whoever lends its thread comes for its work, and a leader that does not sleep will.
    const bool nobody_at_it = polling_ || (!leading_ && assisted != this);
    const auto& serving = how == urgency::renewal && ear_.by.ready() ? ear_ : work_;
    if (!nobody_at_it || stopping_ || !serving.by.ready() || serving.flight) {
        call_leader(std::move(held));
        return;
    }
    // The leader, if there is one, waits and touches nothing before it has had the lock.
    spoils got;
    take_inbox(std::exchange(inbox_, {}));
    act(env_.time.now(), got);
    note_state();
    if (!leading_ || next_event() < sleeps_until_ || work_.by.wanted() != POLLIN ||
        !work_.by.ready() || (ear_.by.at() != link::phase::closed && ear_.by.wanted() != POLLIN)) {
        call_leader(std::move(held));
    } else {
        held.unlock();
    }
    if (!got.letters.empty()) {
        box_->send(std::move(got.letters));
    }
}

void engine::subscribe(std::string key, watch_book::stay which) {
    std::unique_lock held{lock_};
    inbox_.changes.push_back({true, std::move(key), which});
    call_leader(std::move(held));
}

void engine::unsubscribe(std::string key) {
    std::unique_lock held{lock_};
    inbox_.changes.push_back({false, std::move(key), 0});
    call_leader(std::move(held));
}

// The connections are free again before anybody is told: what is told may call `stop`.
void engine::run_now(std::unique_lock<std::mutex>& held, core::nanoseconds longest) {
    leading_ = true;
    held.unlock();
    spoils got;
    turn(longest, got);
    held.lock();
    leading_ = false;
    note_state();
    const bool others_care = stopping_ || something_to_do();
    held.unlock();
    if (others_care) {
        changed_.notify_all();
    }
    if (!got.letters.empty()) {
        box_->send(std::move(got.letters));
    }
}

void engine::work() {
    std::unique_lock held{lock_};
    for (;;) {
        changed_.wait(held, [&] { return stopping_ || (!leading_ && something_to_do()); });
        if (stopping_) {
            return;
        }
        run_now(held, core::nanoseconds::max());
        held.lock();
    }
}

void engine::begin_assist() noexcept {
    assisted = this;
    assisted_since = env_.time.now();
}

bool engine::assist() noexcept {
    std::unique_lock held{lock_};
    // Who only waits for others to give a key back leaves that to our own thread: it must come back
    // when the key is handed to it in this process, which nothing here would tell.
    if (leading_ || stopping_ || (inbox_.empty() && !asked_)) {
        return false;
    }
    const auto left = assisted_since + assist_max - env_.time.now();
    if (left <= 0ns) {
        return false;
    }
    const auto alive = shared_from_this();
    run_now(held, left);
    return true;
}

void engine::end_assist() noexcept {
    if (assisted == this) {
        assisted = nullptr;
    }
    std::unique_lock held{lock_};
    const bool more = !leading_ && something_to_do();
    held.unlock();
    if (more) {
        changed_.notify_all();
    }
}

// --- the leader ----------------------------------------------------------------------------------

void engine::turn(core::nanoseconds longest, spoils& got) {
    inbox some;
    {
        const std::lock_guard held{lock_};
        std::swap(some, inbox_);
    }
    take_inbox(std::move(some));
    act(env_.time.now(), got);
    if (got.letters.empty()) {
        wait(longest, got);
    }
}

// Who listens and who does not any more comes before what is looked at after that.
void engine::take_inbox(inbox some) {
    apply(some.changes);
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        std::move(
            some.requests[at].begin(), some.requests[at].end(), std::back_inserter(queues_[at]));
    }
}

void engine::take_next(spoils& got) {
    for (auto& one : got.next) {
        queues_[others].push_back(std::move(one));
    }
    got.next.clear();
}

void engine::act(core::instant now, spoils& got) {
    keep_ear_alive(now);
    keep(work_, now, got);
    keep(ear_, now, got);
    refuse_late(now, got);
}

/// Whether this connection takes requests of that queue. Renewals have the second one, unless it
/// cannot be had.
bool engine::serves(const channel& which, std::size_t at) const noexcept {
    const bool early =
        ear_.by.at() == link::phase::closed || env_.time.now() - ear_.by.opened() < connects_within;
    const bool second = ear_.by.ready() || (ear_.failures == 0 && early);
    return &which == &ear_ ? at == renewals : at != renewals || !second;
}

bool engine::wanted(const channel& which) const noexcept {
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        if (!queues_[at].empty() && serves(which, at)) {
            return true;
        }
    }
    return &which == &ear_ && (!listeners_.empty() || !queues_[renewals].empty());
}

void engine::keep(channel& which, core::instant now, spoils& got) {
    if (which.by.at() == link::phase::closed) {
        if (!wanted(which) || now < which.again) {
            return;
        }
        which.used = false;
        which.by.open(now);
        if (which.by.at() == link::phase::closed) {
            broke(which, now, got);
        }
        return;
    }
    if (!which.by.ready()) {
        if (now >= which.by.patience_ends()) {
            which.by.fail({errc::store_unreachable, where_.shown + ": the server does not answer"});
            broke(which, now, got);
        }
        return;
    }
    if (which.flight) {
        if (now - std::max(which.sent, which.by.last_heard()) >= silence_max) {
            which.by.fail({errc::store_unreachable, where_.shown + ": the server does not answer"});
            broke(which, now, got);
        }
        return;
    }
    fill(which, now, got);
}

engine::queue* engine::next_queue(channel& which, core::instant now) noexcept {
    const auto due = [&](std::size_t at) {
        return serves(which, at) &&
               std::any_of(queues_[at].begin(), queues_[at].end(), [&](const auto& one) {
                   return one->not_before() <= now;
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

void engine::fill(channel& which, core::instant now, spoils& got) {
    while (!which.flight) {
        auto* from = next_queue(which, now);
        if (from == nullptr) {
            return;
        }
        // What is written to a connection that was closed long ago would be in doubt for nothing.
        if (!which.by.still_there()) {
            broke(which, now, got);
            return;
        }
        const auto at = std::find_if(
            from->begin(), from->end(), [&](const auto& one) { return one->not_before() <= now; });
        auto next = std::move(*at);
        from->erase(at);
        switch (next->send(which.by, got.at(now))) {
            case request::sending::sent:
                which.flight = std::move(next);
                which.sent = now;
                break;
            case request::sending::nothing:
                take_next(got);
                break;
            case request::sending::failed:
                from->push_front(std::move(next));
                broke(which, now, got);
                return;
        }
    }
}

void engine::hear(channel& which, core::instant now, spoils& got) {
    while (auto key = which.by.notification()) {
        if (key->starts_with(self_->prefix)) {
            key->erase(0, self_->prefix.size());
            if (listeners_.contains(*key)) {
                got.letters.push_back(outside_.woken(std::move(*key)));
            }
        }
    }
    if (!which.flight) {
        if (which.by.hung_up()) {
            broke(which, now, got);
        }
        return;
    }
    if (auto told = which.by.take()) {
        auto ended = std::move(which.flight);
        if (told->result) {
            which.failures = 0;
            ended->answered(*told, got.at(now));
        } else {
            ended->lost({errc::store_unreachable,
                         where_.shown + ": the connection broke before the answer came"},
                        got.at(now));
        }
        take_next(got);
        if (which.by.hung_up()) {
            broke(which, now, got);
            return;
        }
        fill(which, now, got);
    }
}

void engine::broke(channel& which, core::instant now, spoils& got) {
    const bool greeted = std::exchange(which.used, false);
    const auto why = which.by.fault();
    if (auto flying = std::exchange(which.flight, nullptr)) {
        flying->lost(why, got.at(now));
        take_next(got);
    }
    if (!greeted || now - which.by.opened() < flapping) {
        after_failure(which, now);
    }
    if (greeted) {
        return;
    }
    // Who waits longer learns nothing more than this.
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        if (&which == &work_ && serves(which, at)) {
            refuse_waiting(at, why, got);
        }
    }
    if (&which == &ear_) {
        not_watched(why.error, got);
    }
}

void engine::refuse_waiting(std::size_t at, const trouble& why, spoils& got) {
    queue waiting;
    waiting.swap(queues_[at]);
    for (const auto& one : waiting) {
        one->refused(why, got.at(env_.time.now()));
    }
    got.next.clear();
}

void engine::refuse_late(core::instant now, spoils& got) {
    for (auto& waiting : queues_) {
        std::erase_if(waiting, [&](const auto& one) {
            return one->deadline() <= now && one->expire(got.at(now));
        });
    }
}

void engine::after_failure(channel& of, core::instant now) {
    const auto pause = std::min(again_first * (1U << std::min(of.failures, 7U)), again_max);
    ++of.failures;
    std::array<std::byte, 1> chance{};
    env_.random.fill(chance);
    const auto share = std::to_integer<unsigned>(chance[0]);
    of.again = now + pause / 2 + pause / 2 * share / 255;
}

bool engine::nothing_queued() const noexcept {
    return !work_.flight && !ear_.flight && queues_[renewals].empty() && queues_[others].empty() &&
           queues_[looks].empty();
}

bool engine::idle() const noexcept {
    return nothing_queued() && listeners_.empty();
}

void engine::note_state() noexcept {
    idle_ = idle();
    asked_ = !nothing_queued();
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
        if (last && wish.begins && ear_.by.ready()) {
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
    with.integer(ear_.by.process());
    queues_[looks].push_back(std::make_unique<plain_request>(
        statement::watch,
        std::move(with),
        env_.time.now() + enrol_within,
        [this, keys = std::move(keys)](
            const reply* told, const trouble& why, request::outcome after) {
            const auto fault = told == nullptr ? why : fault_of(*told, where_.shown);
            spoils got;
            watched(keys, fault.error, got);
            std::move(got.letters.begin(), got.letters.end(), std::back_inserter(after.letters));
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

void engine::watched(const std::vector<std::string>& keys, std::error_code outcome, spoils& got) {
    for (const auto& key : keys) {
        const auto known = listeners_.find(key);
        if (known == listeners_.end()) {
            continue;
        }
        if (!std::exchange(known->second.told, true)) {
            got.letters.push_back(outside_.entered(key, known->second.which, outcome));
        } else if (!outcome) {
            // Whatever was said while nobody listened is lost.
            got.letters.push_back(outside_.woken(key));
        }
    }
}

void engine::not_watched(std::error_code why, spoils& got) {
    for (auto& [key, one] : listeners_) {
        if (!std::exchange(one.told, true)) {
            got.letters.push_back(outside_.entered(key, one.which, why));
        }
    }
}

void engine::became_ready(channel& which, spoils& got) {
    which.used = true;
    if (&which != &ear_) {
        return;
    }
    if (which.by.pooled()) {
        not_watched(errc::unsupported, got);
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
    if (!ear_.by.ready() || ear_.flight || listeners_.empty() || !queues_[renewals].empty() ||
        now - ear_.by.last_heard() < ping_every) {
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
                at(which->again);
            }
        } else if (!which->by.ready()) {
            at(which->by.patience_ends());
        } else if (which->flight) {
            at(std::max(which->sent, which->by.last_heard()) + silence_max);
        }
    }
    if (ear_.by.ready() && !ear_.flight && !listeners_.empty()) {
        at(ear_.by.last_heard() + ping_every);
    }
    return next;
}

void engine::wait(core::nanoseconds longest, spoils& got) {
    if (idle()) {
        return;
    }
    std::unique_lock held{lock_};
    if (!inbox_.empty() || stopping_) {
        return;
    }
    const auto now = env_.time.now();
    sleeps_until_ = next_event();
    auto left = longest;
    if (sleeps_until_ != core::instant::max()) {
        left = std::min(left, std::max(sleeps_until_ - now, core::nanoseconds{0}));
    }
    std::array<pollfd, 3> waited{pollfd{bell_, POLLIN, 0},
                                 pollfd{work_.by.descriptor(), work_.by.wanted(), 0},
                                 pollfd{ear_.by.descriptor(), ear_.by.wanted(), 0}};
    const auto until = as_timespec(left);
    const bool for_ever = left == core::nanoseconds::max();
    polling_ = true;
    held.unlock();
    const int found = ::ppoll(waited.data(), waited.size(), for_ever ? nullptr : &until, nullptr);
    held.lock();
    polling_ = false;
    held.unlock();
    if (found <= 0) {
        return;
    }
    if (waited[0].revents != 0) {
        std::uint64_t rung = 0;
        static_cast<void>(::read(bell_, &rung, sizeof rung) == sizeof rung);
    }
    const auto after = env_.time.now();
    std::size_t at = 1;
    for (auto* which : {&work_, &ear_}) {
        const auto& seen = waited[at++];
        // Unless a caller that wrote to it found it broken.
        if (seen.revents == 0 || seen.fd != which->by.descriptor()) {
            continue;
        }
        const bool was_ready = which->by.ready();
        if (which->by.go_on(after)) {
            if (which->by.ready() && !was_ready) {
                became_ready(*which, got);
            }
            if (which->by.ready()) {
                hear(*which, after, got);
            }
        } else {
            broke(*which, after, got);
        }
    }
}

// --- the end -------------------------------------------------------------------------------------

/// Whoever asks the server after this shall not be told that this process still waits.
void engine::say_farewell() {
    if (!ever_watched_ || !work_.by.ready() || work_.flight) {
        return;
    }
    parameters with;
    with.null();
    with.text(self_->process);
    if (!work_.by.send(statement::unwatch, with)) {
        return;
    }
    const auto end = env_.time.now() + farewell_max;
    for (auto left = farewell_max; left > 0ns; left = end - env_.time.now()) {
        pollfd one{work_.by.descriptor(), work_.by.wanted(), 0};
        const auto longest = as_timespec(left);
        ::ppoll(&one, 1, &longest, nullptr);
        if (!work_.by.go_on(env_.time.now()) || work_.by.take()) {
            return;
        }
    }
}

void engine::stop() {
    {
        std::unique_lock held{lock_};
        if (std::exchange(stopping_, true)) {
            return;
        }
        if (std::exchange(polling_, false)) {
            ring();
        }
        changed_.notify_all();
        changed_.wait(held, [&] { return !leading_; });
        leading_ = true;  // nobody leads any more
    }
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();  // it is telling somebody something, and ends after that
    } else if (thread_.joinable()) {
        thread_.join();
    }
    take_inbox(std::exchange(inbox_, {}));
    spoils got;
    const auto now = env_.time.now();
    for (auto* which : {&work_, &ear_}) {
        if (auto flying = std::exchange(which->flight, nullptr)) {
            flying->lost({errc::closed, "the store was closed before the answer came"},
                         got.at(now));
            which->by.close();
        }
    }
    got.next.clear();
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        refuse_waiting(at, {errc::closed, "the store was closed"}, got);
    }
    say_farewell();
    ear_.by.close();
    work_.by.close();
    listeners_.clear();
    box_->send(std::move(got.letters));
}

void engine::abandon() {
    if (thread_.joinable()) {
        thread_.detach();
    }
    work_.by.abandon();
    ear_.by.abandon();
}

}  // namespace dibs::store::postgres
