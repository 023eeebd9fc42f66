// SPDX-License-Identifier: Apache-2.0
#include "store/redis/engine.hpp"

#include "store/redis/names.hpp"

#include <dibs/error.hpp>

#include <poll.h>
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
/// A connection that was heard of so lately is taken to be there.
constexpr core::nanoseconds fresh = 10ms;
constexpr core::nanoseconds farewell_max = 200ms;
/// A connection that is subscribed is cut when more than client-output-buffer-limit pubsub is on its way
/// to it, 32 MB mostly: that is no less than what all requests under way may bring by answers of such a
/// size.
constexpr std::size_t large_answer = std::size_t{1} << 20U;
/// After a cut, which may have been that, no connection is subscribed for so long, and longer each time.
constexpr core::nanoseconds notices_pause_first = 1min;
constexpr core::nanoseconds notices_pause_max = 1h;

std::size_t index(urgency how) noexcept {
    return static_cast<std::size_t>(how);
}

}  // namespace

engine::engine(core::environment env,
               const address& where,
               std::shared_ptr<mailbox> box,
               remote::announcements outside,
               names where_kept,
               std::string_view process)
    : leader(env, std::move(box)),
      where_(where),
      outside_(std::move(outside)),
      names_(std::move(where_kept)),
      own_channel_(names::channel_of_process(process)),
      notices_channel_(names::channel_of_notices(process)),
      data_(where_),
      ear_(where_) {}

trouble engine::start() {
    if (!sound()) {
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
        const auto seen = remote::wait_for(data_.descriptor(), data_.wanted(), left);
        data_.go_on(seen, env_.time.now());
    }
    if (!data_.ready()) {
        return {data_.fault(), where_.shown() + ": " + data_.fault_text()};
    }
    data_used_ = true;
    begin();
    return {};
}

// --- what comes in -------------------------------------------------------------------------------

void engine::submit(urgency how, std::unique_ptr<request> what) {
    auto held = enter();
    inbox_.add(how, std::move(what));
    send_or_call_leader(std::move(held), how);
}

void engine::subscribe(std::string channel, std::string key, watch_book::stay which) {
    auto held = enter();
    inbox_.changes.push_back({true, std::move(channel), {std::move(key), which, false, false}});
    call_leader(std::move(held));
}

void engine::unsubscribe(std::string channel) {
    auto held = enter();
    inbox_.changes.push_back({false, std::move(channel), {}});
    call_leader(std::move(held));
}

bool engine::nothing_came_in() const noexcept {
    return inbox_.empty();
}

void engine::collect() {
    std::swap(collected_, inbox_);
}

void engine::take_in() {
    collected_.pour_requests(queues_);
    for (auto& wish : collected_.changes) {
        apply(std::move(wish));
    }
    collected_.changes.clear();
}

// --- the leader ----------------------------------------------------------------------------------

void engine::act(core::instant now, letters& told) {
    keep_data(now, told);
    keep_ear(now, told);
    refuse_late(now, told);
    take_next();
}

bool engine::idle() const noexcept {
    const bool nothing_asked =
        flights_.empty() && queues_[0].empty() && queues_[1].empty() && queues_[2].empty();
    return nothing_asked && listeners_.empty() && confirmations_.empty() && !expects_notices_;
}

bool engine::asked() const noexcept {
    const bool hears = listeners_.empty() || (ear_.ready() && confirmations_.empty());
    return !hears || !flights_.empty() ||
           !(queues_[0].empty() && queues_[1].empty() && queues_[2].empty());
}

bool engine::can_send(urgency /*how*/) const noexcept {
    return data_.ready();
}

bool engine::all_sent() const noexcept {
    return data_.all_sent() && data_.ready() && ear_.all_sent();
}

/// Whether the server knows what this process waits for and what no longer.
bool engine::ear_settled() const noexcept {
    return confirmations_.empty() || !ear_.ready();
}

std::size_t engine::in_flight(urgency how) const noexcept {
    return static_cast<std::size_t>(std::count_if(
        flights_.begin(), flights_.end(), [&](const auto& one) { return one.how == how; }));
}

trouble engine::cut(const link& broken) const {
    return {broken.fault(), where_.shown() + ": " + broken.fault_text()};
}

// --- the data connection -------------------------------------------------------------------------

