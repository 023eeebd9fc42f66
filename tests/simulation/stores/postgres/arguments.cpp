// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/postgres/arguments.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace dibs::simulation::postgres {

namespace {

/// In the order of lease_execute_1 (schema.sql).
enum parameter : std::size_t {
    p_verb,
    p_key,
    p_holder,
    p_time,
    p_fences,
    p_floor,
    p_weight,
    p_capacity,
    p_flags,
    p_seen,
    p_not_after,
    p_queue,
    p_value,
    p_fresh,
    p_keep,
    p_adopter,
    p_reason,
    p_process,
    p_who,
    p_alone,
    p_patience,
    p_longest,
};

constexpr std::int64_t is_attached = 1;
constexpr std::int64_t is_late = 2;
constexpr std::int64_t adopter_is_attached = 4;
constexpr std::int64_t is_simple = 8;

using element = std::optional<std::string_view>;

std::int64_t big_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (const char one : bytes) {
        value = value << 8U | static_cast<std::uint8_t>(one);
    }
    return static_cast<std::int64_t>(value);
}

core::holder_id holder_in(const element& bytes) {
    core::holder_id holder;
    if (bytes && bytes->size() == holder.bytes.size()) {
        std::memcpy(holder.bytes.data(), bytes->data(), bytes->size());
    }
    return holder;
}

core::attachment attachment_of(bool attached) {
    return attached ? core::attachment::attached : core::attachment::detached;
}

/// The arrays, element by element.
class columns {
  public:
    explicit columns(const arguments& given) {
        for (std::size_t at = p_verb; at <= p_reason; ++at) {
            all_.push_back(given.array(at));
        }
    }

    [[nodiscard]] std::size_t count() const { return all_.front().size(); }
    [[nodiscard]] const element& at(parameter which, std::size_t entry) const {
        return all_.at(which).at(entry);
    }
    [[nodiscard]] std::int64_t number(parameter which, std::size_t entry) const {
        return big_endian(at(which, entry).value());
    }
    [[nodiscard]] core::microseconds time(parameter which, std::size_t entry) const {
        return core::microseconds{number(which, entry)};
    }
    [[nodiscard]] bool flag(std::size_t entry, std::int64_t which) const {
        return (number(p_flags, entry) & which) != 0;
    }
    [[nodiscard]] core::boxed<core::result_to_keep> result(std::size_t entry) const {
        const auto& value = at(p_value, entry);
        if (!value) {
            return std::nullopt;
        }
        core::result_to_keep kept;
        kept.value = *value;
        kept.fresh = time(p_fresh, entry);
        kept.keep = time(p_keep, entry);
        return kept;
    }

  private:
    std::vector<std::vector<element>> all_;
};

core::verb verb_of(const columns& given, std::size_t at) {
    const auto key = std::string{given.at(p_key, at).value()};
    const auto holder = holder_in(given.at(p_holder, at));
    switch (given.number(p_verb, at)) {
        case 1: {
            core::acquire asked;
            asked.key = key;
            asked.holder = holder;
            asked.ttl = given.time(p_time, at);
            asked.fences = static_cast<std::uint32_t>(given.number(p_fences, at));
            asked.floor = static_cast<core::fence_number>(given.number(p_floor, at));
            asked.part = {static_cast<std::uint32_t>(given.number(p_weight, at)),
                          static_cast<std::uint32_t>(given.number(p_capacity, at))};
            asked.attached = attachment_of(given.flag(at, is_attached));
            asked.mark = given.result(at);
            asked.seen = static_cast<core::fence_number>(given.number(p_seen, at));
            if (const auto& until = given.at(p_not_after, at)) {
                asked.not_after = core::store_instant{core::microseconds{big_endian(*until)}};
            }
            asked.queue = given.time(p_queue, at);
            return asked;
        }
        case 2: {
            core::renew asked;
            asked.key = key;
            asked.holder = holder;
            asked.ttl = given.time(p_time, at);
            asked.fences = static_cast<std::uint32_t>(given.number(p_fences, at));
            if (const auto& adopter = given.at(p_adopter, at)) {
                asked.adopt = core::renew::change{
                    holder_in(adopter), attachment_of(given.flag(at, adopter_is_attached))};
            }
            return asked;
        }
        case 3: {
            core::release asked;
            asked.key = key;
            asked.holder = holder;
            asked.result = given.result(at);
            asked.late = given.flag(at, is_late);
            return asked;
        }
        case 4: {
            core::revoke asked;
            asked.key = key;
            asked.fence = static_cast<core::fence_number>(given.number(p_fences, at));
            return asked;
        }
        case 5: {
            core::block asked;
            asked.key = key;
            asked.duration = given.time(p_time, at);
            asked.reason = given.at(p_reason, at).value_or("");
            return asked;
        }
        default:
            throw std::logic_error{"the store asks for what is no verb"};
    }
}

