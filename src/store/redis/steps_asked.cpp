// SPDX-License-Identifier: Apache-2.0
// Batches as calls of batch.lua.
#include "core/payload.hpp"
#include "core/verb_fault.hpp"
#include "store/redis/script.hpp"
#include "store/redis/steps.hpp"
#include "store/redis/steps_parts.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>

namespace dibs::store::redis {

namespace {

using core::microseconds;

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

}  // namespace dibs::store::redis
