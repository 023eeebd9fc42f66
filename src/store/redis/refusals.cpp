// SPDX-License-Identifier: Apache-2.0
#include "store/redis/refusals.hpp"

#include "core/key.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace dibs::store::redis {

namespace {

struct known_refusal {
    std::string_view begins;
    errc code;
    std::string_view means;
};

constexpr std::array known_refusals{
    known_refusal{"OOM", errc::store_refused, "the server's memory is full (maxmemory)"},
    known_refusal{"WRONGTYPE", errc::invalid_key, "the key holds something that is no lock"},
    known_refusal{"READONLY",
                  errc::store_refused,
                  "the server is a replica, which takes no writes"},
    known_refusal{"LOADING", errc::store_busy, "the server is loading its data"},
    known_refusal{"BUSY", errc::store_busy, "the server is busy with somebody's script"},
    known_refusal{"MISCONF", errc::store_refused, "the server cannot save to its disk"},
    known_refusal{"NOREPLICAS", errc::store_refused, "the server has too few replicas"},
    known_refusal{"MASTERDOWN", errc::store_refused, "the server is a replica without its primary"},
    known_refusal{"CLUSTERDOWN", errc::store_refused, "the cluster is down"},
    known_refusal{"MOVED", errc::unsupported, "a Redis Cluster is not supported yet"},
    known_refusal{"ASK", errc::unsupported, "a Redis Cluster is not supported yet"},
    known_refusal{"CROSSSLOT", errc::unsupported, "a Redis Cluster is not supported yet"},
    known_refusal{"NOSCRIPT", errc::store_refused, "the server forgot the script again and again"},
    known_refusal{"NOPERM", errc::permission_denied, "the server's ACL lacks a right"},
    known_refusal{"NOAUTH", errc::permission_denied, "the server asks for a password"},
};

core::answer refusal(errc why, std::string what) {
    return core::refused(why, std::move(what));
}

}  // namespace

bool surely_not_executed(std::string_view text) noexcept {
    const bool known = std::any_of(known_refusals.begin(),
                                   known_refusals.end(),
                                   [&](const auto& one) { return text.starts_with(one.begins); });
    // The rights of the commands inside of the script, and those that were renamed; the first ones
    // are asked for before any entry.
    return known || text.starts_with("DIBSFORMAT") ||
           text.find("ACL failure in script") != std::string_view::npos ||
           text.find("can't run this command") != std::string_view::npos ||
           text.find("command called from") != std::string_view::npos ||
           text.starts_with("ERR unknown command");
}

core::answer answer_to_error(std::string_view text, bool wrote) {
    if (wrote) {
        return core::in_doubt("the server failed half-way: " + core::printable(text));
    }
    if (text.starts_with("DIBSFORMAT")) {
        return refusal(errc::newer_format,
                       "the record has format " + core::printable(text.substr(11)) +
                           ", this release knows 1; update dibs on this host");
    }
    if (text.starts_with("DIBSFENCE")) {
        return refusal(errc::invalid_argument, "the fence would not fit in 53 bits");
    }
    for (const auto& one : known_refusals) {
        if (text.starts_with(one.begins)) {
            return refusal(one.code, std::string{one.means} + ": " + core::printable(text));
        }
    }
    if (text.find("ACL failure in script") != std::string_view::npos ||
        text.find("can't run this command") != std::string_view::npos) {
        return refusal(errc::permission_denied,
                       "the server's ACL lacks a right: " + core::printable(text));
    }
    return refusal(errc::store_refused, "the server refused: " + core::printable(text));
}

}  // namespace dibs::store::redis
