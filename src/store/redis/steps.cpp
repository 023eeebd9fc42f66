// SPDX-License-Identifier: Apache-2.0
#include "store/redis/steps.hpp"

#include "core/duration.hpp"
#include "core/key.hpp"
#include "core/payload.hpp"
#include "core/verb_fault.hpp"
#include "store/redis/lock_text.hpp"
#include "store/redis/script.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>

namespace dibs::store::redis {

namespace {

using core::effect;
using core::loss;
using core::microseconds;
using core::verdict;

constexpr microseconds forever = core::result_to_keep::forever;

/// A duration that is longer than any clock will show is for ever.
constexpr std::int64_t duration_max = std::int64_t{1} << 51U;

// --- what is asked -------------------------------------------------------------------------------

/// One that the script never finds to be over.
constexpr std::int64_t no_end = fence_limit;

/// How long the script remembers a holder after its lease, and some: see batch.lua.
constexpr std::int64_t trace_kept_ms = 3'601'000;

constexpr std::size_t holder_digits = 2 * std::tuple_size_v<decltype(core::holder_id::bytes)>;

/// Behind the last of them.
char* write_digits(const core::holder_id& who, char* at) noexcept {
    static constexpr std::string_view hex = "0123456789abcdef";
    for (const auto one : who.bytes) {
        *at++ = hex[std::to_integer<unsigned>(one) >> 4U];
        *at++ = hex[std::to_integer<unsigned>(one) & 15U];
    }
    return at;
}

/// Appends to one text that is used for all words of a batch.
class words {
  public:
    words() = default;
    explicit words(bool takes_notices) : takes_notices_(takes_notices) {}

    /// Whether who asks hears of locks with which it leaves word.
    [[nodiscard]] bool takes_notices() const noexcept { return takes_notices_; }
    void begin() { text_.clear(); }
    words& put(std::string_view part) {
        text_ += part;
        return *this;
    }
    words& add(std::string_view word) {
        text_ += ' ';
        return put(word);
    }
    words& add(std::int64_t number) {
        std::array<char, 24> digits;
        const auto [end, fault] =
            std::to_chars(digits.data(), digits.data() + digits.size(), number);
        static_cast<void>(fault);
        return add(std::string_view{digits.data(), static_cast<std::size_t>(end - digits.data())});
    }
    words& add(core::fence_number fence) {
        return add(static_cast<std::int64_t>(std::min(fence, fence_limit)));
    }
    words& add(microseconds time) {
        return add(time.count() > duration_max ? std::int64_t{-1} : time.count());
    }
    words& ttl(microseconds time) { return add(clipped(time)); }
    /// The ttl for its three uses: exactly, in whole milliseconds, and that of the rest.
    words& ttls(microseconds time) {
        const auto ttl = clipped(time);
        return add(ttl).add((ttl + 999) / 1000).add(ttl / 1000 + 1 + trace_kept_ms);
    }
    words& add(core::attachment how) { return add(how == core::attachment::attached ? "a" : "d"); }
    words& flag(bool set) { return add(set ? "1" : "0"); }
    words& result(const core::boxed<core::result_to_keep>& what) {
        return add(what ? what->fresh : microseconds{}).add(what ? what->keep : microseconds{});
    }
    /// With as many digits as a record has for it.
    words& sixteen(std::int64_t number) {
        std::array<char, 16> digits;
        for (auto at = digits.rbegin(); at != digits.rend(); ++at) {
            *at = static_cast<char>('0' + number % 10);
            number /= 10;
        }
        return put({digits.data(), digits.size()});
    }
    words& holder(const core::holder_id& who) {
        std::array<char, holder_digits> digits;
        write_digits(who, digits.data());
        return put({digits.data(), digits.size()});
    }
    [[nodiscard]] std::string_view text() const noexcept { return text_; }

  private:
    static std::int64_t clipped(microseconds time) { return std::min(time.count(), duration_max); }