void engine::keep_data(core::instant now, letters& told) {
    if (data_.at() == link::phase::closed) {
        const bool wanted = !queues_[0].empty() || !queues_[1].empty() || !queues_[2].empty();
        if (!wanted || now < data_again_.until()) {
            return;
        }
        data_.open(now);
        if (data_.at() == link::phase::closed) {
            data_broke(now, told);
            return;
        }
    }
    if (!data_.ready()) {
        if (now >= data_.patience_ends() && !data_.lose_patience(now)) {
            data_broke(now, told);
        }
        return;
    }
    if (!flights_.empty()) {
        const auto since = std::max(flights_.front().sent, data_.last_heard());
        if (now - since >= silence_max) {
            data_.fail(errc::store_unreachable, "the server does not answer");
            data_broke(now, told);
            return;
        }
    }
    send(now, told);
}

void engine::send(core::instant now, letters& told) {
    bool looked = !flights_.empty() || now - data_.last_heard() < fresh;
    for (std::size_t at = 0; at < std::size(queues_); ++at) {
        const auto how = static_cast<urgency>(at);
        const auto most = how == urgency::renewal ? renewals_max : flights_max;
        auto under_way = in_flight(how);
        auto& queue = queues_[at];
        while (!queue.empty() && under_way < most && (how != urgency::look || ear_settled())) {
            // What is written to a connection that was closed long ago would be in doubt for nothing.
            if (!std::exchange(looked, true) && !data_.still_there()) {
                data_broke(now, told);
                return;
            }
            auto next = std::move(queue.front());
            queue.pop_front();
            make_ready_for(*next, now, told);
            const auto begins = data_.appended();
            if (next->write(data_.out(), now, after(told))) {
                flights_.push_back({std::move(next), begins, now, how});
                ++under_way;
            }
        }
    }
    if (!data_.flush()) {
        data_broke(now, told);
    }
}

void engine::hear_data(core::instant now, letters& told) {
    for (;;) {
        const auto how = data_.next();
        if (how != reply_reader::state::complete) {
            return;
        }
        const auto& answer = data_.current();
        if (answer.front().what == kind::push) {
            hear_pushed(answer, told);
            continue;
        }
        note_size_of_answer(now, told);
        if (!flights_.empty() && !flights_.front().what) {
            // Refused; or whatever is in between does not pass on what was said to it.
            answered_about_notices(hearing::refused);
            if (answer.front().what == kind::error) {
                continue;
            }
        }
        if (flights_.empty()) {
            data_.fail(errc::store_unreachable, "the server answered what was not asked");
            return;
        }
        auto next = std::move(flights_.front());
        flights_.pop_front();
        data_again_.succeeded();
        if (!next.what->answered(answer, after(told))) {
            queues_[index(next.how)].push_front(std::move(next.what));
        }
        take_next();
    }
}

/// The server takes one after the other: what has to be so for the next request is asked for before it.
void engine::make_ready_for(const request& next, core::instant now, letters& told) {
    if (next.bytes_to_keep() > large_answer) {
        give_notices_up(now, told);
    } else if (next.leaves_word() && notices_ == hearing::not_asked && data_.takes_pushes() &&
               !answers_are_large_ && now >= notices_again_at_) {
        subscribe_to_notices(now);
    }
}

/// Where there was one large answer there may be many at once.
void engine::note_size_of_answer(core::instant now, letters& told) {
    if (data_.size_of_current() > large_answer) {
        give_notices_up(now, told);
    }
}

void engine::subscribe_to_notices(core::instant now) {
    flights_.push_back({nullptr, data_.appended(), now, urgency::other});
    write_command(data_.out(), {"SUBSCRIBE", notices_channel_});
    notices_ = hearing::asked;
}

/// For as long as the store is open: whoever waits listens to the key from now on.
void engine::give_notices_up(core::instant now, letters& told) {
    answers_are_large_ = true;
    if (!hears_notices()) {
        return;
    }
    flights_.push_back({nullptr, data_.appended(), now, urgency::other});
    write_command(data_.out(), {"UNSUBSCRIBE", notices_channel_});
    notices_ = hearing::given_up;
    if (expects_notices_) {
        // Word that was left is heard no more: everybody looks for himself.
        told.push_back(outside_.woken({}, wake_by::unknown));
    }
}

void engine::answered_about_notices(hearing how) {
    if (notices_ == hearing::asked) {
        notices_ = how;
    }
    const auto at =
        std::find_if(flights_.begin(), flights_.end(), [](const auto& one) { return !one.what; });
    if (at != flights_.end()) {
        flights_.erase(at);
    }
}

void engine::note_cut_of_notices(core::instant now) {
    if (hears_notices() && !flights_.empty()) {
        notices_pause_ = std::clamp(2 * notices_pause_, notices_pause_first, notices_pause_max);
        notices_again_at_ = now + notices_pause_;
    }
}

