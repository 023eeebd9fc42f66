// SPDX-License-Identifier: Apache-2.0
#include "store/redis/steps.hpp"

#include "core/key.hpp"
#include "store/redis/party_text.hpp"
#include "store/redis/script.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

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

class words {
  public:
    explicit words(char verb) { text_ += verb; }
    words& add(std::string_view word) {
        text_ += ' ';
        text_ += word;
        return *this;
    }
    words& add(std::int64_t number) {
        std::array<char, 24> digits{};
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
    words& ttl(microseconds time) { return add(std::min(time.count(), duration_max)); }
    words& add(core::attachment how) { return add(how == core::attachment::attached ? "a" : "d"); }
    words& flag(bool set) { return add(set ? "1" : "0"); }
    words& result(const std::optional<core::result_to_keep>& what) {
        return add(what ? what->fresh : microseconds{}).add(what ? what->keep : microseconds{});
    }
    [[nodiscard]] std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

struct spelled {
    std::string words;
    std::string_view payload;
};

spelled spell(const core::acquire& asked) {
    words said{'a'};
    said.add(asked.holder.text())
        .ttl(asked.ttl)
        .add(std::int64_t{asked.fences})
        .add(asked.floor)
        .add(std::int64_t{asked.part.capacity})
        .add(asked.attached)
        .add(asked.seen)
        .add(asked.not_after
                 ? std::max(asked.not_after->time_since_epoch().count(), std::int64_t{0})
                 : std::int64_t{-1})
        .flag(asked.mark.has_value())
        .result(asked.mark);
    return {said.take(), asked.mark ? std::string_view{asked.mark->value} : std::string_view{}};
}

spelled spell(const core::renew& asked) {
    words said{'n'};
    said.add(asked.holder.text()).ttl(asked.ttl).add(std::int64_t{asked.fences});
    if (asked.adopt) {
        said.add(asked.adopt->holder.text()).add(asked.adopt->attached);
    } else {
        said.add("-").add("a");
    }
    return {said.take(), {}};
}

spelled spell(const core::release& asked) {
    words said{'r'};
    said.add(asked.holder.text())
        .flag(asked.result.has_value())
        .flag(asked.late)
        .result(asked.result);
    return {said.take(), asked.result ? std::string_view{asked.result->value} : std::string_view{}};
}

spelled spell(const core::revoke& asked) {
    words said{'v'};
    said.add(asked.fence <= fence_limit ? asked.fence : core::fence_number{0});
    return {said.take(), {}};
}

spelled spell(const core::block& asked) {
    words said{'b'};
    said.add(asked.duration);
    return {said.take(), asked.reason};
}

void write_call(std::string& out, send_as how, std::size_t entries) {
    command_writer writer{out};
    writer.begin(3 + 2 * entries + 2 + 2 * entries);
    writer.word(how == send_as::name ? "EVALSHA" : "EVAL");
    writer.word(how == send_as::name ? script_name() : script_text());
    writer.word(static_cast<std::int64_t>(2 * entries));
}

core::answer refusal(errc why, std::string what) {
    return core::refused(why, std::move(what));
}

std::string fault_of(const core::acquire& asked) {
    if (asked.holder.empty()) {
        return "no holder id";
    }
    if (asked.ttl <= microseconds{0}) {
        return "the ttl is not positive";
    }
    if (asked.part.weight == 0 || asked.part.weight > asked.part.capacity) {
        return "the weight is not between 1 and the capacity";
    }
    if (asked.mark && (asked.mark->fresh < microseconds{0} || asked.mark->keep < microseconds{0})) {
        return "a mark cannot be kept for less than no time";
    }
    return asked.floor >= fence_limit ? "a fence of this store has at most 53 bits" : "";
}

std::string fault_of(const core::renew& asked) {
    if (asked.ttl <= microseconds{0}) {
        return "the ttl is not positive";
    }
    return asked.adopt && asked.adopt->holder.empty() ? "no holder id to adopt the lease" : "";
}

std::string fault_of(const core::release& asked) {
    const auto& result = asked.result;
    return result && (result->fresh < microseconds{0} || result->keep < microseconds{0})
               ? "a result cannot be kept for less than no time"
               : "";
}

std::string fault_of(const core::revoke& /*asked*/) {
    return "";
}

std::string fault_of(const core::block& asked) {
    return asked.duration < microseconds{0} ? "a hold cannot last for less than no time" : "";
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

std::optional<core::kept_result> result_of(const node& value,
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

std::vector<core::holder_info> holders_of(const node& value,
                                          std::int64_t expires,
                                          moment when,
                                          const caller& self) {
    std::vector<core::holder_info> holders;
    if (value.what == kind::null) {
        return holders;
    }
    core::holder_info one;
    one.remaining = when.left(expires);
    if (auto ours = parse_lock(value.text)) {
        one.who = std::move(ours->who);
        one.fences = ours->fences;
        one.attached = ours->attached;
        one.held_for = microseconds{std::max(when.now - ours->granted_us, std::int64_t{0})};
        one.self = ours->process == self.process;
    } else {
        one.who.command = "(a lock of another program)";
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

using parts = std::array<const node*, 10>;

core::answer answer_of(const parts& told,
                       std::uint32_t count,
                       moment when,
                       const caller& self,
                       core::fence_number seen) {
    const char code = told[0]->text.empty() ? '?' : told[0]->text.front();
    if (code == 'e') {
        return answer_to_error(told[1]->text, count > 2 && number_of(*told[2]) != 0);
    }
    core::answer made;
    made.took = effect::yes;
    made.now = when.as_now();
    if (count >= 6) {
        made.result = result_of(*told[4], *told[5], when, seen);
    }
    made.waiters = count >= 7 && number_of(*told[6]) > 0;
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
            if (!made.holders.empty()) {
                made.retry_after = made.holders.front().remaining;
            }
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
            auto differs =
                refusal(errc::capacity_differs, "the holder of the key took it for itself alone");
            differs.result = std::move(made.result);
            return differs;
        }
        case 'u': {
            auto alone = refusal(errc::unsupported,
                                 "this store has no shared leases yet: a key has one holder");
            alone.result = std::move(made.result);
            return alone;
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
            return 10;
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

core::fence_number seen_by(const core::verb& what) noexcept {
    const auto* asked = std::get_if<core::acquire>(&what);
    return asked == nullptr ? 0 : asked->seen;
}

}  // namespace

std::optional<core::answer> fault_of(const core::verb& what) {
    if (auto fault = names::fault_of(core::key_of(what)); !fault.empty()) {
        return refusal(errc::invalid_key, std::move(fault));
    }
    auto fault = std::visit([](const auto& asked) { return fault_of(asked); }, what);
    if (!fault.empty()) {
        return refusal(errc::invalid_argument, std::move(fault));
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

void write_batch(std::string& out,
                 send_as how,
                 const names& where,
                 const caller& self,
                 std::span<const core::entry> batch,
                 std::span<const std::uint32_t> order) {
    write_call(out, how, order.size());
    command_writer writer{out};
    for (const auto at : order) {
        const auto& key = core::key_of(batch[at].what);
        writer.word(where.lock(key));
        writer.word(where.rest(key));
    }
    writer.word(self.process);
    writer.word(self.who);
    for (const auto at : order) {
        const auto said =
            std::visit([](const auto& asked) { return spell(asked); }, batch[at].what);
        writer.word(said.words);
        writer.word(said.payload);
    }
}

void write_looks(std::string& out,
                 send_as how,
                 const names& where,
                 const caller& self,
                 std::span<const std::string> keys) {
    write_call(out, how, keys.size());
    command_writer writer{out};
    for (const auto& key : keys) {
        writer.word(where.lock(key));
        writer.word(where.rest(key));
    }
    writer.word(self.process);
    writer.word(self.who);
    for (std::size_t at = 0; at < keys.size(); ++at) {
        writer.word("q");
        writer.word("");
    }
}

bool read_batch(const reply& told,
                const caller& self,
                std::span<const core::entry> batch,
                std::span<const std::uint32_t> order,
                std::span<core::answer> answers) {
    walk at{told};
    moment when;
    if (!take_head(at, order.size(), when)) {
        return false;
    }
    for (const auto entry : order) {
        parts part{};
        std::uint32_t count = 0;
        if (!take_parts(at, part, count)) {
            return false;
        }
        answers[entry] = answer_of(part, count, when, self, seen_by(batch[entry].what));
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
        info.result = result_of(*part[4], *part[5], when, 0);
        info.waiters = static_cast<std::uint32_t>(number_of(*part[6]));
        info.fence = fence_of(*part[7]);
        const auto blocked = number_of(*part[8]);
        if (blocked < 0 || blocked > when.now) {
            info.blocked_for = when.left(blocked);
            info.blocked_reason = part[9]->text;
        }
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
    known_refusal{"LOADING", errc::store_refused, "the server is loading its data"},
    known_refusal{"BUSY", errc::store_refused, "the server is busy with somebody's script"},
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
    // The rights of the commands inside of the script; the first ones are asked for before any
    // entry.
    return known || text.find("ACL failure in script") != std::string_view::npos ||
           text.find("can't run this command") != std::string_view::npos ||
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