    std::string text_;
    bool takes_notices_ = false;
};

std::int64_t end_of(const core::acquire& asked) noexcept {
    return asked.not_after
               ? std::clamp(asked.not_after->time_since_epoch().count(), std::int64_t{0}, no_end)
               : no_end;
}

bool is_plain(const core::acquire& asked) noexcept {
    return asked.floor == 0 && asked.part == core::share{} && !asked.mark && asked.seen == 0 &&
           asked.queue == microseconds{0} && !asked.notify;
}

void spell(words& said, const core::acquire& asked) {
    if (is_plain(asked)) {
        const bool attached = asked.attached == core::attachment::attached;
        said.put(asked.traced ? attached ? "A" : "D"
                 : attached   ? "U"
                              : "V")
            .ttls(asked.ttl)
            .add(std::int64_t{std::max(asked.fences, 1U)});
        return;
    }
    said.put("a")
        .ttl(asked.ttl)
        .add(std::int64_t{asked.fences})
        .add(asked.floor)
        .add(std::int64_t{asked.part.weight})
        .add(std::int64_t{asked.part.capacity})
        .add(asked.attached)
        .add(asked.seen)
        .flag(asked.mark.has_value())
        .result(asked.mark)
        .add(std::chrono::ceil<core::milliseconds>(asked.queue).count())
        .flag(asked.notify && said.takes_notices());
}

void spell(words& said, const core::renew& asked) {
    if (asked.fences == 0 && !asked.adopt) {
        said.put("N").ttls(asked.ttl);
        return;
    }
    said.put("n").ttl(asked.ttl).add(std::int64_t{asked.fences});
    if (asked.adopt) {
        said.put(" ").holder(asked.adopt->holder).add(asked.adopt->attached);
    } else {
        said.add("-").add("a");
    }
}

void spell(words& said, const core::release& asked) {
    if (!asked.result) {
        said.put("R");
        return;
    }
    said.put("r").flag(true).flag(asked.late).result(asked.result);
}

void spell(words& said, const core::revoke& asked) {
    said.put("v").add(asked.fence <= fence_limit ? asked.fence : core::fence_number{0});
}

void spell(words& said, const core::block& asked) {
    said.put("b").add(asked.duration);
}

bool is_plain_release(const core::verb& what) noexcept {
    const auto* asked = std::get_if<core::release>(&what);
    return asked != nullptr && !asked->result;
}

/// Of which the script needs nothing but their keys and holders.
bool is_brief(const core::verb& what) noexcept {
    const auto* renewed = std::get_if<core::renew>(&what);
    return is_plain_release(what) ||
           (renewed != nullptr && renewed->fences == 0 && !renewed->adopt);
}

/// Whether it is known, without spelling them, that both have the same words.
bool says_the_same(const core::verb& one, const core::verb& other) noexcept {
    const auto* first = std::get_if<core::acquire>(&one);
    const auto* second = std::get_if<core::acquire>(&other);
    if (first != nullptr && second != nullptr) {
        return is_plain(*first) && is_plain(*second) && first->ttl == second->ttl &&
               first->fences == second->fences && first->attached == second->attached &&
               first->traced == second->traced;
    }
    return is_plain_release(one) && is_plain_release(other);
}

core::holder_id holder_of(const core::verb& what) noexcept {
    if (const auto* asked = std::get_if<core::acquire>(&what)) {
        return asked->holder;
    }
    if (const auto* asked = std::get_if<core::renew>(&what)) {
        return asked->holder;
    }
    const auto* asked = std::get_if<core::release>(&what);
    return asked == nullptr ? core::holder_id{} : asked->holder;
}

/// What the entries of a call have to say, beside their keys.
struct arguments {
    std::string words;  ///< of each run of entries that have the same
    std::string ends;   ///< until when each of them may be granted
    std::int64_t earliest_end = no_end;
    bool ends_differ = false;
    bool gives = false;  ///< a key to somebody: acquires and adoptions
    bool brief = true;   ///< nothing but plain releases and renewals
    std::size_t payloads = 0;
};

/// Words of a command, written where there is room for them all: no step asks for more.
class words_in_place {
  public:
    words_in_place(std::string& out, std::size_t most) : out_(out) {
        const auto begin = out.size();
        out.resize(begin + most);
        at_ = out.data() + begin;
    }
    words_in_place(const words_in_place&) = delete;
    words_in_place& operator=(const words_in_place&) = delete;
    ~words_in_place() { out_.resize(static_cast<std::size_t>(at_ - out_.data())); }