void engine::hear_pushed(const reply& pushed, letters& told) {
    if (pushed.size() < 4 || pushed[2].text != notices_channel_) {
        return;
    }
    if (pushed[1].text == "subscribe" || pushed[1].text == "unsubscribe") {
        answered_about_notices(hearing::holds);
    } else if (pushed[1].text == "message") {
        if (auto key = names_.key_of_rest(pushed[3].text)) {
            told.push_back(outside_.woken(std::move(*key), wake_by::unknown));
        }
    }
}

request::outcome engine::after(letters& told) noexcept {
    return {told, next_};
}

// Follows are looks, or the parts of a batch that was taken apart.
void engine::take_next() {
    for (auto& one : next_) {
        queues_[index(urgency::look)].push_back(std::move(one));
    }
    next_.clear();
}

void engine::data_broke(core::instant now, letters& told) {
    const bool greeted = data_used_;
    data_used_ = false;
    note_cut_of_notices(now);
    notices_ = hearing::not_asked;
    if (expects_notices_) {
        // Whatever was said meanwhile is lost: everybody looks for himself.
        told.push_back(outside_.woken({}, wake_by::unknown));
    }
    const auto why = cut(data_);
    std::deque<flight> flying;
    flying.swap(flights_);
    std::erase_if(flying, [](const auto& one) { return !one.what; });
    for (auto one = flying.rbegin(); one != flying.rend(); ++one) {
        if (one->begins < data_.written()) {
            one->what->lost(why, after(told));
        } else {
            queues_[index(one->how)].push_front(std::move(one->what));
        }
    }
    take_next();
    if (!greeted) {
        // Who waits longer learns nothing more than this.
        refuse_waiting(why, told);
    }
    if (!greeted || now - data_.opened() < remote::flapping) {
        data_again_.failed(now, env_.random);
    }
}

void engine::refuse_waiting(const trouble& why, letters& told) {
    for (auto& queue : queues_) {
        std::deque<std::unique_ptr<request>> waiting;
        waiting.swap(queue);
        for (const auto& one : waiting) {
            one->refused(why, after(told));
        }
    }
    next_.clear();
}

