// SPDX-License-Identifier: Apache-2.0
#pragma once
// Processes that share a value, on virtual time, and a provider that may rotate its credential, be slow, fail, or go
// away in the middle.

#include "client_parts.hpp"
#include "recipes/cached/cached_value.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dibs::recipes::testing {

using namespace std::chrono_literals;
using namespace dibs::testing;

/// Gives tokens "t1", "t2" …; each kills the one before. With `rotates`, each takes the credential of the one before
/// ("c0" at first), and one that is presented twice ends all.
class provider {
  public:
    explicit provider(virtual_environment& in) : world_{in} {}

    core::nanoseconds takes = 200ms;
    core::microseconds life = 60s;
    bool rotates = false;
    std::function<std::optional<fetched>(int number)>
        instead;  ///< what the fetch of that number brings

    int fetches = 0;
    int at_once = 0;
    int most_at_once = 0;
    std::string valid_token;
    std::set<std::string> used_credentials;
    bool family_revoked = false;

    void fetch(fetch_request request, core::unique_function<void(fetched)> done) {
        ++fetches;
        most_at_once = std::max(most_at_once, ++at_once);
        auto answer = answer_to(request);
        auto& alarm = alarms_.emplace_back();
        auto told = std::make_shared<core::unique_function<void(fetched)>>(std::move(done));
        alarm = std::make_unique<core::timer>([this, told, answer = std::move(answer)] {
            --at_once;
            (*told)(answer);
        });
        world_.time().arm(*alarm, world_.now() + takes);
    }

  private:
    fetched answer_to(const fetch_request& request) {
        if (instead) {
            if (auto other = instead(fetches)) {
                return *other;
            }
        }
        fetched answer;
        answer.how = fetched::ending::good;
        if (rotates) {
            const auto presented = request.previous && !request.previous->successor.empty()
                                       ? request.previous->successor
                                       : "c0";
            if (family_revoked || !used_credentials.insert(presented).second) {
                family_revoked = true;
                valid_token.clear();
                answer.how = fetched::ending::refused;
                answer.trouble = "invalid_grant";
                return answer;
            }
            answer.successor = "c" + std::to_string(fetches);
        }
        valid_token = "t" + std::to_string(fetches);
        answer.value = valid_token;
        answer.life = life;
        return answer;
    }

    virtual_environment& world_;
    std::list<std::unique_ptr<core::timer>> alarms_;
};

/// One process. `crash` stops it: nothing of it reaches the store any more.
class cached_process : public client_parts {
  public:
    cached_process(virtual_environment& in, const std::string& space, provider& from)
        : client_parts{in, space}, from_{from} {
        restart();
    }

    [[nodiscard]] static cached_terms usual_terms() {
        cached_terms made;
        made.key = "oauth:crm";
        made.acquire.lease.ttl = 6s;
        made.acquire.lease.renew_every = 2s;
        made.acquire.lease.attached = false;
        made.acquire.timeout = 5s;
        made.who.host = "a";
        made.who.pid = 7;
        return made;
    }

    /// With other terms, and nothing in memory.
    void restart(cached_terms with = usual_terms(), sealer* seal = nullptr) {
        value = std::make_unique<cached_value>(
            world.view(),
            line,
            batches,
            keys,
            std::move(with),
            seal,
            [this](fetch_request request, core::unique_function<void(fetched)> done) {
                from_.fetch(std::move(request), std::move(done));
            },
            [] { return std::int64_t{1'764'460'800'000}; });
    }

    using told_ptr = std::shared_ptr<std::optional<cached_outcome>>;
    told_ptr ask(cached_wish wish = {}) {
        auto told = std::make_shared<std::optional<cached_outcome>>();
        last_call = value->get(wish, [told](cached_outcome ended) { *told = std::move(ended); });
        return told;
    }
    cached_outcome get(cached_wish wish = {}) {
        const auto told = ask(wish);
        EXPECT_TRUE(world.run_until([&] { return told->has_value(); }, 2h));
        return told->value_or(cached_outcome{});
    }
    cached_outcome forget() {
        std::optional<cached_outcome> told;
        value->forget(1s, [&](cached_outcome heard) { told = std::move(heard); });
        EXPECT_TRUE(world.run_until([&] { return told.has_value(); }, 10s));
        return told.value_or(cached_outcome{});
    }
    void crash() {
        line.plan = [](std::size_t, const auto&) { return fault::lose_request; };
    }
    void recover() { line.plan = {}; }

    std::unique_ptr<cached_value> value;
    cached_value::call_ptr last_call;

  private:
    provider& from_;
};

}  // namespace dibs::recipes::testing