    /// What a word of that size takes at most.
    static constexpr std::size_t most(std::size_t size) noexcept { return size + 28; }

    void begin(std::size_t words) { head('*', words); }
    void word(std::string_view text) {
        head('$', text.size());
        put(text);
        put("\r\n");
    }
    void holder(const core::holder_id& who) {
        put("$38\r\ndibs1 ");
        at_ = write_digits(who, at_);
        put("\r\n");
    }

  private:
    void head(char kind, std::size_t number) {
        *at_++ = kind;
        at_ = std::to_chars(at_, at_ + 20, number).ptr;
        put("\r\n");
    }
    void put(std::string_view text) {
        std::memcpy(at_, text.data(), text.size());
        at_ += text.size();
    }

    std::string& out_;
    char* at_ = nullptr;
};

/// All but the payloads.
template <typename KeyOf, typename HolderOf>
void write_call(std::string& out,
                send_as how,
                const names& where,
                const caller& self,
                std::size_t entries,
                const arguments& said,
                KeyOf key_of,
                HolderOf holder_of) {
    const bool strict = said.gives && self.longest_ttl > microseconds{0};
    const auto keys = 2 * entries + (strict ? 2U : said.brief ? 0U : 1U);
    const auto script = how == send_as::name ? script_name() : script_text();
    std::array<char, 24> digits;
    const std::string_view key_count{
        digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), keys).ptr};
    words asking;
    words ends;
    if (!said.brief) {
        asking.put(self.process).add(self.who);
        ends.sixteen(said.earliest_end);
        if (said.ends_differ) {
            ends.put(said.ends);
        }
        if (strict) {
            ends.add(self.longest_ttl.count());
        }
    }
    const auto fence_mark = said.brief ? std::string{} : names::fence_mark();
    const auto epoch = strict ? where.epoch() : std::string{};

    using in_place = words_in_place;
    auto most = in_place::most(0) + in_place::most(7) + in_place::most(script.size()) +
                in_place::most(key_count.size()) + in_place::most(fence_mark.size()) +
                in_place::most(epoch.size()) + in_place::most(said.words.size()) +
                in_place::most(asking.text().size()) + in_place::most(ends.text().size());
    std::string name;
    for (std::size_t at = 0; at < entries; ++at) {
        most += in_place::most(where.lock_size(key_of(at))) +
                in_place::most(where.rest_size_max(key_of(at))) + in_place::most(38);
    }
    in_place writer{out, most};
    writer.begin(3 + keys + 1 + entries + (said.brief ? 0U : 2U) + said.payloads);
    writer.word(how == send_as::name ? "EVALSHA" : "EVAL");
    writer.word(script);
    writer.word(key_count);
    for (std::size_t at = 0; at < entries; ++at) {
        where.put_lock(name, key_of(at));
        writer.word(name);
    }
    for (std::size_t at = 0; at < entries; ++at) {
        where.put_rest(name, key_of(at));
        writer.word(name);
    }
    if (!said.brief) {
        writer.word(fence_mark);
    }
    if (strict) {
        writer.word(epoch);
    }
    writer.word(said.words);
    for (std::size_t at = 0; at < entries; ++at) {
        writer.holder(holder_of(at));
    }
    if (!said.brief) {
        writer.word(asking.text());
        writer.word(ends.text());
    }
}

