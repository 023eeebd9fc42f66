// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/postgres/rows.hpp"

#include <new>

namespace dibs::simulation::postgres {

namespace {

using store::postgres::result_ptr;

void append(std::string& to, std::uint64_t value, int bytes) {
    for (auto shift = bytes * 8 - 8; shift >= 0; shift -= 8) {
        to += static_cast<char>((value >> shift) & 0xFFU);
    }
}

/// `count` elements of this type follow.
std::string array_of(std::uint32_t type, std::size_t count) {
    std::string bytes;
    append(bytes, count == 0 ? 0 : 1, 4);
    append(bytes, 0, 4);
    append(bytes, type, 4);
    if (count > 0) {
        append(bytes, count, 4);
        append(bytes, 1, 4);
    }
    return bytes;
}

/// An empty result of so many columns, made once.
const PGresult& form(int columns) {
    const auto make = [](int count) {
        result_ptr made{::PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK)};
        char name[] = "column";
        std::vector<PGresAttDesc> all(static_cast<std::size_t>(count));
        for (auto& one : all) {
            one.name = name;
            one.format = 1;
            one.typlen = -1;
        }
        if (!made || ::PQsetResultAttrs(made.get(), count, all.data()) == 0) {
            throw std::bad_alloc{};
        }
        return made;
    };
    static std::vector<result_ptr> known(32);
    auto& one = known.at(static_cast<std::size_t>(columns));
    if (!one) {
        one = make(columns);
    }
    return *one;
}

}  // namespace

rows::rows(int columns) : made_(::PQcopyResult(&form(columns), PG_COPYRES_ATTRS)) {
    if (!made_) {
        throw std::bad_alloc{};
    }
}

void rows::text(int column, std::string_view value) {
    // libpq copies it, whatever its signature says.
    if (::PQsetvalue(made_.get(),
                     row_,
                     column,
                     const_cast<char*>(value.data()),
                     static_cast<int>(value.size())) == 0) {
        throw std::bad_alloc{};
    }
}

void rows::number(int column, std::int64_t value) {
    std::string bytes;
    append(bytes, static_cast<std::uint64_t>(value), 8);
    text(column, bytes);
}

void rows::truth(int column, bool value) {
    const char byte = value ? 1 : 0;
    text(column, {&byte, 1});
}

void rows::numbers(int column, const std::vector<std::int64_t>& values) {
    auto bytes = array_of(20, values.size());
    for (const auto one : values) {
        append(bytes, 8, 4);
        append(bytes, static_cast<std::uint64_t>(one), 8);
    }
    text(column, bytes);
}

void rows::texts(int column, const std::vector<std::string>& values) {
    auto bytes = array_of(25, values.size());
    for (const auto& one : values) {
        append(bytes, one.size(), 4);
        bytes += one;
    }
    text(column, bytes);
}

store::postgres::reply refused(std::string state, std::string words, bool fatal) {
    store::postgres::reply told;
    told.result.reset(::PQmakeEmptyPGresult(nullptr, PGRES_COMMAND_OK));
    told.error = store::postgres::server_error{std::move(state), std::move(words), fatal};
    return told;
}

}  // namespace dibs::simulation::postgres
