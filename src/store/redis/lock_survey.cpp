// SPDX-License-Identifier: Apache-2.0
#include "store/redis/lock_survey.hpp"

#include "core/duration.hpp"
#include "core/key.hpp"
#include "store/redis/inquiry.hpp"
#include "store/redis/requests.hpp"
#include "store/redis/script.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace dibs::store::redis {

namespace {

using grade = finding::grade;

/// So many calls of SCAN, each of some thousand keys, are not felt by a server.
constexpr int scans_most = 50;
constexpr std::size_t keys_most = 1'000;
constexpr std::size_t shown_most = 5;
constexpr std::string_view probe_key = "dibs-doctor";

class survey {
  public:
    survey(engine& through, core::environment env, const speaker& self, std::vector<finding>& found)
        : through_(through), env_(env), self_(self), found_(found) {}

    void run() {
        const bool may_run_the_script = script_rights();
        other_rights();
        if (may_run_the_script) {
            oldest_holder();
        }
        locks_without_expiry();
    }

  private:
    void add(std::string subject, grade state, std::string what, std::string advice = "") {
        found_.push_back({std::move(subject), state, std::move(what), std::move(advice)});
    }

    std::string look(std::vector<std::string> keys, std::vector<core::record_info>& records) {
        std::string bytes;
        write_looks(bytes, send_as::text, self_.where, self_.self, keys);
        return ask(through_,
                   env_,
                   std::move(bytes),
                   [this, keys = std::move(keys), &records](const reply& told) {
                       static_cast<void>(read_looks(told, self_.self, keys, records));
                   });
    }

    bool script_rights() {
        std::vector<core::record_info> none;
        const auto fault = look({std::string{probe_key}}, none);
        if (fault.empty()) {
            add("script", grade::ok, "this user may run it");
            return true;
        }
        if (fault.starts_with("NOPERM") && fault.find("key") != std::string::npos &&
            fault.find("command") == std::string::npos) {
            add("script",
                grade::ok,
                "not tried: this user may not use the key " + std::string{probe_key});
            return true;
        }
        add("script",
            grade::problem,
            "it cannot be run: " + core::printable(fault),
            "give this user the rights that docs/stores/redis.md names");
        return false;
    }

    void other_rights() {
        const auto channel = self_.where.rest(probe_key);
        if (const auto told = ask(through_, env_, {"PUBLISH", channel, ""}); !told.fault.empty()) {
            add("messages",
                grade::warning,
                "a release cannot tell those who wait: " + core::printable(told.fault),
                "allow PUBLISH and SUBSCRIBE on the channels that docs/stores/redis.md names; "
                "until then they look again by timer");
        }
    }

    /// The names that `step` tells from cursor to cursor, as far as they are looked at. Whether that
    /// were all.
    template <typename Step>
    bool scan(std::set<std::string>& names, Step step) {
        std::string cursor = "0";
        for (int round = 0; round < scans_most && names.size() < keys_most; ++round) {
            heard told = step(cursor);
            if (!told.fault.empty() || told.texts.empty()) {
                add("listing",
                    grade::warning,
                    "the server's keys cannot be listed: " + core::printable(told.fault),
                    "allow SCAN and GETRANGE for this user, so that dibs ls and doctor see more");
                return false;
            }
            cursor = told.texts.front();
            names.insert(std::make_move_iterator(told.texts.begin() + 1),
                         std::make_move_iterator(told.texts.end()));
            if (cursor == "0") {
                return true;
            }
        }
        return false;
    }

    void oldest_holder() {
        std::set<std::string> names;
        const bool all = scan(names, [this](const std::string& cursor) {
            return ask(through_,
                       env_,
                       {"EVAL",
                        scan_script_text(),
                        "0",
                        cursor,
                        self_.where.pattern(""),
                        self_.where.lock(""),
                        "2000"});
        });
        std::set<std::string> all_keys;
        for (const auto& name : names) {
            auto key = self_.where.key_of_rest(name);
            if (!key) {
                key = self_.where.key_of_lock(name);
            }
            if (key) {
                all_keys.insert(std::move(*key));
            }
        }
        const std::vector<std::string> keys(all_keys.begin(), all_keys.end());
        std::size_t held = 0;
        std::size_t strangers = 0;
        std::optional<std::pair<std::string, core::holder_info>> oldest;
        for (std::size_t at = 0; at < keys.size(); at += max_batch_entries) {
            const auto end = std::min(keys.size(), at + max_batch_entries);
            std::vector<core::record_info> records;
            static_cast<void>(look({keys.begin() + static_cast<std::ptrdiff_t>(at),
                                    keys.begin() + static_cast<std::ptrdiff_t>(end)},
                                   records));
            for (const auto& record : records) {
                held += record.holders.size();
                for (const auto& holder : record.holders) {
                    if (holder.who.host.empty()) {
                        ++strangers;
                        continue;  // since when, it does not tell
                    }
                    if (!oldest || holder.held_for > oldest->second.held_for) {
                        oldest = {record.key, holder};
                    }
                }
            }
        }
        auto text = std::to_string(held) + " held" + (all ? "" : " among those looked at");
        if (oldest) {
            const auto& who = oldest->second.who;
            text += ", the longest for " + core::show_duration(oldest->second.held_for) + ": " +
                    core::printable(oldest->first) + " by " + core::printable(who.host) + " (pid " +
                    std::to_string(who.pid) + "): " + core::printable(who.command);
        }
        if (strangers > 0) {
            text += ", " + std::to_string(strangers) + " of them by other programs";
        }
        add("locks", grade::ok, std::move(text));
    }

    /// Whoever takes such a key and dies keeps it for ever.
    void locks_without_expiry() {
        std::set<std::string> names;
        const auto step = [this](const std::string& cursor) {
            return ask(
                through_,
                env_,
                {"SCAN", cursor, "MATCH", "*[lL][oO][cC][kK]*", "COUNT", "2000", "TYPE", "string"});
        };
        if (!scan(names, step) && names.empty()) {
            return;
        }
        std::vector<std::string> endless;
        for (const auto& name : names) {
            if (self_.where.key_of_rest(name) || name == self_.where.epoch()) {
                continue;
            }
            const auto told = ask(through_, env_, {"PTTL", name});
            if (told.fault.empty() && !told.texts.empty() && told.texts.front() == "-1") {
                endless.push_back(name);
            }
        }
        if (endless.empty()) {
            return;
        }
        std::string shown;
        for (std::size_t at = 0; at < std::min(endless.size(), shown_most); ++at) {
            shown += (at == 0 ? "" : ", ") + core::printable(endless[at]);
        }
        if (endless.size() > shown_most) {
            shown += " and " + std::to_string(endless.size() - shown_most) + " more";
        }
        add("locks without expiry",
            grade::warning,
            "keys that look like locks and never expire: " + shown +
                "; whoever dies with one keeps it for ever",
            "take them by SET key token NX PX ttl, or by dibs; delete those whose holder is gone");
    }

    engine& through_;
    const core::environment env_;
    const speaker& self_;
    std::vector<finding>& found_;
};

}  // namespace

void survey_locks(engine& through,
                  core::environment env,
                  const speaker& self,
                  std::vector<finding>& found) {
    survey{through, env, self, found}.run();
}

}  // namespace dibs::store::redis
