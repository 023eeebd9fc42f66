// SPDX-License-Identifier: Apache-2.0
#include "checker/timeline.hpp"

#include "checker/event_text.hpp"
#include "checker/ledger.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>

namespace dibs_checker {
namespace {

constexpr double label_width = 190;
constexpr double top = 34;
constexpr double strip_height = 16;  ///< beliefs, grants, faults
constexpr double row_height = 17;    ///< one of the rows of calls
constexpr int strips = 2;            ///< for those that overlap
constexpr int rows = 4;
constexpr double letter_width = 6.2;  ///< on average
constexpr double lane_gap = 14;

// Distinct in print and for most kinds of colour blindness; a key keeps its colour in all lanes.
constexpr std::array<std::string_view, 6> colours{"#3b75af",
                                                  "#c07c1e",
                                                  "#3a8a5f",
                                                  "#8a5ca8",
                                                  "#b0566f",
                                                  "#5f7480"};

/// From true time to a place on the page. The distances between stamps are not to scale: the short
/// ones would vanish beside a ttl.
class scale {
  public:
    explicit scale(std::vector<std::int64_t> stamps) : stamps_(std::move(stamps)) {
        std::sort(stamps_.begin(), stamps_.end());
        stamps_.erase(std::unique(stamps_.begin(), stamps_.end()), stamps_.end());
        double x = label_width + 30;
        for (std::size_t index = 0; index < stamps_.size(); ++index) {
            if (index > 0) {
                const auto gap_us =
                    static_cast<double>(stamps_[index] - stamps_[index - 1]) / 1'000.0;
                x += std::min(150.0, 58.0 + 12.0 * std::log10(1.0 + gap_us));
            }
            xs_.push_back(x);
        }
    }

    [[nodiscard]] double of(std::int64_t sim) const {
        const auto after = std::upper_bound(stamps_.begin(), stamps_.end(), sim);
        if (after == stamps_.begin()) {
            return xs_.front() - 20;
        }
        const auto high = static_cast<std::size_t>(after - stamps_.begin());
        if (high == stamps_.size()) {
            return sim == stamps_.back() ? xs_.back() : xs_.back() + 60;
        }
        const auto part = static_cast<double>(sim - stamps_[high - 1]) /
                          static_cast<double>(stamps_[high] - stamps_[high - 1]);
        return xs_[high - 1] + part * (xs_[high] - xs_[high - 1]);
    }
    [[nodiscard]] double width() const { return xs_.back() + 110; }
    [[nodiscard]] const std::vector<std::int64_t>& stamps() const noexcept { return stamps_; }

  private:
    std::vector<std::int64_t> stamps_;
    std::vector<double> xs_;
};

std::string number(double value) {
    std::ostringstream made;
    made.imbue(std::locale::classic());
    made.precision(1);
    made << std::fixed << value;
    return made.str();
}

class drawing {
  public:
    drawing(std::ostream& into,
            const subject& of,
            const std::vector<position>& shown,
            const std::vector<position>& marked)
        : into_(into),
          of_(of),
          all_(of.all),
          shown_(shown),
          marked_(marked),
          scale_(stamps_of(of.all, shown)),
          from_(all_.events[shown.front()].sim()),
          until_(all_.events[shown.back()].sim()) {}

    void draw() {
        lay_out();
        const auto width = scale_.width();
        into_ << "<div class=\"scroll\"><svg width=\"" << number(width) << "\" height=\""
              << number(height_) << "\" viewBox=\"0 0 " << number(width) << ' ' << number(height_)
              << "\" role=\"img\">\n";
        draw_time();
        draw_gaps();
        for (const auto& [name, y] : lane_names_) {
            text(6, y + 12, name, "lane");
            // Again further on, for whoever has scrolled.
            for (int x = 1'200; x < static_cast<int>(width) - 300; x += 1'200) {
                text(static_cast<double>(x), y + lane_height + 4, name, "stamp");
            }
            line(0, y + lane_height + lane_gap / 2, width, "lane-line");
        }
        draw_faults();
        draw_beliefs();
        draw_grants();
        draw_calls();
        draw_points();
        draw_marks();
        into_ << "</svg></div>\n";
    }

  private:
    static std::vector<std::int64_t> stamps_of(const history& of,
                                               const std::vector<position>& shown) {
        std::vector<std::int64_t> made;
        made.reserve(shown.size());
        for (const auto at : shown) {
            made.push_back(of.events[at].sim());
        }
        return made;
    }

    static bool is_of_the_world(const event& now) {
        return now.what == op::fault || now.what == op::heal || now.what == op::slot ||
               now.what == op::keep;
    }
    [[nodiscard]] bool is_shown(position at) const {
        return std::binary_search(shown_.begin(), shown_.end(), at);
    }
    [[nodiscard]] bool is_marked(position at) const {
        return at != nowhere && std::binary_search(marked_.begin(), marked_.end(), at);
    }

