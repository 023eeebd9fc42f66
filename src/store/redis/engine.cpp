// SPDX-License-Identifier: Apache-2.0
#include "store/redis/engine.hpp"

#include "store/library_thread.hpp"

#include <dibs/error.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

namespace dibs::store::redis {

namespace {

using namespace std::chrono_literals;

constexpr auto silence_max = link::silence_max;
/// How many requests of a kind may be on their way: enough to keep the server busy, so few that a
/// renewal finds no long row before it.
constexpr std::size_t flights_max = 4;
constexpr std::size_t renewals_max = 16;
constexpr core::nanoseconds again_first = 20ms;
constexpr core::nanoseconds again_max = 2s;
/// A connection that breaks sooner is not made again at once.
constexpr core::nanoseconds flapping = 500ms;
/// How often the listening connection is asked whether anybody is there.
constexpr core::nanoseconds ping_every = 10s;
/// A connection that was heard of so lately is taken to be there.
constexpr core::nanoseconds fresh = 10ms;
/// How long a caller lends its thread for one call; a slower answer is left to ours.
constexpr core::nanoseconds assist_max = 20ms;
constexpr core::nanoseconds farewell_max = 200ms;

thread_local const engine* assisted = nullptr;
thread_local core::instant assisted_since{};

std::size_t index(urgency how) noexcept {
    return static_cast<std::size_t>(how);
}

timespec as_timespec(core::nanoseconds time) noexcept {
    const auto positive = std::max(time, core::nanoseconds{0});
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(positive);
    timespec made{};
    made.tv_sec = static_cast<time_t>(whole.count());
    made.tv_nsec = static_cast<long>((positive - whole).count());
    return made;
}

}  // namespace

engine::engine(core::environment env,
               const address& where,
               std::shared_ptr<mailbox> box,
               hooks outside,
               std::string own_channel)
    : env_(env),
      where_(where),
      box_(std::move(box)),
      outside_(std::move(outside)),
      own_channel_(std::move(own_channel)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      data_(where_),
      ear_(where_) {}

engine::~engine() {
    if (bell_ >= 0) {
        ::close(bell_);
    }
}

trouble engine::start() {
    if (bell_ < 0) {
        return {errc::store_unreachable, "no event descriptor"};
    }
    data_.open(env_.time.now());
    while (data_.at() != link::phase::closed && !data_.ready()) {
        const auto now = env_.time.now();
        const auto left = data_.patience_ends() - now;
        if (left <= 0ns) {
            data_.lose_patience(now);
            continue;
        }
        pollfd one{data_.descriptor(), data_.wanted(), 0};
        const auto longest = as_timespec(left);
        ::ppoll(&one, 1, &longest, nullptr);
        data_.go_on(one.revents, env_.time.now());
    }
    if (!data_.ready()) {
        return {data_.fault(), where_.shown() + ": " + data_.fault_text()};
    }
    data_used_ = true;
    thread_ = library_thread([self = shared_from_this()] { self->work(); });
    return {};
}

// --- who leads -----------------------------------------------------------------------------------

bool engine::something_to_do() const noexcept {
    return !inbox_.empty() || !idle_;
}

void engine::call_leader(std::unique_lock<std::mutex> held) {
    if (leading_) {
        if (std::exchange(polling_, false)) {
            const std::uint64_t one = 1;
            static_cast<void>(::write(bell_, &one, sizeof one) == sizeof one);
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
    inbox_.requests[index(how)].push_back(std::move(what));
    // Whoever lends its thread comes for its work, and a leader that does not sleep will.
    const bool nobody_at_it = polling_ || (!leading_ && assisted != this);
    if (!nobody_at_it || stopping_ || !data_.ready()) {
        call_leader(std::move(held));
        return;
    }
    // The leader, if there is one, waits and touches nothing before it has had the lock.
    spoils got;
    take_inbox(std::exchange(inbox_, {}));
    send(env_.time.now(), got);
    note_state();
    if (!leading_ || next_event() < sleeps_until_ || !data_.all_sent() || !data_.ready() ||
        !ear_.all_sent()) {
        call_leader(std::move(held));
    } else {
        held.unlock();
    }
    if (!got.letters.empty()) {
        box_->send(std::move(got.letters));
    }
}

void engine::subscribe(std::string channel, std::string key, watch_book::stay which) {
    std::unique_lock held{lock_};
    inbox_.changes.push_back({true, std::move(channel), {std::move(key), which, false}});
    call_leader(std::move(held));
}

void engine::unsubscribe(std::string channel) {
    std::unique_lock held{lock_};
    inbox_.changes.push_back({false, std::move(channel), {}});
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

void engine::take_inbox(inbox some) {
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        std::move(
            some.requests[at].begin(), some.requests[at].end(), std::back_inserter(queues_[at]));
    }
    for (auto& wish : some.changes) {
        apply(std::move(wish));
    }
}

void engine::act(core::instant now, spoils& got) {
    keep_data(now, got);
    keep_ear(now, got);
    refuse_late(now, got);
    take_next(got);
}

bool engine::idle() const noexcept {
    const bool nothing_asked =
        flights_.empty() && queues_[0].empty() && queues_[1].empty() && queues_[2].empty();
    return nothing_asked && listeners_.empty() && confirmations_.empty();
}

void engine::note_state() noexcept {
    idle_ = idle();
    const bool hears = listeners_.empty() || (ear_.ready() && confirmations_.empty());
    asked_ = !hears || !flights_.empty() ||
             !(queues_[0].empty() && queues_[1].empty() && queues_[2].empty());
}

/// Whether the server knows what this process waits for and what no longer.
bool engine::ear_settled() const noexcept {
    return confirmations_.empty() || !ear_.ready();
}

std::size_t engine::in_flight(urgency how) const noexcept {
    return static_cast<std::size_t>(std::count_if(
        flights_.begin(), flights_.end(), [&](const auto& one) { return one.how == how; }));
}

void engine::after_failure(patience& of, core::instant now) {
    const auto pause = std::min(again_first * (1U << std::min(of.failures, 7U)), again_max);
    ++of.failures;
    std::array<std::byte, 1> chance{};
    env_.random.fill(chance);
    const auto share = std::to_integer<unsigned>(chance[0]);
    of.until = now + pause / 2 + pause / 2 * share / 255;
}

trouble engine::cut(const link& broken) const {
    return {broken.fault(), where_.shown() + ": " + broken.fault_text()};
}

// --- the data connection -------------------------------------------------------------------------

void engine::keep_data(core::instant now, spoils& got) {
    if (data_.at() == link::phase::closed) {
        const bool wanted = !queues_[0].empty() || !queues_[1].empty() || !queues_[2].empty();
        if (!wanted || now < data_again_.until) {
            return;
        }
        data_.open(now);
        if (data_.at() == link::phase::closed) {
            data_broke(now, got);
            return;
        }
    }
    if (!data_.ready()) {
        if (now >= data_.patience_ends() && !data_.lose_patience(now)) {
            data_broke(now, got);
        }
        return;
    }
    if (!flights_.empty()) {
        const auto since = std::max(flights_.front().sent, data_.last_heard());
        if (now - since >= silence_max) {
            data_.fail(errc::store_unreachable, "the server does not answer");
            data_broke(now, got);
            return;
        }
    }
    send(now, got);
}

void engine::send(core::instant now, spoils& got) {
    bool looked = !flights_.empty() || now - data_.last_heard() < fresh;
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        const auto how = static_cast<urgency>(at);
        const auto most = how == urgency::renewal ? renewals_max : flights_max;
        auto under_way = in_flight(how);
        auto& queue = queues_[at];
        while (!queue.empty() && under_way < most && (how != urgency::look || ear_settled())) {
            // What is written to a connection that was closed long ago would be in doubt for nothing.
            if (!std::exchange(looked, true) && !data_.still_there()) {
                data_broke(now, got);
                return;
            }
            auto next = std::move(queue.front());
            queue.pop_front();
            const auto begins = data_.appended();
            if (next->write(data_.out(), now, got.as_outcome())) {
                flights_.push_back({std::move(next), begins, now, how});
                ++under_way;
            }
        }
    }
    if (!data_.flush()) {
        data_broke(now, got);
    }
}

void engine::hear_data(spoils& got) {
    for (;;) {
        const auto how = data_.next();
        if (how != reply_reader::state::complete) {
            return;
        }
        const auto& told = data_.current();
        if (told.front().what == kind::push) {
            continue;
        }
        if (flights_.empty()) {
            data_.fail(errc::store_unreachable, "the server answered what was not asked");
            return;
        }
        auto next = std::move(flights_.front());
        flights_.pop_front();
        data_again_.failures = 0;
        if (!next.what->answered(told, got.as_outcome())) {
            queues_[index(next.how)].push_front(std::move(next.what));
        }
        take_next(got);
    }
}

// Follows are looks, or the parts of a batch that was taken apart.
void engine::take_next(spoils& got) {
    for (auto& one : got.next) {
        queues_[index(urgency::look)].push_back(std::move(one));
    }
    got.next.clear();
}

void engine::data_broke(core::instant now, spoils& got) {
    const bool greeted = data_used_;
    data_used_ = false;
    const auto why = cut(data_);
    std::deque<flight> flying;
    flying.swap(flights_);
    for (auto one = flying.rbegin(); one != flying.rend(); ++one) {
        if (one->begins < data_.written()) {
            one->what->lost(why, got.as_outcome());
        } else {
            queues_[index(one->how)].push_front(std::move(one->what));
        }
    }
    take_next(got);
    if (!greeted) {
        // Who waits longer learns nothing more than this.
        refuse_waiting(why, got);
    }
    if (!greeted || now - data_.opened() < flapping) {
        after_failure(data_again_, now);
    }
}

void engine::refuse_waiting(const trouble& why, spoils& got) {
    for (auto& queue : queues_) {
        std::deque<std::unique_ptr<request>> waiting;
        waiting.swap(queue);
        for (const auto& one : waiting) {
            one->refused(why, got.as_outcome());
        }
    }
    got.next.clear();
}

void engine::refuse_late(core::instant now, spoils& got) {
    for (auto& queue : queues_) {
        std::erase_if(queue, [&](const auto& one) {
            if (one->deadline() > now) {
                return false;
            }
            one->refused({errc::timed_out, "not begun before its deadline"}, got.as_outcome());
            return true;
        });
    }
}

// --- the listening connection --------------------------------------------------------------------

void engine::apply(change wish) {
    const bool known = listeners_.contains(wish.channel);
    if (wish.begins) {
        listeners_[wish.channel] = std::move(wish.wanted);
    } else {
        listeners_.erase(wish.channel);
    }
    if (!ear_.ready() || (!wish.begins && !known)) {
        return;
    }
    if (confirmations_.empty() && !ping_open_) {
        ear_asked_ = env_.time.now();
    }
    write_command(ear_.out(), {wish.begins ? "SUBSCRIBE" : "UNSUBSCRIBE", wish.channel});
    confirmations_.push_back({std::move(wish.channel), wish.begins});
}

void engine::keep_ear(core::instant now, spoils& got) {
    if (ear_.at() == link::phase::closed) {
        if (listeners_.empty() || now < ear_again_.until) {
            return;
        }
        ear_.open(now);
        if (ear_.at() == link::phase::closed) {
            ear_broke(now, got);
        }
        return;
    }
    if (!ear_.ready()) {
        if (now >= ear_.patience_ends() && !ear_.lose_patience(now)) {
            ear_broke(now, got);
        }
        return;
    }
    const bool asked = !confirmations_.empty() || ping_open_;
    const auto since = std::max(ear_asked_, ear_.last_heard());
    if (asked && now - since >= silence_max) {
        ear_.fail(errc::store_unreachable, "the server does not answer");
        ear_broke(now, got);
        return;
    }
    if (!asked && !listeners_.empty() && now - since >= ping_every) {
        write_command(ear_.out(), {"PING"});
        ping_open_ = true;
        ear_asked_ = now;
    }
    if (!ear_.flush()) {
        ear_broke(now, got);
    }
}

void engine::hear_ear(spoils& got) {
    if (ear_.ready() && !std::exchange(ear_used_, true)) {
        ear_again_.failures = 0;
        ear_asked_ = env_.time.now();
        // Before the others: whoever is told that it listens to a key listens to this one, too.
        write_command(ear_.out(), {"SUBSCRIBE", own_channel_});
        confirmations_.push_back({own_channel_, true});
        for (const auto& [channel, one] : listeners_) {
            write_command(ear_.out(), {"SUBSCRIBE", channel});
            confirmations_.push_back({channel, true});
        }
        ear_.flush();
    }
    while (ear_.next() == reply_reader::state::complete) {
        const auto& told = ear_.current();
        const bool to_a_ping = std::exchange(ping_open_, false);
        if (told.front().what == kind::error && !to_a_ping) {
            refuse_to_listen(told.front().text, got);
            continue;
        }
        if (told.size() < 3 || told[0].children != 3) {
            continue;  // the answer to a ping
        }
        const auto what = told[1].text;
        const auto known = listeners_.find(std::string{told[2].text});
        if (what == "message" && told[2].text == own_channel_ && told.size() >= 4) {
            const auto meant = listeners_.find(std::string{told[3].text});
            if (meant != listeners_.end()) {
                got.letters.push_back(outside_.woken(meant->second.key));
            }
            continue;
        }
        if (what == "message") {
            if (known != listeners_.end()) {
                got.letters.push_back(outside_.woken(known->second.key));
            }
            continue;
        }
        if (what != "subscribe" && what != "unsubscribe") {
            continue;
        }
        if (!confirmations_.empty()) {
            confirmations_.pop_front();
        }
        // A channel may be left and entered again before the first entering is confirmed.
        const bool settled =
            std::none_of(confirmations_.begin(), confirmations_.end(), [&](const auto& one) {
                return one.channel == told[2].text;
            });
        if (what == "subscribe" && settled && known != listeners_.end()) {
            auto& one = known->second;
            if (!std::exchange(one.told, true)) {
                got.letters.push_back(outside_.entered(one.key, one.which, {}));
            } else {
                // Whatever was said while nobody listened is lost.
                got.letters.push_back(outside_.woken(one.key));
            }
        }
    }
}

/// What was asked first is refused: whoever waits for that key does without wake-ups.
void engine::refuse_to_listen(std::string_view why, spoils& got) {
    if (confirmations_.empty()) {
        return;
    }
    const auto refused = std::move(confirmations_.front());
    confirmations_.pop_front();
    const auto known = listeners_.find(refused.channel);
    if (refused.begins && known != listeners_.end() && !std::exchange(known->second.told, true)) {
        got.letters.push_back(outside_.entered(
            known->second.key,
            known->second.which,
            why.starts_with("NOPERM") ? errc::permission_denied : errc::store_refused));
    }
}

void engine::ear_broke(core::instant now, spoils& got) {
    const bool greeted = std::exchange(ear_used_, false);
    confirmations_.clear();
    ping_open_ = false;
    if (greeted && now - ear_.opened() >= flapping) {
        return;  // a new one is made at once
    }
    after_failure(ear_again_, now);
    for (auto& [channel, one] : listeners_) {
        if (!std::exchange(one.told, true)) {
            got.letters.push_back(outside_.entered(one.key, one.which, ear_.fault()));
        }
    }
}

// --- waiting -------------------------------------------------------------------------------------

core::instant engine::next_event() const noexcept {
    auto next = core::instant::max();
    const auto at = [&](core::instant when) { next = std::min(next, when); };
    for (const auto& queue : queues_) {
        for (const auto& one : queue) {
            at(one->deadline());
        }
    }
    const bool waiting = !queues_[0].empty() || !queues_[1].empty() || !queues_[2].empty();
    if (data_.at() == link::phase::closed) {
        if (waiting) {
            at(data_again_.until);
        }
    } else if (!data_.ready()) {
        at(data_.patience_ends());
    } else if (!flights_.empty()) {
        at(std::max(flights_.front().sent, data_.last_heard()) + silence_max);
    }
    if (ear_.at() == link::phase::closed) {
        if (!listeners_.empty()) {
            at(ear_again_.until);
        }
    } else if (!ear_.ready()) {
        at(ear_.patience_ends());
    } else if (!confirmations_.empty() || ping_open_) {
        at(std::max(ear_asked_, ear_.last_heard()) + silence_max);
    } else if (!listeners_.empty()) {
        at(std::max(ear_asked_, ear_.last_heard()) + ping_every);
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
                                 pollfd{data_.descriptor(), data_.wanted(), 0},
                                 pollfd{ear_.descriptor(), ear_.wanted(), 0}};
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
    // Unless a caller that wrote to it found it broken.
    if (waited[1].revents != 0 && waited[1].fd == data_.descriptor()) {
        const bool open = data_.go_on(waited[1].revents, after);
        data_used_ = data_used_ || data_.ready();
        if (open) {
            hear_data(got);
        }
        if (data_.at() == link::phase::closed) {
            data_broke(after, got);
        }
    }
    if (waited[2].revents != 0) {
        const bool open = ear_.go_on(waited[2].revents, after);
        if (open) {
            hear_ear(got);
        }
        if (ear_.at() == link::phase::closed) {
            ear_broke(after, got);
        }
    }
}

// --- the end -------------------------------------------------------------------------------------

void engine::stop() {
    {
        std::unique_lock held{lock_};
        if (std::exchange(stopping_, true)) {
            return;
        }
        if (std::exchange(polling_, false)) {
            const std::uint64_t one = 1;
            static_cast<void>(::write(bell_, &one, sizeof one) == sizeof one);
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
    std::deque<flight> flying;
    flying.swap(flights_);
    for (auto& one : flying) {
        if (one.begins < data_.written()) {
            one.what->lost({errc::closed, "the store was closed before the answer came"},
                           got.as_outcome());
        } else {
            one.what->refused({errc::closed, "the store was closed"}, got.as_outcome());
        }
    }
    got.next.clear();
    refuse_waiting({errc::closed, "the store was closed"}, got);
    // Whoever asks the server after this shall not be told that this process still waits: it hangs
    // up once it has taken us off its books.
    if (ear_.ready()) {
        ear_.finish();
        const auto end = env_.time.now() + farewell_max;
        for (auto left = farewell_max; left > 0ns; left = end - env_.time.now()) {
            pollfd one{ear_.descriptor(), POLLIN, 0};
            const auto longest = as_timespec(left);
            if (::ppoll(&one, 1, &longest, nullptr) > 0) {
                std::array<char, 4096> rest;
                if (::read(ear_.descriptor(), rest.data(), rest.size()) <= 0 && errno != EAGAIN) {
                    break;
                }
            }
        }
    }
    ear_.close();
    data_.close();
    listeners_.clear();
    box_->send(std::move(got.letters));
}

void engine::abandon() {
    if (thread_.joinable()) {
        thread_.detach();
    }
}

}  // namespace dibs::store::redis
