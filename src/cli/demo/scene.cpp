// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/scene.hpp"

#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/settings/store_access.hpp"

#include <stdlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <system_error>

namespace dibs::cli {

demo_round::demo_round(const demo_scene& of)
    : folder_(of.folder + "/round-XXXXXX"), store_(of.store) {
    if (::mkdtemp(folder_.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "cannot make a folder");
    }
    if (store_.empty()) {
        store_ = "sqlite:" + folder_ + "/locks.db";
    }
    // The folders of two demos have different names, so they do not meet on a common server.
    const auto stage = of.folder.substr(of.folder.rfind('/') + 1);
    key_ = stage + ":" + folder_.substr(folder_.size() - 6);
}

client open_demo_client(const std::string& url) {
    store_choice choice;
    choice.url = url;
    return open_client(choice, "dibs demo");
}

lease demo_round::take(client& through, milliseconds ttl, bool renew, milliseconds wait) const {
    acquire_options wanted;
    wanted.ttl = ttl;
    wanted.renew = renew;
    wanted.wait = wait;
    auto got = through.acquire(key_, wanted);
    if (!got) {
        throw failure(exit_status::trouble, "the key could not be had");
    }
    return std::move(*got);
}

void tell(const std::string& who, const std::string& what) {
    const auto now = std::chrono::system_clock::now();
    const auto stamp = std::chrono::system_clock::to_time_t(now);
    const auto ms =
        std::chrono::duration_cast<milliseconds>(now.time_since_epoch()) % std::chrono::seconds{1};
    std::tm parts{};
    ::localtime_r(&stamp, &parts);
    std::array<char, 16> text{};
    std::snprintf(text.data(),
                  text.size(),
                  "%02d:%02d:%02d.%03d",
                  parts.tm_hour,
                  parts.tm_min,
                  parts.tm_sec,
                  static_cast<int>(ms.count()));
    deliver("  " + std::string(text.data()) + "  " + who + "  " + what + "\n");
}

std::string in_seconds(milliseconds length) {
    const auto tenths = length.count() / 100;
    return std::to_string(tenths / 10) +
           (tenths % 10 != 0 ? "." + std::to_string(tenths % 10) : "") + " s";
}

int verdict(bool as_told) {
    deliver(as_told ? "" : "\nThat is not what this demo should show.\n");
    return as_told ? exit_status::ok : exit_status::trouble;
}

}  // namespace dibs::cli