void engine::refuse_late(core::instant now, letters& told) {
    for (auto& queue : queues_) {
        std::erase_if(queue, [&](const auto& one) {
            if (one->deadline() > now) {
                return false;
            }
            one->refused({errc::timed_out, "not begun before its deadline"}, after(told));
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

void engine::keep_ear(core::instant now, letters& told) {
    if (ear_.at() == link::phase::closed) {
        if (listeners_.empty() || now < ear_again_.until()) {
            return;
        }
        ear_.open(now);
        if (ear_.at() == link::phase::closed) {
            ear_broke(now, told);
        }
        return;
    }
    if (!ear_.ready()) {
        if (now >= ear_.patience_ends() && !ear_.lose_patience(now)) {
            ear_broke(now, told);
        }
        return;
    }
    const bool asked = !confirmations_.empty() || ping_open_;
    const auto since = std::max(ear_asked_, ear_.last_heard());
    if (asked && now - since >= silence_max) {
        ear_.fail(errc::store_unreachable, "the server does not answer");
        ear_broke(now, told);
        return;
    }
    if (!asked && !listeners_.empty() && now - since >= remote::ping_every) {
        write_command(ear_.out(), {"PING"});
        ping_open_ = true;
        ear_asked_ = now;
    }
    if (!ear_.flush()) {
        ear_broke(now, told);
    }
}

void engine::hear_ear(letters& told) {
    if (ear_.ready() && !std::exchange(ear_used_, true)) {
        ear_again_.succeeded();
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
        const auto& heard = ear_.current();
        const bool to_a_ping = std::exchange(ping_open_, false);
        if (heard.front().what == kind::error && !to_a_ping) {
            refuse_to_listen(heard.front().text, told);
            continue;
        }
        if (heard.size() < 3 || heard[0].children != 3) {
            continue;  // the answer to a ping
        }
        const auto what = heard[1].text;
        const auto known = listeners_.find(std::string{heard[2].text});
        if (what == "message" && heard[2].text == own_channel_ && heard.size() >= 4) {
            const auto meant = listeners_.find(std::string{heard[3].text});
            if (meant != listeners_.end()) {
                told.push_back(outside_.woken(meant->second.key, wake_by::unknown));
            }
            continue;
        }
        if (what == "message") {
            if (known != listeners_.end()) {
                told.push_back(outside_.woken(known->second.key, by(heard)));
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
                return one.channel == heard[2].text;
            });
        if (what == "subscribe" && settled && known != listeners_.end()) {
            auto& one = known->second;
            one.holds = true;
            if (!std::exchange(one.told, true)) {
                told.push_back(outside_.entered(one.key, one.which, {}));
            } else {
                // Whatever was said while nobody listened is lost.
                told.push_back(outside_.woken(one.key, wake_by::unknown));
            }
        }
    }
}

/// A message names the process whose step it tells of.
wake_by engine::by(const reply& message) const noexcept {
    const auto process = message.size() >= 4 ? message[3].text : std::string_view{};
    return process.empty()                                      ? wake_by::unknown
           : process == names::process_of_channel(own_channel_) ? wake_by::own_process
                                                                : wake_by::other_process;
}

bool engine::listens(std::string_view channel) const noexcept {
    const auto known = listeners_.find(channel);
    return known != listeners_.end() && known->second.holds;
}

/// What was asked first is refused: whoever waits for that key does without wake-ups.
void engine::refuse_to_listen(std::string_view why, letters& told) {
    if (confirmations_.empty()) {
        return;
    }
    const auto refused = std::move(confirmations_.front());
    confirmations_.pop_front();
    const auto known = listeners_.find(refused.channel);
    if (refused.begins && known != listeners_.end() && !std::exchange(known->second.told, true)) {
        told.push_back(outside_.entered(
            known->second.key,
            known->second.which,
            why.starts_with("NOPERM") ? errc::permission_denied : errc::store_refused));
    }
}

void engine::ear_broke(core::instant now, letters& told) {
    const bool greeted = std::exchange(ear_used_, false);
    confirmations_.clear();
    ping_open_ = false;
    for (auto& [channel, one] : listeners_) {
        one.holds = false;
    }
    if (greeted && now - ear_.opened() >= remote::flapping) {
        return;  // a new one is made at once
    }
    ear_again_.failed(now, env_.random);
    for (auto& [channel, one] : listeners_) {
        if (!std::exchange(one.told, true)) {
            told.push_back(outside_.entered(one.key, one.which, ear_.fault()));
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
            at(data_again_.until());
        }
    } else if (!data_.ready()) {
        at(data_.patience_ends());
    } else if (!flights_.empty()) {
        at(std::max(flights_.front().sent, data_.last_heard()) + silence_max);
    }
    if (ear_.at() == link::phase::closed) {
        if (!listeners_.empty()) {
            at(ear_again_.until());
        }
    } else if (!ear_.ready()) {
        at(ear_.patience_ends());
    } else if (!confirmations_.empty() || ping_open_) {
        at(std::max(ear_asked_, ear_.last_heard()) + silence_max);
    } else if (!listeners_.empty()) {
        at(std::max(ear_asked_, ear_.last_heard()) + remote::ping_every);
    }
    return next;
}

std::array<pollfd, 2> engine::awaited() const noexcept {
    return {pollfd{data_.descriptor(), data_.wanted(), 0},
            pollfd{ear_.descriptor(), ear_.wanted(), 0}};
}

void engine::hear(const std::array<pollfd, 2>& seen, core::instant now, letters& told) {
    // Unless a caller that wrote to it found it broken.
    if (seen[0].revents != 0 && seen[0].fd == data_.descriptor()) {
        const bool open = data_.go_on(seen[0].revents, now);
        data_used_ = data_used_ || data_.ready();
        if (open) {
            hear_data(now, told);
        }
        if (data_.at() == link::phase::closed) {
            data_broke(now, told);
        }
    }
    if (seen[1].revents != 0) {
        const bool open = ear_.go_on(seen[1].revents, now);
        if (open) {
            hear_ear(told);
        }
        if (ear_.at() == link::phase::closed) {
            ear_broke(now, told);
        }
    }
}

// --- the end -------------------------------------------------------------------------------------

void engine::finish(letters& told) {
    std::deque<flight> flying;
    flying.swap(flights_);
    std::erase_if(flying, [](const auto& one) { return !one.what; });
    for (auto& one : flying) {
        if (one.begins < data_.written()) {
            one.what->lost({errc::closed, "the store was closed before the answer came"},
                           after(told));
        } else {
            one.what->refused({errc::closed, "the store was closed"}, after(told));
        }
    }
    next_.clear();
    refuse_waiting({errc::closed, "the store was closed"}, told);
    // Whoever asks the server after this shall not be told that this process still waits: it hangs
    // up once it has taken us off its books.
    if (ear_.ready()) {
        ear_.finish();
        const auto end = env_.time.now() + farewell_max;
        for (auto left = farewell_max; left > 0ns; left = end - env_.time.now()) {
            if (remote::wait_for(ear_.descriptor(), POLLIN, left) != 0) {
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
}

void engine::let_go() noexcept {}

}  // namespace dibs::store::redis