    void lay_out() {
        double y = top;
        const auto add = [&](const std::string& name) {
            lane_names_.emplace_back(name, y);
            const auto here = y;
            y += lane_height + lane_gap;
            return here;
        };
        if (std::any_of(shown_.begin(), shown_.end(), [&](position at) {
                return is_of_the_world(all_.events[at]);
            })) {
            world_ = add("the world");
        }
        for (const auto at : shown_) {
            const auto& now = all_.events[at];
            if (now.has(field::proc) && !processes_.contains(now[field::proc])) {
                processes_[now[field::proc]] = add(process_in(all_, now[field::proc]));
            }
        }
        for (const auto at : shown_) {
            const auto& now = all_.events[at];
            if (now.has(field::key) && !colour_of_.contains(now[field::key])) {
                const auto index = colour_of_.size() % colours.size();
                colour_of_[now[field::key]] = colours[index];
            }
            if (is_store_step(now.what)) {
                const auto which = pair_of(now[field::store], now[field::key]);
                if (!stores_.contains(which)) {
                    const auto& store = all_.text(now, field::store);
                    stores_[which] = add("store " + (store.empty() ? "" : quoted(store) + " ") +
                                         "key " + name_in(all_, now[field::key]));
                }
            }
        }
        height_ = y + 10;
    }

    // --- parts -----------------------------------------------------------------------------------

    void text(double x, double y, const std::string& what, std::string_view style) {
        into_ << "<text x=\"" << number(x) << "\" y=\"" << number(y) << "\" class=\"" << style
              << "\">" << escaped(what) << "</text>\n";
    }
    void line(double x1, double y, double x2, std::string_view style) {
        into_ << "<line x1=\"" << number(x1) << "\" y1=\"" << number(y) << "\" x2=\"" << number(x2)
              << "\" y2=\"" << number(y) << "\" class=\"" << style << "\"/>\n";
    }
    void vertical(double x, double y1, double y2, std::string_view style) {
        into_ << "<line x1=\"" << number(x) << "\" y1=\"" << number(y1) << "\" x2=\"" << number(x)
              << "\" y2=\"" << number(y2) << "\" class=\"" << style << "\"/>\n";
    }
    /// A bar with its label and, for the pointer, all of it.
    void bar(double x1,
             double x2,
             double y,
             double height,
             std::string_view colour,
             std::string_view style,
             const std::string& label,
             const std::string& hint) {
        into_ << "<g><title>" << escaped(hint) << "</title><rect x=\"" << number(x1) << "\" y=\""
              << number(y) << "\" width=\"" << number(std::max(2.0, x2 - x1)) << "\" height=\""
              << number(height) << "\" fill=\"" << colour << "\" class=\"" << style << "\"/></g>\n";
        text(x1 + 3, y + height - 4, label, "label");
    }

