// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/row_state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace dibs::store::sqlite {

namespace {

constexpr std::uint32_t flag_held = 1;
constexpr std::uint32_t flag_attached = 2;

template <typename Number>
Number big_endian(Number value) noexcept {
    if constexpr (std::endian::native == std::endian::big) {
        return value;
    } else if constexpr (sizeof(Number) == 8) {
        return __builtin_bswap64(value);
    } else {
        return __builtin_bswap32(value);
    }
}

template <typename Number>
void put(state_bytes& to, std::size_t at, Number value) noexcept {
    const auto ordered = big_endian(static_cast<std::make_unsigned_t<Number>>(value));
    std::memcpy(to.data() + at, &ordered, sizeof ordered);
}

template <typename Number>
Number get(const state_bytes& from, std::size_t at) noexcept {
    std::make_unsigned_t<Number> ordered{};
    std::memcpy(&ordered, from.data() + at, sizeof ordered);
    return static_cast<Number>(big_endian(ordered));
}

core::store_instant lease_time(std::int64_t micros) noexcept {
    return core::store_instant{core::microseconds{micros}};
}

}  // namespace

state_bytes pack(core::fence_number fence, const core::grant* first, std::int64_t boot) noexcept {
    state_bytes packed{};
    put(packed, 0, fence);
    if (first == nullptr) {
        return packed;
    }
    const bool attached = first->attached == core::attachment::attached;
    put(packed, 8, flag_held | (attached ? flag_attached : 0U));
    put(packed, 12, first->weight);
    std::copy(first->holder.bytes.begin(), first->holder.bytes.end(), packed.begin() + 16);
    put(packed, 32, first->fences.first);
    put(packed, 40, first->fences.last);
    put(packed, 48, std::int64_t{first->granted.time_since_epoch().count()});
    put(packed, 56, std::int64_t{first->expires.time_since_epoch().count()});
    put(packed, 64, boot);
    put(packed, 72, first->process);
    return packed;
}

row_state unpack(const state_bytes& packed) noexcept {
    row_state state;
    state.fence = get<std::uint64_t>(packed, 0);
    const auto flags = get<std::uint32_t>(packed, 8);
    state.held = (flags & flag_held) != 0;
    if (!state.held) {
        return state;
    }
    auto& first = state.first;
    first.attached =
        (flags & flag_attached) != 0 ? core::attachment::attached : core::attachment::detached;
    first.weight = get<std::uint32_t>(packed, 12);
    std::copy_n(packed.begin() + 16, first.holder.bytes.size(), first.holder.bytes.begin());
    first.fences = {get<std::uint64_t>(packed, 32), get<std::uint64_t>(packed, 40)};
    first.granted = lease_time(get<std::int64_t>(packed, 48));
    first.expires = lease_time(get<std::int64_t>(packed, 56));
    state.boot = get<std::int64_t>(packed, 64);
    first.process = get<std::uint64_t>(packed, 72);
    return state;
}

}  // namespace dibs::store::sqlite
