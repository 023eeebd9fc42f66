// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/awaited_store.hpp"

#include "cli/options/duration.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/supervisor/boot_time.hpp"
#include "core/key.hpp"
#include "store/url.hpp"

#include <dibs/options.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;
constexpr milliseconds first_pause{50};
constexpr milliseconds longest_pause{1'000};

/// A file is there or not: a wrong path does not mend itself.
bool is_on_a_server(const store_choice& store) {
    std::string why;
    const auto where = store::parse_url(store.url, why);
    return where && where->scheme != "sqlite" && where->scheme != "memory";
}

}  // namespace

bool rest(milliseconds pause, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wakes;
    std::unique_lock held(mutex);
    wakes.wait_for(held, stop, pause, [] { return false; });
    return !stop.stop_requested();
}

std::optional<client> open_awaited(const store_choice& store,
                                   const std::string& command,
                                   const store_wait& terms,
                                   const std::stop_token& stop) {
    const auto began = boot_now();
    const auto waited = [&] {
        return std::chrono::duration_cast<milliseconds>(boot_now() - began);
    };
    const auto over = [&](const store_away& fault) {
        return store_away(std::string(fault.what()) + "; waited " + show_duration(terms.wait));
    };
    const bool waits = terms.wait > milliseconds::zero() && is_on_a_server(store);
    bool told = terms.quiet;
    for (auto pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
        try {
            return open_client(store, command);
        } catch (const store_away& fault) {
            if (!waits) {
                throw;
            }
            const auto so_far = waited();
            if (terms.wait != dibs::forever && so_far >= terms.wait) {
                throw over(fault);
            }
            if (so_far >= trouble_worth_telling && !std::exchange(told, true)) {
                say("waiting for " + quoted_key(terms.key) +
                    ", whose store is not there for now: " + core::printable(fault.what(), 500) +
                    "; trying on");
            }
            pause = std::min(pause, left_of(terms.wait, so_far));
            if (!rest(pause, stop)) {
                return std::nullopt;
            }
            // Who was stopped, or slept with its host, for longer than the wait begins nothing any more.
            if (terms.wait != dibs::forever && waited() > terms.wait + longest_pause) {
                throw over(fault);
            }
        }
    }
}

milliseconds patience_left(milliseconds wait, milliseconds spent) noexcept {
    constexpr milliseconds least{100};
    return wait > milliseconds::zero() ? store_patience : std::max(store_patience - spent, least);
}

milliseconds left_of(milliseconds wait, milliseconds spent) noexcept {
    constexpr milliseconds least{1};
    return wait == dibs::forever || wait <= least ? wait : std::max(wait - spent, least);
}

}  // namespace dibs::cli
