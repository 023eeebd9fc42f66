// SPDX-License-Identifier: Apache-2.0
// Replies of batch.lua as answers.
#include "core/duration.hpp"
#include "store/redis/lock_text.hpp"
#include "store/redis/refusals.hpp"
#include "store/redis/steps.hpp"
#include "store/redis/steps_parts.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace dibs::store::redis {

namespace {

using core::effect;
using core::loss;
using core::microseconds;
using core::verdict;

constexpr microseconds forever = core::result_to_keep::forever;

/// Walks over the nodes of a reply that has no more than arrays of arrays.
class walk {
  public:
    explicit walk(const reply& all) noexcept : all_(all) {}

    [[nodiscard]] bool array(std::uint32_t& children) noexcept {
        const auto* one = next();
        if (one == nullptr || one->what != kind::array) {
            return false;
        }
        children = one->children;
        return true;
    }
    /// Whether what comes is no array.
    [[nodiscard]] bool short_answer() const noexcept {
        return at_ < all_.size() && all_[at_].what != kind::array;
    }
    [[nodiscard]] const node* next() noexcept { return at_ < all_.size() ? &all_[at_++] : nullptr; }

  private:
    const reply& all_;
    std::size_t at_ = 0;
};

std::int64_t number_of(const node& one) noexcept {
    if (one.what == kind::integer) {
        return one.number;
    }
    std::int64_t number = 0;
    std::from_chars(one.text.data(), one.text.data() + one.text.size(), number);
    return number;
}

core::fence_number fence_of(const node& one) noexcept {
    return static_cast<core::fence_number>(std::max(number_of(one), std::int64_t{0}));
}

struct moment {
    std::int64_t now = 0;

