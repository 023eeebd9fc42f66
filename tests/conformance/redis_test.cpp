// SPDX-License-Identifier: Apache-2.0
// The Redis store: a real server for each test, on a clock that the test moves.

#include "store/redis/redis_store.hpp"
#include "suite.hpp"
#include "support/pumped_environment.hpp"
#include "support/redis_server.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace dibs::conformance {

namespace {

/// Some day, on a whole millisecond: the server counts expiries in those.
constexpr std::int64_t start_us = 1'790'000'000'000'000;

class redis_under_test final : public store_under_test {
  public:
    redis_under_test(std::string prefix, redis_server::words settings)
        : server_{std::move(settings), &clock_}, prefix_{std::move(prefix)} {}
    /// By TLS.
    explicit redis_under_test(const test_certificates& made)
        : server_{made.server(), {}, &clock_}, tls_{store::redis::tls_settings{}} {
        tls_->ca = made.ca();
    }

    std::unique_ptr<store::store> open(core::party who) override {
        store::redis_options options;
        options.where.host = "127.0.0.1";
        options.where.port = static_cast<std::uint16_t>(server_.port());
        options.where.prefix = prefix_;
        options.where.tls = tls_;
        options.who = std::move(who);
        std::error_code error;
        std::string detail;
        auto opened = store::open_redis_store(pumped_.view(), std::move(options), error, detail);
        if (!opened) {
            throw std::runtime_error{error.message() + ": " + detail};
        }
        return opened;
    }

    bool run_until(const std::function<bool()>& told) override { return pumped_.run_until(told); }
    core::environment view() override { return pumped_.view(); }
    core::instant local_now() const override { return pumped_.now(); }
    void pass(microseconds time) override { clock_.advance(time.count()); }
    void step_calendar(microseconds by) override { clock_.advance(by.count()); }

  private:
    temporary_folder folder_;
    server_clock clock_{(folder_.path() / "clock").string(), start_us};
    redis_server server_;
    pumped_environment pumped_;
    std::string prefix_;
    std::optional<store::redis::tls_settings> tls_;
};

subject redis(const char* name, const char* prefix, const redis_server::words& settings = {}) {
    return {name, [=] { return std::make_unique<redis_under_test>(prefix, settings); }};
}

#ifdef DIBS_WITH_TLS
subject by_tls() {
    return {"tls", [] {
                static const test_certificates made;
                return std::make_unique<redis_under_test>(made);
            }};
}
#endif

/// As Redis 6.2, which does not have that command yet.
const redis_server::words without_pexpiretime{"--rename-command", "PEXPIRETIME", ""};

}  // namespace

INSTANTIATE_TEST_SUITE_P(redis,
                         Conformance,
                         ::testing::Values(redis("bare", ""),
                                           redis("prefixed", "locks:"),
                                           redis("older", "", without_pexpiretime)),
                         name_of);
#ifdef DIBS_WITH_TLS
INSTANTIATE_TEST_SUITE_P(redis_by_tls, Conformance, ::testing::Values(by_tls()), name_of);
#endif

}  // namespace dibs::conformance
