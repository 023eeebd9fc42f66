// SPDX-License-Identifier: Apache-2.0
#include "store/redis/resp.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

namespace dibs::store::redis {

namespace {

/// Longest line that is no text: a type, a number.
constexpr std::size_t head_max = 32;
/// Longest line of text.
constexpr std::size_t line_max = std::size_t{64} << 10U;

bool is_text_line(char type) noexcept {
    return type == '+' || type == '-' || type == ',' || type == '(';
}

/// Passed on as text: whoever wants the number reads it.
bool made_of(std::string_view text, std::string_view letters) noexcept {
    return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

/// As servers write it: no plus, no leading zero, no blank.
bool parse(std::string_view text, std::int64_t& number) noexcept {
    const auto digits = text.substr(text.starts_with('-') ? 1 : 0);
    if (digits.empty() || (digits.front() == '0' && text.size() > 1)) {
        return false;
    }
    const auto* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, number);
    return fault == std::errc{} && stop == end;
}

}  // namespace

std::span<char> reply_reader::room(std::size_t size) {
    if (begin_ == end_) {
        begin_ = 0;
        end_ = 0;
    }
    if (bytes_.size() - end_ < size && begin_ > 0) {
        std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    if (bytes_.size() - end_ < size) {
        bytes_.resize(std::max(end_ + size, bytes_.size() * 2));
    }
    return {bytes_.data() + end_, bytes_.size() - end_};
}

void reply_reader::feed(std::string_view bytes) {
    std::copy(bytes.begin(), bytes.end(), room(bytes.size()).begin());
    received(bytes.size());
}

reply_reader::state reply_reader::next() {
    if (std::exchange(complete_, false)) {
        begin_ += at_;
        start_over();
    }
    while (!broken_) {
        switch (read_node()) {
            case outcome::partial:
                if (end_ - begin_ > limits_.bytes) {
                    static_cast<void>(complain("a reply is too long"));
                    break;
                }
                return state::partial;
            case outcome::broken:
                break;
            case outcome::done:
                if (!spots_.empty() && open_.empty()) {
                    complete_ = true;
                    current_.clear();
                    for (const auto& one : spots_) {
                        current_.push_back(
                            {one.what,
                             one.number,
                             std::string_view{bytes_}.substr(begin_ + one.at, one.size),
                             one.children});
                    }
                    return state::complete;
                }
                break;
        }
    }
    return state::broken;
}

void reply_reader::start_over() noexcept {
    at_ = 0;
    looked_ = 0;
    spots_.clear();
    open_.clear();
    asides_.clear();
    aside_spots_.clear();
}

reply_reader::outcome reply_reader::complain(std::string what) {
    broken_ = true;
    fault_ = std::move(what);
    return outcome::broken;
}

// A node counts for its parent when it is complete; a parent that lacks nothing counts for its own.
void reply_reader::add(spot found) {
    const auto children = found.children;
    spots_.push_back(found);
    open(children);
}

void reply_reader::open(std::uint32_t children) {
    if (children > 0) {
        open_.push_back(children);
        return;
    }
    while (!open_.empty()) {
        if (--open_.back() > 0) {
            return;
        }
        open_.pop_back();
        if (!asides_.empty() && asides_.back() == open_.size()) {
            // An attribute is not part of the reply, and no child of anything.
            spots_.resize(aside_spots_.back());
            asides_.pop_back();
            aside_spots_.pop_back();
            return;
        }
    }
}

reply_reader::outcome reply_reader::read_node() {
    const auto seen = std::string_view{bytes_}.substr(begin_, end_ - begin_);
    const auto rest = seen.substr(std::min(at_, seen.size()));
    if (rest.empty()) {
        return outcome::partial;
    }
    const char type = rest.front();
    const auto longest = is_text_line(type) ? line_max : head_max;
    const auto from = std::max(at_, looked_);
    const auto end = seen.find('\r', from);
    const auto length = (end == std::string_view::npos ? seen.size() : end) - at_;
    if (length > longest) {
        return complain("a line is too long");
    }
    if (end == std::string_view::npos || end + 1 >= seen.size()) {
        looked_ = end == std::string_view::npos ? seen.size() : end;
        return std::string_view{"+-:$*_#,(!=~%>|"}.find(type) == std::string_view::npos
                   ? complain("a reply begins with an unknown character")
                   : outcome::partial;
    }
    if (seen[end + 1] != '\n') {
        return complain("a line does not end in CR LF");
    }
    const auto line = seen.substr(at_ + 1, end - at_ - 1);
    if (line.find('\n') != std::string_view::npos) {
        return complain("a line holds a line feed");
    }
    if (spots_.size() >= limits_.nodes) {
        return complain("a reply has too many parts");
    }
    const auto text_at = at_ + 1;
    const auto line_end = end + 2;
    const auto accept = [&](kind what, std::int64_t number) {
        at_ = line_end;
        add({what, number, text_at, line.size(), 0});
        return outcome::done;
    };
    std::int64_t number = 0;
    switch (type) {
        case '+':
            return accept(kind::simple, 0);
        case '-':
            return accept(kind::error, 0);
        case ',':
            return made_of(line, "0123456789+-.eEinfa") ? accept(kind::floating, 0)
                                                        : complain("a double is none");
        case '(':
            return made_of(line, "0123456789-") ? accept(kind::big, 0)
                                                : complain("a big number is none");
        case ':':
            return parse(line, number) ? accept(kind::integer, number)
                                       : complain("an integer is none");
        case '_':
            return line.empty() ? accept(kind::null, 0) : complain("a null has text");
        case '#':
            return line == "t" || line == "f" ? accept(kind::boolean, line == "t" ? 1 : 0)
                                              : complain("a boolean is neither t nor f");
        case '$':
        case '=':
            return read_blob(kind::bulk, line);
        case '!':
            return read_blob(kind::error, line);
        case '*':
            return read_aggregate(kind::array, line, 1);
        case '~':
            return read_aggregate(kind::array, line, 1);
        case '%':
            return read_aggregate(kind::map, line, 2);
        case '>':
            return open_.empty() ? read_aggregate(kind::push, line, 1)
                                 : complain("a push is part of another reply");
        case '|':
            return read_attribute(line);
        default:
            return complain("a reply begins with an unknown character");
    }
}

reply_reader::outcome reply_reader::read_blob(kind what, std::string_view head) {
    const auto seen = std::string_view{bytes_}.substr(begin_, end_ - begin_);
    const char type = seen[at_];
    std::int64_t size = 0;
    if (!parse(head, size) || size < -1 || (size == -1 && type != '$')) {
        return complain("a length is none");
    }
    auto from = at_ + 1 + head.size() + 2;
    if (size == -1) {
        at_ = from;
        looked_ = from;
        add({kind::null, 0, from, 0, 0});
        return outcome::done;
    }
    auto length = static_cast<std::size_t>(size);
    if (length > limits_.bytes || from + length + 2 > limits_.bytes) {
        return complain("a reply is too long");
    }
    if (seen.size() < from + length + 2) {
        return outcome::partial;
    }
    if (seen.substr(from + length, 2) != "\r\n") {
        return complain("a text does not end where it should");
    }
    at_ = from + length + 2;
    looked_ = at_;
    if (type == '=') {
        if (length < 4 || seen[from + 3] != ':') {
            return complain("a verbatim text does not say its kind");
        }
        from += 4;
        length -= 4;
    }
    add({what, 0, from, length, 0});
    return outcome::done;
}

reply_reader::outcome reply_reader::read_aggregate(kind what,
                                                   std::string_view head,
                                                   std::uint32_t per_item) {
    const auto line_end = at_ + 1 + head.size() + 2;
    std::int64_t count = 0;
    const bool may_be_null = what == kind::array && bytes_[begin_ + at_] == '*';
    if (!parse(head, count) || count < -1 || (count == -1 && !may_be_null) ||
        (count == 0 && what == kind::push)) {
        return complain("a count is none");
    }
    if (count > static_cast<std::int64_t>(limits_.nodes / per_item)) {
        return complain("a reply has too many parts");
    }
    if (count > 0 && open_.size() >= limits_.depth) {
        return complain("a reply is too deep");
    }
    at_ = line_end;
    looked_ = line_end;
    if (count == -1) {
        add({kind::null, 0, line_end, 0, 0});
    } else {
        add({what, 0, line_end, 0, static_cast<std::uint32_t>(count) * per_item});
    }
    return outcome::done;
}

reply_reader::outcome reply_reader::read_attribute(std::string_view head) {
    std::int64_t count = 0;
    if (!parse(head, count) || count < 1 || count > static_cast<std::int64_t>(limits_.nodes / 2)) {
        return complain("a count is none");
    }
    if (open_.size() >= limits_.depth) {
        return complain("a reply is too deep");
    }
    at_ += 1 + head.size() + 2;
    looked_ = at_;
    asides_.push_back(open_.size());
    aside_spots_.push_back(spots_.size());
    open_.push_back(static_cast<std::uint32_t>(count) * 2);
    return outcome::done;
}

// --- commands ------------------------------------------------------------------------------------

namespace {

void append_number(std::string& out, std::int64_t number) {
    std::array<char, 24> digits{};
    const auto [end, fault] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    static_cast<void>(fault);
    out.append(digits.data(), end);
}

}  // namespace

void command_writer::begin(std::size_t words) {
    out_ += '*';
    append_number(out_, static_cast<std::int64_t>(words));
    out_ += "\r\n";
}

void command_writer::word(std::string_view text) {
    std::array<char, 24> head{'$'};
    auto* end = std::to_chars(head.data() + 1, head.data() + head.size() - 2, text.size()).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out_.append(head.data(), end);
    out_ += text;
    out_ += "\r\n";
}

void command_writer::word(std::int64_t number) {
    std::string text;
    append_number(text, number);
    word(text);
}

void write_command(std::string& out, std::span<const std::string_view> words) {
    command_writer writer{out};
    writer.begin(words.size());
    for (const auto word : words) {
        writer.word(word);
    }
}

void write_command(std::string& out, std::initializer_list<std::string_view> words) {
    write_command(out, std::span<const std::string_view>{words.begin(), words.size()});
}

}  // namespace dibs::store::redis
