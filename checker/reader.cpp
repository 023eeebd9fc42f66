// SPDX-License-Identifier: Apache-2.0
#include "checker/reader.hpp"

#include "checker/check_id.hpp"
#include "checker/grammar.hpp"

#include <nlohmann/json.hpp>

#include <bit>
#include <optional>

namespace dibs_checker {
namespace {

/// Takes the parts of one line as the parser comes across them. A tree would lose what the second
/// of two equal fields said.
class line_sink final : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit line_sink(history& into) : into_(into) {}

    void begin(std::uint32_t line) {
        event_ = event{};
        event_.line = line;
        complaint_.clear();
        depth_ = 0;
        in_array_ = false;
        closed_ = false;
    }
    [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }
    [[nodiscard]] bool closed() const noexcept { return closed_; }
    [[nodiscard]] event& made() noexcept { return event_; }
    [[nodiscard]] const std::string& op_word() const noexcept { return op_; }
    [[nodiscard]] const std::string& phase_word() const noexcept { return phase_; }

    bool start_object(std::size_t) override {
        if (++depth_ > 1) {
            return complain("an object within the event");
        }
        op_.clear();
        phase_.clear();
        return true;
    }
    bool end_object() override {
        --depth_;
        closed_ = true;
        return true;
    }
    bool key(string_t& name) override {
        const auto found = field_named(name);
        if (!found) {
            return complain("unknown field \"" + name + "\"");
        }
        current_ = *found;
        if (event_.has(current_)) {
            return complain("field \"" + name + "\" occurs twice");
        }
        event_.present |= one(current_);
        return true;
    }
    bool null() override {
        if (!in_object() || in_array_ || type() != field_type::value) {
            return wrong_type();
        }
        event_[current_] = null_value;
        return true;
    }
    bool boolean(bool value) override {
        if (!in_object() || in_array_ || type() != field_type::boolean) {
            return wrong_type();
        }
        event_[current_] = value ? 1 : 0;
        return true;
    }
    bool number_integer(number_integer_t value) override {
        if (!in_object()) {
            return wrong_type();
        }
        if (type() == field_type::value || type() == field_type::value_array) {
            return take_value(std::to_string(value));
        }
        if (in_array_ || type() != field_type::integer) {
            return wrong_type();
        }
        if (value < rule_of(current_).smallest || value > largest_of(current_)) {
            return complain("field \"" + name() + "\" is out of range");
        }
        event_[current_] = value;
        return true;
    }
    bool number_unsigned(number_unsigned_t value) override {
        if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
            return complain("field \"" + name() + "\" is out of range");
        }
        return number_integer(static_cast<number_integer_t>(value));
    }
    bool number_float(number_float_t, const string_t&) override {
        return complain("numbers are whole");
    }
    bool string(string_t& text) override {
        if (!in_object()) {
            return wrong_type();
        }
        switch (type()) {
            case field_type::value:
            case field_type::value_array:
                // Quoted, so that the text "1" and the number 1 differ.
                return take_value('"' + text + '"');
            case field_type::check_array:
                return take_excuse(text);
            case field_type::word:
                if (text.empty()) {
                    return complain("field \"" + name() + "\" is empty");
                }
                [[fallthrough]];
            case field_type::text:
                break;
            default:
                return wrong_type();
        }
        if (in_array_) {
            return wrong_type();
        }
        if (current_ == field::op) {
            op_ = text;
        } else if (current_ == field::ph) {
            phase_ = text;
        } else {
            event_[current_] = into_.texts.id_of(text);
        }
        return true;
    }
    bool binary(binary_t&) override { return wrong_type(); }
    bool start_array(std::size_t) override {
        if (!in_object() || in_array_ ||
            (type() != field_type::value_array && type() != field_type::check_array)) {
            return wrong_type();
        }
        in_array_ = true;
        if (type() == field_type::value_array) {
            event_[current_] = static_cast<std::int64_t>(into_.arrays.size());
            into_.arrays.emplace_back();
        }
        return true;
    }
    bool end_array() override {
        in_array_ = false;
        return true;
    }
    bool parse_error(std::size_t where,
                     const std::string&,
                     const nlohmann::detail::exception&) override {
        return complain("not a JSON object (at byte " + std::to_string(where) + ")");
    }

