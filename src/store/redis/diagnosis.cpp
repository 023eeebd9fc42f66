// SPDX-License-Identifier: Apache-2.0
#include "store/redis/diagnosis.hpp"

#include "core/key.hpp"
#include "store/redis/inquiry.hpp"
#include "store/redis/lock_survey.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::store::redis {

namespace {

using grade = finding::grade;

/// The fields of a section of INFO.
std::map<std::string, std::string> fields_of(const std::string& info) {
    std::map<std::string, std::string> fields;
    for (std::size_t at = 0; at < info.size();) {
        const auto end = std::min(info.find("\r\n", at), info.size());
        const auto line = std::string_view{info}.substr(at, end - at);
        if (const auto colon = line.find(':'); colon != std::string_view::npos) {
            fields.emplace(line.substr(0, colon), line.substr(colon + 1));
        }
        at = end + 2;
    }
    return fields;
}

class examination {
  public:
    examination(engine& through, core::environment env, const speaker& self)
        : through_(through), env_(env), self_(self) {}

    std::vector<finding> run() {
        version();
        memory();
        persistence();
        replication();
        clock();
        survey_locks(through_, env_, self_, found_);
        return std::move(found_);
    }

  private:
    void add(std::string subject, grade state, std::string what, std::string advice = "") {
        found_.push_back({std::move(subject), state, std::move(what), std::move(advice)});
    }
    std::map<std::string, std::string> info(std::string_view section) {
        const auto told = ask(through_, env_, {"INFO", section});
        return told.texts.empty() ? std::map<std::string, std::string>{}
                                  : fields_of(told.texts.front());
    }
    /// Empty: it may not be read.
    std::string setting(std::string_view name) {
        const auto told = ask(through_, env_, {"CONFIG", "GET", name});
        return told.texts.size() < 2 ? std::string{} : told.texts[1];
    }

    void version() {
        const auto told = ask(through_, env_, {"INFO", "server"});
        if (!told.fault.empty()) {
            add("server",
                grade::warning,
                "cannot be asked: " + core::printable(told.fault),
                "allow INFO for this user, so that doctor sees more");
            return;
        }
        const auto fields = fields_of(told.texts.empty() ? std::string{} : told.texts.front());
        const auto valkey = fields.find("valkey_version");
        const auto redis = fields.find("redis_version");
        add("server",
            grade::ok,
            valkey != fields.end()  ? "Valkey " + core::printable(valkey->second)
            : redis != fields.end() ? "Redis " + core::printable(redis->second)
                                    : "of unknown version");
    }

    void memory() {
        const auto fields = info("memory");
        const auto policy = fields.find("maxmemory_policy");
        const auto limit = fields.find("maxmemory");
        if (policy == fields.end() || limit == fields.end()) {
            return;
        }
        const auto shown = core::printable(policy->second);
        if (policy->second == "noeviction") {
            add("eviction", grade::ok, "maxmemory-policy is noeviction");
        } else if (limit->second == "0") {
            add("eviction",
                grade::warning,
                "maxmemory-policy is " + shown + ", and maxmemory is not set",
                "set maxmemory-policy noeviction before anybody sets maxmemory");
        } else {
            add("eviction",
                grade::problem,
                "maxmemory-policy is " + shown +
                    ": when memory is short, the server deletes locks that are held",
                "set maxmemory-policy noeviction, or give dibs a server of its own");
        }
    }

    void persistence() {
        const auto appends = setting("appendonly");
        if (appends.empty()) {
            const auto fields = info("persistence");
            const auto enabled = fields.find("aof_enabled");
            if (enabled == fields.end()) {
                return;
            }
            report_persistence(enabled->second == "1" ? "yes" : "no", "");
            return;
        }
        report_persistence(appends, setting("appendfsync"));
    }
    void report_persistence(const std::string& appends, const std::string& sync) {
        if (appends != "yes") {
            add("persistence",
                grade::warning,
                "appendonly is off: after a restart locks that are held are free, and results, "
                "marks and holds are gone or old",
                "set appendonly yes; with appendfsync always nothing that was acknowledged is "
                "lost");
        } else if (sync == "always") {
            add("persistence", grade::ok, "appendonly, appendfsync always");
        } else {
            add("persistence",
                grade::warning,
                "appendonly, appendfsync " + (sync.empty() ? "unknown" : core::printable(sync)) +
                    ": a crash of the server may forget the last second or more of grants and "
                    "results",
                "set appendfsync always where that must not be");
        }
    }

    void replication() {
        const auto fields = info("replication");
        const auto replicas = fields.find("connected_slaves");
        if (replicas == fields.end() || replicas->second == "0") {
            return;
        }
        const auto needed = setting("min-replicas-to-write");
        add("replicas",
            grade::warning,
            core::printable(replicas->second) +
                " connected; copying is asynchronous: a replica that is promoted may not know of a "
                "lock that is held" +
                (needed.empty() || needed == "0" ? ", and min-replicas-to-write is not set" : ""),
            "set min-replicas-to-write and min-replicas-max-lag, and check fences where the work "
            "is done");
    }

    void clock() {
        const auto told = ask(through_, env_, {"TIME"});
        if (told.texts.size() < 2) {
            return;
        }
        timespec here{};
        ::clock_gettime(CLOCK_REALTIME, &here);
        const auto there = std::strtoll(told.texts[0].c_str(), nullptr, 10);
        const auto apart = there - static_cast<long long>(here.tv_sec);
        const bool near = apart >= -2 && apart <= 2;
        add("clock",
            near ? grade::ok : grade::warning,
            near ? "the server's clock and this host's agree"
                 : "the server's clock is " + std::to_string(apart > 0 ? apart : -apart) + " s " +
                       (apart > 0 ? "ahead of" : "behind") + " this host's",
            near
                ? ""
                : "let both follow NTP, and slew: a step of the server's clock moves every expiry");
    }

    engine& through_;
    const core::environment env_;
    const speaker& self_;
    std::vector<finding> found_;
};

}  // namespace

std::vector<finding> diagnose(engine& through, core::environment env, const speaker& self) {
    return examination{through, env, self}.run();
}

std::string why_not_strict(engine& through, core::environment env) {
    const auto told = ask(through, env, {"INFO", "memory"});
    if (!told.fault.empty() || told.texts.empty()) {
        return "the server cannot be asked whether it deletes locks when memory is short: " +
               core::printable(told.fault) + "; allow this user INFO";
    }
    const auto fields = fields_of(told.texts.front());
    const auto policy = fields.find("maxmemory_policy");
    if (policy == fields.end() || policy->second != "noeviction") {
        return "the server may delete locks that are held (maxmemory-policy is " +
               (policy == fields.end() ? "unknown" : core::printable(policy->second)) +
               "), so there is no guarantee=strict; set maxmemory-policy noeviction";
    }
    return "";
}

}  // namespace dibs::store::redis