    /// The first of `count` rows, from `first` on, that is free from `x1` on; the emptiest when
    /// none is. It is taken until `x2`, or until its label ends.
    int free_row(double lane,
                 int first,
                 int count,
                 double x1,
                 double x2,
                 const std::string& label) {
        auto& ends = taken_[lane];
        ends.resize(strips + rows, -1'000.0);
        auto chosen = ends.begin() + first;
        for (auto row = chosen; row != ends.begin() + first + count; ++row) {
            if (*row < *chosen) {
                chosen = row;
            }
            if (*row <= x1) {
                chosen = row;
                break;
            }
        }
        *chosen = std::max(
            x2, label.empty() ? x1 : x1 + 12 + letter_width * static_cast<double>(label.size()));
        return static_cast<int>(chosen - ends.begin()) - first;
    }
    [[nodiscard]] double row_top(double lane, double x1, double x2, const std::string& label) {
        return lane + strips * strip_height + 3 +
               free_row(lane, strips, rows, x1, x2, label) * row_height;
    }
    [[nodiscard]] double strip_top(double lane, double x1, double x2) {
        // Labels of strips may run into each other, the strips may not.
        return lane + free_row(lane, 0, strips, x1, x2 - 1, "") * strip_height;
    }

    [[nodiscard]] std::string_view colour_of(text_id key) const {
        const auto found = colour_of_.find(key);
        return found == colour_of_.end() ? colours.back() : found->second;
    }

    void draw_time() {
        for (const auto stamp : scale_.stamps()) {
            const auto x = scale_.of(stamp);
            vertical(x, top - 6, height_ - 8, "grid");
            text(x + 2, top - 10, time_text(stamp), "stamp");
        }
    }

    /// Where events were left out.
    void draw_gaps() {
        for (std::size_t index = 1; index < shown_.size(); ++index) {
            const auto left_out = shown_[index] - shown_[index - 1] - 1;
            if (left_out == 0) {
                continue;
            }
            const auto x1 = scale_.of(all_.events[shown_[index - 1]].sim());
            const auto x2 = scale_.of(all_.events[shown_[index]].sim());
            bar(x1 + 8,
                std::max(x1 + 12, x2 - 4),
                top - 4,
                height_ - top - 6,
                "#8888881a",
                "gap",
                "",
                std::to_string(left_out) + " events are left out here");
            text(x1 + 10, height_ - 12, "… " + std::to_string(left_out), "label");
        }
    }

    void draw_faults() {
        for (const auto at : shown_) {
            const auto& now = all_.events[at];
            if (now.what != op::fault || now.ph == phase::end) {
                continue;
            }
            const auto end = now.partner != nowhere ? all_.events[now.partner].sim()
                             : now.ph == phase::at  ? now.sim()
                                                    : until_;
            const auto name = all_.text(now, field::name);
            const auto hint = line_of(at);
            const auto x1 = scale_.of(now.sim());
            const auto x2 = scale_.of(std::min(end, until_));
            bar(x1,
                x2,
                row_top(world_, x1, x2, name),
                row_height - 3,
                "#b9a16b66",
                is_marked(at) ? "marked" : "fault",
                name,
                hint);
            if (const auto lane = processes_.find(now[field::proc]);
                now.has(field::proc) && lane != processes_.end()) {
                bar(x1, x2, lane->second - 3, lane_height + 6, "#b9a16b33", "fault", "", hint);
            }
        }
        for (const auto at : shown_) {
            const auto& now = all_.events[at];
            if (now.what == op::heal) {
                vertical(scale_.of(now.sim()), top, height_ - 10, "heal");
                const std::string label = "heal: the faults are over";
                const auto x = scale_.of(now.sim());
                text(x + 3, row_top(world_, x, x, label) + 10, label, "label");
            }
        }
    }

    void draw_beliefs() {
        for (const auto& which : of_.beliefs) {
            const auto lane = processes_.find(which.proc);
            if (lane == processes_.end() || which.until < from_ || which.from > until_) {
                continue;
            }
            const auto x1 = scale_.of(which.from);
            const auto x2 = scale_.of(which.until);
            bar(x1,
                x2,
                strip_top(lane->second, x1, x2),
                strip_height - 1,
                colour_of(which.key),
                is_marked(which.begin) ? "belief marked" : "belief",
                "holds " + name_in(all_, which.key) + ", fence " + std::to_string(which.fence),
                process_in(all_, which.proc) + " believes to hold key " + name_in(all_, which.key) +
                    " from " + time_text(which.from) + " to " + time_text(which.until));
        }
    }

    void draw_grants() {
        ledger replayed{all_};
        for (position at = 0; at < all_.events.size(); ++at) {
            replayed.take(at);
        }
        for (const auto& grant : replayed.grants()) {
            const auto lane = stores_.find(pair_of(grant.store, grant.key));
            const auto given = all_.events[grant.given].sim();
            auto end =
                of_.clocks.of_store(grant.store, grant.expires, all_.events[grant.prolonged].sim());
            if (grant.ended != nowhere && !grant.forgotten) {
                end = std::min(end, all_.events[grant.ended].sim());
            }
            if (lane == stores_.end() || end < from_ || given > until_) {
                continue;
            }
            const auto x1 = scale_.of(given);
            const auto x2 = scale_.of(end);
            bar(x1,
                x2,
                strip_top(lane->second, x1, x2),
                strip_height - 1,
                colour_of(grant.key),
                is_marked(grant.given) || is_marked(grant.prolonged) ? "grant marked" : "grant",
                name_in(all_, grant.holder) + ", fence " + std::to_string(grant.fence),
                "granted to " + name_in(all_, grant.holder) + " from " + time_text(given) + " to " +
                    time_text(end) + " in true time; expiry " + time_text(grant.expires) +
                    " by the store's clock");
        }
    }

    [[nodiscard]] std::string line_of(position at) const {
        const auto& now = all_.events[at];
        return "line " + std::to_string(now.line) + ", " + time_text(now.sim()) + ": " +
               event_name(now) + " " + event_fields(all_, now);
    }

    /// What fits into a bar of the call.
    [[nodiscard]] std::string short_text(const event& inv, const event* end) const {
        std::string made = event_name(inv).substr(0, event_name(inv).find(' '));
        if (inv.has(field::value)) {
            made += " " + all_.value_text(inv[field::value]);
        } else if (end != nullptr && end->has(field::value)) {
            made += " " + all_.value_text((*end)[field::value]);
        }
        if (end != nullptr && end->has(field::fence)) {
            made += " f" + std::to_string((*end)[field::fence]);
        } else if (inv.has(field::fence)) {
            made += " f" + std::to_string(inv[field::fence]);
        }
        if (end == nullptr) {
            return made + " …";
        }
        switch (end->ph) {
            case phase::ok:
                return made + " ✓";
            case phase::fail:
                return made + " ✗ " + all_.text(*end, field::error);
            default:
                return made + " ?";
        }
    }

    void draw_calls() {
        for (const auto at : shown_) {
            const auto& now = all_.events[at];
            // A call whose beginning is not shown is drawn from its end.
            const bool only_end = now.ph != phase::inv && !is_shown(now.partner);
            if (!is_call(now.what) || (now.ph != phase::inv && !only_end)) {
                continue;
            }
            const auto inv = only_end ? now.partner : at;
            const auto& begin = all_.events[inv];
            const auto* end = all_.end_of(begin);
            const auto x1 = scale_.of(begin.sim());
            const auto x2 = scale_.of(end == nullptr ? never : end->sim());
            const auto label = short_text(begin, end);
            const auto y = row_top(processes_[now[field::proc]], x1, x2, label);
            const bool mark = is_marked(inv) || is_marked(begin.partner);
            bar(x1,
                x2,
                y,
                row_height - 3,
                "#cfd6dd",
                mark ? "call marked" : (end == nullptr ? "call open" : "call"),
                label,
                line_of(inv) + (end == nullptr ? "" : "\n" + line_of(begin.partner)));
        }
    }

    void draw_points() {
        for (const auto at : shown_) {
            const auto& now = all_.events[at];
            if (is_call(now.what) || now.what == op::fault || now.what == op::plan ||
                now.what == op::clock || now.what == op::heal || now.what == op::over) {
                continue;
            }
            auto y = world_;
            std::string label = event_name(now);
            if (is_store_step(now.what)) {
                y = stores_[pair_of(now[field::store], now[field::key])];
                if (now.what == op::end) {
                    label = all_.text(now, field::why);
                }
            } else if (now.has(field::proc)) {
                y = processes_[now[field::proc]];
            }
            if (now.what == op::held) {
                label = now[field::held] != 0 ? "held: yes" : "held: no";
            }
            if (now.has(field::fence) && now.what != op::grant) {
                label += " f" + std::to_string(now[field::fence]);
            }
            const auto x = scale_.of(now.sim());
            const auto below = row_top(y, x, x, label);
            into_ << "<g><title>" << escaped(line_of(at)) << "</title><circle cx=\"" << number(x)
                  << "\" cy=\"" << number(below + 6) << "\" r=\"3.5\" class=\""
                  << (is_marked(at) ? "point marked" : "point") << "\"/></g>\n";
            text(x + 6, below + 10, label, is_marked(at) ? "label strong" : "label");
        }
    }

    void draw_marks() {
        int count = 0;
        for (const auto at : marked_) {
            if (!is_shown(at)) {
                continue;
            }
            const auto x = scale_.of(all_.events[at].sim());
            vertical(x, top - 4, height_ - 8, "mark");
            into_ << "<g><title>" << escaped(line_of(at)) << "</title><circle cx=\"" << number(x)
                  << "\" cy=\"" << number(9) << "\" r=\"8\" class=\"badge\"/></g>\n";
            text(x - 3, 13, std::to_string(++count), "badge-text");
        }
    }

    std::ostream& into_;
    const subject& of_;
    const history& all_;
    const std::vector<position>& shown_;
    const std::vector<position>& marked_;
    scale scale_;
    std::int64_t from_;
    std::int64_t until_;
    static constexpr double lane_height = strips * strip_height + 3 + rows * row_height;
    double height_ = 0;
    double world_ = 0;
    std::map<text_id, double> processes_;
    std::map<double, std::vector<double>> taken_;  ///< by lane: where each row is free again
    std::map<std::uint64_t, double> stores_;
    std::map<text_id, std::string_view> colour_of_;
    std::vector<std::pair<std::string, double>> lane_names_;
};

}  // namespace

std::string escaped(std::string_view text) {
    std::string made;
    for (const char letter : text) {
        switch (letter) {
            case '&':
                made += "&amp;";
                break;
            case '<':
                made += "&lt;";
                break;
            case '>':
                made += "&gt;";
                break;
            case '"':
                made += "&quot;";
                break;
            case '\'':
                made += "&#39;";
                break;
            default:
                // Control characters may not stand in a page, not even as entities.
                made += static_cast<unsigned char>(letter) < 0x20 && letter != '\n' ? '?' : letter;
        }
    }
    return made;
}

void write_timeline(std::ostream& into,
                    const subject& of,
                    const std::vector<position>& shown,
                    const std::vector<position>& marked) {
    drawing{into, of, shown, marked}.draw();
}

}  // namespace dibs_checker