/// Runs of entries with the same words.
class runs_of_words {
  public:
    void add(std::string_view words) {
        if (count_ > 0 && words != last_) {
            end_run();
        }
        if (count_ == 0) {
            last_ = words;
        }
        ++count_;
    }
    std::string finish() {
        if (all_.empty()) {
            return std::move(last_);
        }
        end_run();
        return std::move(all_);
    }

  private:
    void end_run() {
        all_ += std::to_string(count_);
        all_ += ' ';
        all_ += last_;
        all_ += '\n';
        count_ = 0;
    }

    std::string all_;
    std::string last_;
    std::size_t count_ = 0;
};

arguments arguments_of(std::span<const core::entry> batch,
                       std::span<const std::uint32_t> order,
                       bool takes_notices) {
    arguments said;
    runs_of_words runs;
    words one{takes_notices};
    words ends;
    const core::verb* last = nullptr;
    for (const auto at : order) {
        const auto& what = batch[at].what;
        if (last == nullptr || !says_the_same(*last, what)) {
            one.begin();
            std::visit([&](const auto& asked) { spell(one, asked); }, what);
        }
        last = &what;
        runs.add(one.text());
        said.brief = said.brief && is_brief(what);
        said.payloads += core::payload_of(what) != nullptr ? 1U : 0U;
        auto end = no_end;
        if (const auto* asked = std::get_if<core::acquire>(&what)) {
            end = end_of(*asked);
            said.gives = true;
        } else if (const auto* renewed = std::get_if<core::renew>(&what)) {
            said.gives = said.gives || renewed->adopt;
        }
        ends.sixteen(end);
        said.ends_differ = said.ends_differ || (at != order.front() && end != said.earliest_end);
        said.earliest_end = std::min(said.earliest_end, end);
    }
    said.words = runs.finish();
    said.ends = ends.text();
    return said;
}

core::answer refusal(errc why, std::string what) {
    return core::refused(why, std::move(what));
}

bool is_acquire(const core::entry& one) noexcept {
    return std::holds_alternative<core::acquire>(one.what);
}

// --- what is answered ----------------------------------------------------------------------------

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

std::optional<core::answer> fault_of(const core::verb& what) {
    if (auto fault = names::fault_of(core::key_of(what)); !fault.empty()) {
        return refusal(errc::invalid_key, std::move(fault));
    }
    if (const auto fault = core::fault_of(what); !fault.empty()) {
        return refusal(errc::invalid_argument, std::string{fault});
    }
    const auto* asked = std::get_if<core::acquire>(&what);
    if (asked != nullptr && asked->floor >= fence_limit) {
        return refusal(errc::invalid_argument, "a fence of this store has at most 53 bits");
    }
    return std::nullopt;
}

std::vector<std::uint32_t> order_of(std::span<const core::entry> batch,
                                    std::span<const std::uint32_t> which) {
    std::vector<std::uint32_t> order;
    order.reserve(which.size());
    for (const bool acquires : {false, true}) {
        for (const auto at : which) {
            if (is_acquire(batch[at]) == acquires) {
                order.push_back(at);
            }
        }
    }
    return order;
}

std::size_t bytes_to_keep(const core::verb& what) noexcept {
    const auto* payload = core::payload_of(what);
    return payload == nullptr ? 0 : payload->size();
}

void write_batch(std::string& out,
                 send_as how,
                 const names& where,
                 const caller& self,
                 std::span<const core::entry> batch,
                 std::span<const std::uint32_t> order) {
    const auto said = arguments_of(batch, order, self.takes_notices());
    const auto what = [&](std::size_t at) -> const core::verb& { return batch[order[at]].what; };
    write_call(
        out,
        how,
        where,
        self,
        order.size(),
        said,
        [&](std::size_t at) -> const std::string& { return core::key_of(what(at)); },
        [&](std::size_t at) { return holder_of(what(at)); });
    command_writer writer{out};
    for (const auto at : order) {
        if (const auto* payload = core::payload_of(batch[at].what)) {
            writer.word(*payload);
        }
    }
}