    [[nodiscard]] microseconds left(std::int64_t end) const noexcept {
        return end < 0 ? forever : microseconds{std::max(end - now, std::int64_t{0})};
    }
    [[nodiscard]] core::store_now as_now() const noexcept {
        return {core::store_instant{microseconds{now}}, core::wall_instant{microseconds{now}}};
    }
};

core::boxed<core::kept_result> result_of(const node& value,
                                         const node& meta,
                                         moment when,
                                         core::fence_number seen) {
    if (value.what == kind::null || meta.what == kind::null) {
        return std::nullopt;
    }
    std::array<std::int64_t, 5> numbers{};
    const auto* at = meta.text.data();
    const auto* const end = at + meta.text.size();
    for (auto& number : numbers) {
        const auto [stop, fault] = std::from_chars(at, end, number);
        if (fault != std::errc{}) {
            return std::nullopt;
        }
        at = stop == end ? end : stop + 1;
    }
    const auto [fence, mark, written, fresh_until, keep_until] = numbers;
    core::kept_result kept;
    kept.value = value.text;
    kept.fence = static_cast<core::fence_number>(fence);
    kept.is_mark = mark == 1;
    kept.fresh = (fresh_until < 0 || when.now < fresh_until) && kept.fence > seen;
    kept.age = microseconds{std::max(when.now - written, std::int64_t{0})};
    kept.fresh_left = when.left(fresh_until);
    kept.keep_left = when.left(keep_until);
    return kept;
}

void describe(core::holder_info& one, const lock_value& ours, moment when, const caller& self) {
    one.who = ours.who;
    one.fences = ours.fences;
    one.attached = ours.attached;
    one.held_for = microseconds{std::max(when.now - ours.granted_us, std::int64_t{0})};
    one.self = ours.process == self.process;
}

std::vector<core::holder_info> holders_of(const node& value,
                                          std::int64_t expires,
                                          moment when,
                                          const caller& self) {
    std::vector<core::holder_info> holders;
    if (value.what == kind::null) {
        return holders;
    }
    if (const auto shared = parse_shares(value.text)) {
        for (const auto& share : shared->shares) {
            if (when.now >= share.expires_us) {
                continue;
            }
            core::holder_info one;
            one.remaining = when.left(share.expires_us);
            one.weight = share.weight;
            describe(one, share.value, when, self);
            holders.push_back(std::move(one));
        }
        return holders;
    }
    core::holder_info one;
    one.remaining = when.left(expires);
    if (const auto ours = parse_lock(value.text)) {
        describe(one, *ours, when, self);
    } else {
        one.attached = core::attachment::detached;
    }
    holders.push_back(std::move(one));
    return holders;
}

loss loss_of(std::string_view word) noexcept {
    return word == "taken"     ? loss::taken
           : word == "expired" ? loss::expired
           : word == "revoked" ? loss::revoked
                               : loss::gone;
}

/// The queue of a listing: the texts of tickets (batch.lua), each with this behind it.
constexpr char ticket_end = '\x1e';

std::vector<core::queued_info> queue_of(std::string_view texts, moment when, const caller& self) {
    std::vector<core::queued_info> queue;
    for (;;) {
        const auto end = texts.find(ticket_end);
        if (end == std::string_view::npos) {
            return queue;
        }
        if (auto known = parse_ticket(texts.substr(0, end))) {
            core::queued_info one;
            one.who = std::move(known->who);
            one.waiting_for = microseconds{std::max(when.now - known->entered_us, std::int64_t{0})};
            one.self = known->process == self.process;
            queue.push_back(std::move(one));
        }
        texts.remove_prefix(end + 1);
    }
}

core::fence_number seen_by(const core::verb& what) noexcept {
    const auto* asked = std::get_if<core::acquire>(&what);
    return asked == nullptr ? 0 : asked->seen;
}

/// Of those who hear of a release, this process is one if it waits itself.
bool others_wait(std::int64_t listeners, const core::verb& asked, const caller& self) {
    return listeners > 1 ||
           (listeners == 1 && !(self.listens && self.listens(core::key_of(asked))));
}

using parts = std::array<const node*, 12>;

core::answer answer_of(const parts& told,
                       std::uint32_t count,
                       moment when,
                       const caller& self,
                       const core::verb& asked) {
    const char code = told[0]->text.empty() ? '?' : told[0]->text.front();
    if (code == 'e') {
        return answer_to_error(told[1]->text, count > 2 && number_of(*told[2]) != 0);
    }
    core::answer made;
    made.took = effect::yes;
    made.now = when.as_now();
    if (count >= 6) {
        made.result = result_of(*told[4], *told[5], when, seen_by(asked));
    }
    made.waiters = count >= 7 && others_wait(number_of(*told[6]), asked, self);
    if (count >= 9) {
        made.ticket = static_cast<std::uint64_t>(number_of(*told[7]));
        made.position = static_cast<std::uint32_t>(
            std::min(number_of(*told[8]), std::int64_t{core::position_exact} + 1));
    }
    switch (code) {
        case 'g':
        case 'n':
            made.what = code == 'g' ? verdict::granted : verdict::renewed;
            made.fences = {fence_of(*told[1]), fence_of(*told[2])};
            made.expires = core::store_instant{microseconds{number_of(*told[3])}};
            break;
        case 'h':
        case 'm':
            made.what = code == 'h' ? verdict::held : verdict::fence_moved;
            made.holders = holders_of(*told[1], number_of(*told[2]), when, self);
            made.retry_after = when.left(number_of(*told[2]));
            made.watchers = count >= 7 ? static_cast<std::uint32_t>(std::clamp<std::int64_t>(
                                             number_of(*told[6]), 0, 1 << 20))
                                       : 0;
            made.will_notify = count >= 10 && number_of(*told[9]) != 0 && self.takes_notices();
            break;
        case 'd':
            made.what = verdict::done;
            break;
        case 'b':
            made.what = verdict::blocked;
            made.reason = told[1]->text;
            made.retry_after = when.left(number_of(*told[2]));
            break;
        case 'l':
            made.what = verdict::too_late;
            break;
        case 'w':
            made.what = verdict::not_ready;
            made.retry_after = when.left(number_of(*told[2]));
            made.detail =
                "the server has begun anew or taken over, or strict leases are new to it; "
                "leases of before may still be held; it grants again in " +
                core::show_duration(made.retry_after);
            break;
        case 'r':
            made.what = verdict::released;
            break;
        case 'f':
            made.what = verdict::finished;
            break;
        case 'x':
            made.what = verdict::not_held;
            made.lost = loss_of(told[1]->text);
            break;
        case 'v':
            made.what = verdict::revoked;
            break;
        case 's':
            made.what = verdict::block_set;
            break;
        case 'c': {
            const auto* acquire = std::get_if<core::acquire>(&asked);
            auto differs = core::capacity_differs(static_cast<std::uint32_t>(number_of(*told[1])),
                                                  acquire == nullptr ? 0 : acquire->part.capacity);
            differs.result = std::move(made.result);
            return differs;
        }
        default:
            return core::in_doubt("an answer that this release does not know");
    }
    return made;
}

/// The fewest parts of an answer by its letter.
std::uint32_t fewest_of(char code) noexcept {
    switch (code) {
        case 'v':
        case 's':
            return 1;
        case 'e':
            return 2;
        case 'n':
        case 'r':
        case 'f':
            return 7;
        case 'q':
            return 12;
        default:
            return 6;
    }
}

/// One answer of the script; its parts stand in `told`.
bool take_parts(walk& at, parts& told, std::uint32_t& count) {
    if (!at.array(count) || count == 0 || count > told.size()) {
        return false;
    }
    for (std::uint32_t part = 0; part < count; ++part) {
        told[part] = at.next();
        if (told[part] == nullptr || told[part]->children > 0) {
            return false;
        }
    }
    return !told[0]->text.empty() && count >= fewest_of(told[0]->text.front());
}

bool take_head(walk& at, std::size_t entries, moment& when) {
    std::uint32_t count = 0;
    if (!at.array(count) || count != entries + 1) {
        return false;
    }
    const auto* now = at.next();
    if (now == nullptr || now->what != kind::integer) {
        return false;
    }
    when.now = now->number;
    return true;
}

/// When a lease ends that began at that moment: the server counts in milliseconds, and up.
core::store_instant end_of(moment when, microseconds ttl) noexcept {
    const auto exact = when.now + std::min(ttl.count(), duration_max);
    return core::store_instant{microseconds{(exact + 999) / 1000 * 1000}};
}

/// One or two numbers or more, with a blank between.
template <std::size_t Count>
bool read_numbers(std::string_view text, std::array<core::fence_number, Count>& numbers) noexcept {
    const auto* at = text.data();
    const auto* const end = at + text.size();
    for (auto& number : numbers) {
        at += at != end && *at == ' ' ? 1 : 0;
        const auto [stop, fault] = std::from_chars(at, end, number);
        if (fault != std::errc{}) {
            return false;
        }
        at = stop;
    }
    return at == end;
}

/// One reply for all entries, when everything went as usual: see batch.lua.
bool read_usual(const node& told,
                std::span<const core::entry> batch,
                std::span<const std::uint32_t> order,
                const caller& self,
                std::span<core::answer> answers) {
    if (told.what == kind::integer && order.size() == 1 && told.number >= 0) {
        auto& made = answers[order[0]];
        made.took = effect::yes;
        made.what = verdict::released;
        made.waiters = others_wait(told.number, batch[order[0]].what, self);
        return is_plain_release(batch[order[0]].what);
    }
    std::array<core::fence_number, 2> numbers{};
    const bool fence_told = read_numbers(told.text, numbers);
    std::array<core::fence_number, 1> time{numbers[0]};
    if (told.what != kind::bulk || (!fence_told && !read_numbers(told.text, time))) {
        return false;
    }
    const moment when{static_cast<std::int64_t>(time[0])};
    const auto grants = static_cast<core::fence_number>(std::count_if(
        order.begin(), order.end(), [&](auto entry) { return is_acquire(batch[entry]); }));
    auto fence = fence_told ? numbers[1] : time[0] - grants + 1;
    if (time[0] < grants || fence == 0 || fence + grants <= time[0]) {
        return false;
    }
    for (const auto entry : order) {
        auto& made = answers[entry];
        made.took = effect::yes;
        made.now = when.as_now();
        if (const auto* asked = std::get_if<core::acquire>(&batch[entry].what)) {
            made.what = verdict::granted;
            made.fences = {fence, fence};
            made.expires = end_of(when, asked->ttl);
            ++fence;
        } else if (is_plain_release(batch[entry].what)) {
            made.what = verdict::released;
        } else {
            return false;
        }
    }
    return true;
}

/// What the short way of the script answers, in a call with so many entries.
bool read_short(const node& told,
                moment when,
                std::size_t entries,
                const core::verb& what,
                const caller& self,
                core::answer& made) {
    made.took = effect::yes;
    made.now = when.as_now();
    if (const auto* asked = std::get_if<core::acquire>(&what)) {
        std::array<core::fence_number, 2> fences{};
        if (told.what == kind::integer) {
            fences.fill(fence_of(told));
        } else if (!read_numbers(told.text, fences)) {
            return false;
        }
        made.what = verdict::granted;
        made.fences = {fences[0], fences[1]};
        made.expires = end_of(when, asked->ttl);
        // The fences of a call end at the server's time, or beyond it.
        const auto of_all = core::fence_number{std::max(asked->fences, 1U)} * entries;
        return (told.what == kind::integer || told.what == kind::bulk) && fences[0] > 0 &&
               fences[0] <= fences[1] &&
               fences[1] + of_all > static_cast<core::fence_number>(when.now);
    }
    if (const auto* asked = std::get_if<core::renew>(&what)) {
        std::array<core::fence_number, 3> numbers{};
        if (told.what != kind::bulk || !read_numbers(told.text, numbers)) {
            return false;
        }
        made.what = verdict::renewed;
        made.waiters = others_wait(static_cast<std::int64_t>(numbers[0]), what, self);
        made.fences = {numbers[1], numbers[2]};
        made.expires = end_of(when, asked->ttl);
        return numbers[1] > 0 && numbers[1] <= numbers[2];
    }
    made.what = verdict::released;
    made.waiters = others_wait(told.number, what, self);
    return std::holds_alternative<core::release>(what) && told.what == kind::integer &&
           told.number >= 0;
}

}  // namespace

