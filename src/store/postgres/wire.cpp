// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/wire.hpp"

namespace dibs::store::postgres {

namespace {

template <typename Number>
void append(std::string& to, Number value) {
    for (auto shift = static_cast<int>(sizeof(Number)) * 8 - 8; shift >= 0; shift -= 8) {
        to += static_cast<char>((static_cast<std::uint64_t>(value) >> shift) & 0xFFU);
    }
}

template <typename Number>
Number read(const char* from) noexcept {
    std::uint64_t value = 0;
    for (std::size_t at = 0; at < sizeof(Number); ++at) {
        value = value << 8U | static_cast<std::uint8_t>(from[at]);
    }
    return static_cast<Number>(value);
}

}  // namespace

void parameters::begin(bool is_null) {
    begins_.push_back(bytes_.size());
    nulls_.push_back(is_null);
}

void parameters::array(kind of, std::size_t count) {
    begin();
    append(bytes_, std::int32_t{count == 0 ? 0 : 1});
    append(bytes_, std::int32_t{1});  // there may be nulls
    append(bytes_, static_cast<std::int32_t>(of));
    if (count > 0) {
        append(bytes_, static_cast<std::int32_t>(count));
        append(bytes_, std::int32_t{1});
    }
}

void parameters::element(std::int64_t number) {
    append(bytes_, std::int32_t{8});
    append(bytes_, number);
}

void parameters::element(std::string_view bytes) {
    append(bytes_, static_cast<std::int32_t>(bytes.size()));
    bytes_ += bytes;
}

void parameters::null_element() {
    append(bytes_, std::int32_t{-1});
}

void parameters::number(std::int64_t value) {
    begin();
    append(bytes_, value);
}

void parameters::text(std::string_view value) {
    begin();
    bytes_ += value;
}

void parameters::truth(bool value) {
    begin();
    bytes_ += static_cast<char>(value ? 1 : 0);
}

void parameters::integer(std::int32_t value) {
    begin();
    append(bytes_, value);
}

void parameters::null() {
    begin(true);
}

parameters::view parameters::seen() const {
    view made;
    for (std::size_t at = 0; at < begins_.size(); ++at) {
        const auto end = at + 1 < begins_.size() ? begins_[at + 1] : bytes_.size();
        made.values.push_back(nulls_[at] ? nullptr : bytes_.data() + begins_[at]);
        made.lengths.push_back(static_cast<int>(end - begins_[at]));
        made.formats.push_back(1);
    }
    return made;
}

bool row::null(int column) const noexcept {
    return ::PQgetisnull(&of_, number_, column) != 0;
}

std::int64_t row::number(int column) const noexcept {
    return null(column) || ::PQgetlength(&of_, number_, column) != 8
               ? 0
               : read<std::int64_t>(::PQgetvalue(&of_, number_, column));
}

bool row::truth(int column) const noexcept {
    return !null(column) && *::PQgetvalue(&of_, number_, column) != 0;
}

std::string_view row::bytes(int column) const noexcept {
    return {::PQgetvalue(&of_, number_, column),
            static_cast<std::size_t>(::PQgetlength(&of_, number_, column))};
}

std::vector<std::int64_t> row::numbers(int column) const {
    std::vector<std::int64_t> all;
    for (const auto one : texts(column)) {
        all.push_back(one.size() == 8 ? read<std::int64_t>(one.data()) : 0);
    }
    return all;
}

std::vector<std::string_view> row::texts(int column) const {
    constexpr std::size_t head = 20;
    std::vector<std::string_view> all;
    const auto whole = bytes(column);
    if (null(column) || whole.size() < head || read<std::int32_t>(whole.data()) != 1) {
        return all;
    }
    const auto count = read<std::int32_t>(whole.data() + 12);
    auto rest = whole.substr(head);
    for (std::int32_t at = 0; at < count && rest.size() >= 4; ++at) {
        const auto size = read<std::int32_t>(rest.data());
        rest.remove_prefix(4);
        const auto length = size < 0 ? std::size_t{0} : static_cast<std::size_t>(size);
        if (length > rest.size()) {
            return {};
        }
        all.push_back(rest.substr(0, length));
        rest.remove_prefix(length);
    }
    return all;
}

}  // namespace dibs::store::postgres