  private:
    [[nodiscard]] bool in_object() const noexcept { return depth_ == 1; }
    [[nodiscard]] field_type type() const noexcept { return rule_of(current_).type; }
    [[nodiscard]] std::string name() const { return std::string{rule_of(current_).name}; }

    bool complain(std::string why) {
        complaint_ = std::move(why);
        return false;
    }
    bool wrong_type() {
        return complain(depth_ == 0 ? "not a JSON object"
                                    : "field \"" + name() + "\" has the wrong type");
    }
    bool take_value(const std::string& text) {
        if (in_array_ != (type() == field_type::value_array)) {
            return wrong_type();
        }
        const auto id = into_.texts.id_of(text);
        if (in_array_) {
            into_.arrays.back().push_back(id);
        } else {
            event_[current_] = id;
        }
        return true;
    }
    bool take_excuse(const std::string& text) {
        const auto which = check_named(text);
        if (!in_array_ || !which) {
            return complain("\"" + text + "\" is no check");
        }
        if (!may_be_excused(*which)) {
            return complain("no fault excuses " + text);
        }
        event_[current_] |= excuse_bit(*which);
        return true;
    }

    history& into_;
    event event_;
    std::string op_;
    std::string phase_;
    std::string complaint_;
    field current_ = field::seq;
    int depth_ = 0;
    bool in_array_ = false;
    bool closed_ = false;
};

void set_absent(event& of) {
    for (std::size_t index = 0; index < field_count; ++index) {
        const auto which = static_cast<field>(index);
        if (!of.has(which)) {
            of[which] = rule_of(which).absent;
        }
    }
    if (!of.has(field::fence_last)) {
        of[field::fence_last] = of[field::fence];
    }
}

/// Op, phase, and which fields they bring.
void classify(event& made, const std::string& op_word, const std::string& phase_word) {
    const auto complain = [&](const std::string& why) { throw bad_history(made.line, why); };
    if (!made.has(field::op)) {
        complain("field \"op\" is missing");
    }
    const auto what = op_named(op_word);
    if (!what) {
        complain("unknown op \"" + op_word + "\"");
    }
    made.what = *what;
    if (made.has(field::ph)) {
        const auto ph = phase_named(phase_word);
        if (!ph) {
            complain("unknown ph \"" + phase_word + "\"");
        }
        made.ph = *ph;
    }
    const auto& rule = rule_of(made.what, made.ph);
    if (!rule) {
        complain(made.ph == phase::none ? "\"" + op_word + "\" needs a ph"
                                        : "\"" + op_word + "\" has no ph \"" + phase_word + "\"");
    }
    if (const auto strange = made.present & ~rule->allowed; strange != 0) {
        const auto which = static_cast<field>(std::countr_zero(strange));
        complain("\"" + op_word + "\" has no field \"" + std::string{rule_of(which).name} + "\"" +
                 (phase_word.empty() ? "" : " at \"" + phase_word + "\""));
    }
    if (const auto missing = rule->required & ~made.present; missing != 0) {
        const auto which = static_cast<field>(std::countr_zero(missing));
        complain("field \"" + std::string{rule_of(which).name} + "\" is missing");
    }
    set_absent(made);
}

bool is_blank(const std::string& line) {
    return line.find_first_not_of(" \t\r") == std::string::npos;
}

}  // namespace

history read_history(std::istream& from) {
    history made;
    line_sink sink{made};
    std::string line;
    std::uint32_t number = 0;
    while (std::getline(from, line)) {
        ++number;
        if (is_blank(line)) {
            continue;
        }
        sink.begin(number);
        const bool parsed = nlohmann::json::sax_parse(line, &sink);
        if (!parsed || !sink.closed()) {
            throw bad_history(number,
                              sink.complaint().empty() ? "not a JSON object" : sink.complaint());
        }
        classify(sink.made(), sink.op_word(), sink.phase_word());
        made.events.push_back(sink.made());
    }
    if (from.bad()) {
        throw bad_history(number, "cannot be read");
    }
    if (made.events.empty()) {
        throw bad_history(number, "the history is empty");
    }
    assemble(made);
    return made;
}

}  // namespace dibs_checker