/// In the order of acquire_one.sql.
enum acquire_parameter : std::size_t {
    a_key,
    a_holder,
    a_time,
    a_fences,
    a_floor,
    a_attached,
    a_not_after,
    a_process,
    a_who,
};

/// In the order of step_some.sql.
enum some_parameter : std::size_t {
    s_verb,
    s_key,
    s_holder,
    s_time,
    s_fences,
    s_floor,
    s_attached,
    s_not_after,
    s_process,
    s_who,
};

/// In the order of release_one.sql.
enum release_parameter : std::size_t { r_key, r_holder, r_process };

}  // namespace

some_steps some_of(const arguments& given) {
    some_steps asked;
    const auto verbs = given.array(s_verb);
    const auto keys = given.array(s_key);
    const auto holders = given.array(s_holder);
    const auto times = given.array(s_time);
    const auto fences = given.array(s_fences);
    const auto floors = given.array(s_floor);
    const auto attached = given.array(s_attached);
    const auto not_after = given.array(s_not_after);
    for (std::size_t at = 0; at < verbs.size(); ++at) {
        const auto number = [at](const std::vector<element>& of) {
            return big_endian(of.at(at).value());
        };
        const std::string key{keys.at(at).value()};
        const auto holder = holder_in(holders.at(at));
        const core::microseconds ttl{number(times)};
        if (number(verbs) == 1) {
            core::acquire one;
            one.key = key;
            one.holder = holder;
            one.ttl = ttl;
            one.fences = static_cast<std::uint32_t>(number(fences));
            one.floor = static_cast<core::fence_number>(number(floors));
            one.attached = attachment_of(number(attached) == 1);
            if (const auto& until = not_after.at(at)) {
                one.not_after = core::store_instant{core::microseconds{big_endian(*until)}};
            }
            asked.all.emplace_back(std::move(one));
        } else if (number(verbs) == 2) {
            core::renew one;
            one.key = key;
            one.holder = holder;
            one.ttl = ttl;
            asked.all.emplace_back(std::move(one));
        } else {
            core::release one;
            one.key = key;
            one.holder = holder;
            asked.all.emplace_back(std::move(one));
        }
    }
    asked.process = given.text(s_process);
    asked.who = given.text(s_who);
    return asked;
}

one_step acquire_one_of(const arguments& given) {
    core::acquire asked;
    asked.key = given.text(a_key);
    asked.holder = holder_in(given.text(a_holder));
    asked.ttl = core::microseconds{given.number(a_time)};
    asked.fences = static_cast<std::uint32_t>(given.number(a_fences));
    asked.floor = static_cast<core::fence_number>(given.number(a_floor));
    asked.attached = attachment_of(given.truth(a_attached));
    if (!given.null(a_not_after)) {
        asked.not_after = core::store_instant{core::microseconds{given.number(a_not_after)}};
    }
    return {std::move(asked), std::string{given.text(a_process)}, std::string{given.text(a_who)}};
}

one_step release_one_of(const arguments& given) {
    core::release asked;
    asked.key = given.text(r_key);
    asked.holder = holder_in(given.text(r_holder));
    return {std::move(asked), std::string{given.text(r_process)}, {}};
}

std::string_view arguments::text(std::size_t at) const {
    return {seen_.values.at(at), static_cast<std::size_t>(seen_.lengths.at(at))};
}

std::int64_t arguments::number(std::size_t at) const {
    return big_endian(text(at));
}

std::vector<element> arguments::array(std::size_t at) const {
    // Dimensions, whether there are nulls, type; count and lower bound of the one dimension.
    auto rest = text(at);
    const auto take = [&](std::size_t size) {
        const auto taken = rest.substr(0, size);
        if (taken.size() != size) {
            throw std::logic_error{"the store does not keep to the protocol"};
        }
        rest.remove_prefix(size);
        return taken;
    };
    const auto dimensions = big_endian(take(4));
    static_cast<void>(take(8));
    std::vector<element> all;
    if (dimensions == 0) {
        return all;
    }
    all.resize(static_cast<std::size_t>(big_endian(take(4))));
    static_cast<void>(take(4));
    for (auto& one : all) {
        const auto size = static_cast<std::int32_t>(big_endian(take(4)));
        if (size >= 0) {
            one = take(static_cast<std::size_t>(size));
        }
    }
    return all;
}

batch batch_of(const arguments& given) {
    const columns all{given};
    batch asked;
    asked.entries.reserve(all.count());
    for (std::size_t at = 0; at < all.count(); ++at) {
        asked.entries.push_back({verb_of(all, at), all.flag(at, is_simple)});
    }
    asked.process = given.text(p_process);
    asked.who = given.text(p_who);
    asked.alone = given.truth(p_alone);
    asked.longest = given.number(p_longest);
    return asked;
}

}  // namespace dibs::simulation::postgres