bool read_batch(const reply& told,
                const caller& self,
                std::span<const core::entry> batch,
                std::span<const std::uint32_t> order,
                std::span<core::answer> answers) {
    walk at{told};
    moment when;
    if (at.short_answer()) {
        return read_usual(told.front(), batch, order, self, answers);
    }
    if (!take_head(at, order.size(), when)) {
        return false;
    }
    for (const auto entry : order) {
        if (at.short_answer()) {
            if (!read_short(
                    *at.next(), when, order.size(), batch[entry].what, self, answers[entry])) {
                return false;
            }
            continue;
        }
        parts part{};
        std::uint32_t count = 0;
        if (!take_parts(at, part, count)) {
            return false;
        }
        answers[entry] = answer_of(part, count, when, self, batch[entry].what);
    }
    return true;
}

bool read_looks(const reply& told,
                const caller& self,
                std::span<const std::string> keys,
                std::vector<core::record_info>& found) {
    walk at{told};
    moment when;
    if (!take_head(at, keys.size(), when)) {
        return false;
    }
    for (const auto& key : keys) {
        parts part{};
        std::uint32_t count = 0;
        if (!take_parts(at, part, count)) {
            return false;
        }
        if (part[0]->text != "q") {
            continue;  // not a record that can be read: of another type, or of a newer release
        }
        core::record_info info;
        info.key = key;
        info.holders = holders_of(*part[1], number_of(*part[2]), when, self);
        if (const auto shared = parse_shares(part[1]->text)) {
            info.part.capacity = shared->capacity;
        }
        info.result = result_of(*part[4], *part[5], when, 0);
        info.waiters = static_cast<std::uint32_t>(number_of(*part[6]));
        info.fence = fence_of(*part[7]);
        const auto blocked = number_of(*part[8]);
        if (blocked < 0 || blocked > when.now) {
            info.blocked_for = when.left(blocked);
            info.blocked_reason = part[9]->text;
        }
        info.queued = static_cast<std::uint32_t>(number_of(*part[10]));
        info.queue = queue_of(part[11]->text, when, self);
        const bool empty = info.holders.empty() && !info.result && info.waiters == 0 &&
                           info.fence == 0 && info.blocked_for == microseconds{0};
        if (!empty) {
            found.push_back(std::move(info));
        }
    }
    return true;
}

}  // namespace dibs::store::redis
