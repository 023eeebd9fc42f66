// SPDX-License-Identifier: Apache-2.0
#include "checker/reader.hpp"

#include "checker/builder.hpp"
#include "checker/grammar.hpp"

#include <nlohmann/json.hpp>

#include <limits>
#include <string>

namespace dibs_checker {
namespace {

/// Takes the parts of one line as the parser comes across them. A tree would lose what the second
/// of two equal fields said.
class line_sink final : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit line_sink(history_builder& into) : into_(into) {}

    void begin(std::uint32_t line) {
        into_.begin(line);
        op_.clear();
        phase_.clear();
        depth_ = 0;
        closed_ = false;
    }
    /// The line is over: what its words mean.
    bool end() {
        if (!closed_) {
            return into_.complain("not a JSON object");
        }
        if (op_.empty()) {
            return into_.complain("field \"op\" is missing");
        }
        const auto what = op_named(op_);
        if (!what) {
            return into_.complain("unknown op \"" + op_ + "\"");
        }
        const auto ph = phase_.empty() ? phase::none : phase_named(phase_);
        if (!ph) {
            return into_.complain("unknown ph \"" + phase_ + "\"");
        }
        into_.kind(*what, *ph);
        return into_.end();
    }

    bool start_object(std::size_t) override {
        return ++depth_ == 1 || into_.complain("an object within the event");
    }
    bool end_object() override {
        --depth_;
        closed_ = true;
        return true;
    }
    bool key(string_t& name) override {
        const auto found = field_named(name);
        return found ? into_.field_begins(*found)
                     : into_.complain("unknown field \"" + name + "\"");
    }
    bool null() override { return in_object() ? into_.null() : no_object(); }
    bool boolean(bool value) override { return in_object() ? into_.boolean(value) : no_object(); }
    bool number_integer(number_integer_t value) override {
        return in_object() ? into_.number(value) : no_object();
    }
    bool number_unsigned(number_unsigned_t value) override {
        const bool fits =
            value <= static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
        return !in_object() ? no_object()
               : fits       ? into_.number(static_cast<std::int64_t>(value))
                            : into_.out_of_range();
    }
    bool number_float(number_float_t, const string_t&) override {
        return into_.complain("numbers are whole");
    }
    bool string(string_t& text) override {
        if (!in_object()) {
            return no_object();
        }
        const bool is_op = into_.current() == field::op;
        if ((is_op || into_.current() == field::ph) && !text.empty()) {
            (is_op ? op_ : phase_) = text;
            return true;
        }
        return into_.text(text);
    }
    bool binary(binary_t&) override { return into_.wrong_type(); }
    bool start_array(std::size_t) override {
        return in_object() ? into_.array_begins() : no_object();
    }
    bool end_array() override {
        into_.array_ends();
        return true;
    }
    bool parse_error(std::size_t where,
                     const std::string&,
                     const nlohmann::detail::exception&) override {
        return into_.complain("not a JSON object (at byte " + std::to_string(where) + ")");
    }

  private:
    [[nodiscard]] bool in_object() const noexcept { return depth_ == 1; }
    bool no_object() { return into_.complain("not a JSON object"); }

    history_builder& into_;
    std::string op_;
    std::string phase_;
    int depth_ = 0;
    bool closed_ = false;
};

bool is_blank(const std::string& line) {
    return line.find_first_not_of(" \t\r") == std::string::npos;
}

}  // namespace

history read_history(std::istream& from) {
    history_builder made;
    line_sink sink{made};
    std::string line;
    std::uint32_t number = 0;
    while (std::getline(from, line)) {
        ++number;
        if (is_blank(line)) {
            continue;
        }
        sink.begin(number);
        if (!nlohmann::json::sax_parse(line, &sink) || !sink.end()) {
            throw bad_history(number, made.complaint());
        }
    }
    if (from.bad()) {
        throw bad_history(number, "cannot be read");
    }
    if (made.so_far().events.empty()) {
        throw bad_history(number, "the history is empty");
    }
    auto whole = made.take();
    assemble(whole);
    return whole;
}

}  // namespace dibs_checker