void write_looks(std::string& out,
                 send_as how,
                 const names& where,
                 const caller& self,
                 std::span<const std::string> keys) {
    arguments said;
    said.words = "q";
    said.brief = false;
    write_call(
        out,
        how,
        where,
        self,
        keys.size(),
        said,
        [&](std::size_t at) -> const std::string& { return keys[at]; },
        [](std::size_t) { return core::holder_id{}; });
}

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

// --- refusals ------------------------------------------------------------------------------------

namespace {

struct known_refusal {
    std::string_view begins;
    errc code;
    std::string_view means;
};

constexpr std::array known_refusals{
    known_refusal{"OOM", errc::store_refused, "the server's memory is full (maxmemory)"},
    known_refusal{"WRONGTYPE", errc::invalid_key, "the key holds something that is no lock"},
    known_refusal{"READONLY",
                  errc::store_refused,
                  "the server is a replica, which takes no writes"},
    known_refusal{"LOADING", errc::store_busy, "the server is loading its data"},
    known_refusal{"BUSY", errc::store_busy, "the server is busy with somebody's script"},
    known_refusal{"MISCONF", errc::store_refused, "the server cannot save to its disk"},
    known_refusal{"NOREPLICAS", errc::store_refused, "the server has too few replicas"},
    known_refusal{"MASTERDOWN", errc::store_refused, "the server is a replica without its primary"},
    known_refusal{"CLUSTERDOWN", errc::store_refused, "the cluster is down"},
    known_refusal{"MOVED", errc::unsupported, "a Redis Cluster is not supported yet"},
    known_refusal{"ASK", errc::unsupported, "a Redis Cluster is not supported yet"},
    known_refusal{"CROSSSLOT", errc::unsupported, "a Redis Cluster is not supported yet"},
    known_refusal{"NOSCRIPT", errc::store_refused, "the server forgot the script again and again"},
    known_refusal{"NOPERM", errc::permission_denied, "the server's ACL lacks a right"},
    known_refusal{"NOAUTH", errc::permission_denied, "the server asks for a password"},
};

}  // namespace

bool surely_not_executed(std::string_view text) noexcept {
    const bool known = std::any_of(known_refusals.begin(),
                                   known_refusals.end(),
                                   [&](const auto& one) { return text.starts_with(one.begins); });
    // The rights of the commands inside of the script, and those that were renamed; the first ones
    // are asked for before any entry.
    return known || text.starts_with("DIBSFORMAT") ||
           text.find("ACL failure in script") != std::string_view::npos ||
           text.find("can't run this command") != std::string_view::npos ||
           text.find("command called from") != std::string_view::npos ||
           text.starts_with("ERR unknown command");
}

core::answer answer_to_error(std::string_view text, bool wrote) {
    if (wrote) {
        return core::in_doubt("the server failed half-way: " + core::printable(text));
    }
    if (text.starts_with("DIBSFORMAT")) {
        return refusal(errc::newer_format,
                       "the record has format " + core::printable(text.substr(11)) +
                           ", this release knows 1; update dibs on this host");
    }
    if (text.starts_with("DIBSFENCE")) {
        return refusal(errc::invalid_argument, "the fence would not fit in 53 bits");
    }
    for (const auto& one : known_refusals) {
        if (text.starts_with(one.begins)) {
            return refusal(one.code, std::string{one.means} + ": " + core::printable(text));
        }
    }
    if (text.find("ACL failure in script") != std::string_view::npos ||
        text.find("can't run this command") != std::string_view::npos) {
        return refusal(errc::permission_denied,
                       "the server's ACL lacks a right: " + core::printable(text));
    }
    return refusal(errc::store_refused, "the server refused: " + core::printable(text));
}

}  // namespace dibs::store::redis
