// SPDX-License-Identifier: Apache-2.0
#include "checker/writer.hpp"

#include "checker/check_id.hpp"
#include "checker/grammar.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <string_view>

namespace dibs_checker {
namespace {

class line_writer {
  public:
    line_writer(const history& all, std::string& into) : all_(all), into_(into) {}

    void write(const event& one_of) {
        into_ += '{';
        for (auto left = one_of.present; left != 0; left &= left - 1) {
            const auto which = static_cast<field>(std::countr_zero(left));
            into_ += into_.back() == '{' ? "\"" : ",\"";
            into_ += rule_of(which).name;
            into_ += "\":";
            write_value(one_of, which);
        }
        into_ += "}\n";
    }

  private:
    void write_value(const event& of, field which) {
        if (which == field::op) {
            write_text(name_of(of.what));
            return;
        }
        if (which == field::ph) {
            write_text(name_of(of.ph));
            return;
        }
        switch (rule_of(which).type) {
            case field_type::integer:
                write_number(of[which]);
                break;
            case field_type::boolean:
                into_ += of[which] != 0 ? "true" : "false";
                break;
            case field_type::text:
            case field_type::word:
                write_text(all_.text(of, which));
                break;
            case field_type::value:
                write_register(of[which]);
                break;
            case field_type::value_array:
                write_array(all_.arrays[static_cast<std::size_t>(of[which])]);
                break;
            case field_type::check_array:
                write_checks(of[which]);
                break;
        }
    }

    void write_number(std::int64_t value) {
        std::array<char, 24> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
        into_.append(digits.data(), end);
    }

    void write_text(std::string_view text) {
        constexpr std::string_view digits = "0123456789abcdef";
        into_ += '"';
        for (const char letter : text) {
            const auto code = static_cast<unsigned char>(letter);
            if (code < 0x20U) {
                into_ += "\\u00";
                into_ += digits[code >> 4U];
                into_ += digits[code & 15U];
                continue;
            }
            if (letter == '"' || letter == '\\') {
                into_ += '\\';
            }
            into_ += letter;
        }
        into_ += '"';
    }

    /// A text stands in its quotes there.
    void write_register(std::int64_t value) {
        const auto shown = all_.value_text(value);
        if (shown.front() == '"') {
            write_text(std::string_view{shown}.substr(1, shown.size() - 2));
        } else {
            into_ += shown;
        }
    }

    void write_array(const std::vector<std::int64_t>& values) {
        into_ += '[';
        for (const auto value : values) {
            into_ += into_.back() == '[' ? "" : ",";
            write_register(value);
        }
        into_ += ']';
    }

    void write_checks(std::int64_t bits) {
        into_ += '[';
        for (std::size_t number = 1; number <= check_count; ++number) {
            const auto which = static_cast<check_id>(number);
            if ((bits & excuse_bit(which)) != 0) {
                into_ += into_.back() == '[' ? "" : ",";
                write_text(name_of(which));
            }
        }
        into_ += ']';
    }

    const history& all_;
    std::string& into_;
};

}  // namespace

std::string lines_of(const history& all, position first) {
    std::string made;
    line_writer writer{all, made};
    for (auto at = first; at < all.events.size(); ++at) {
        writer.write(all.events[at]);
    }
    return made;
}

}  // namespace dibs_checker
