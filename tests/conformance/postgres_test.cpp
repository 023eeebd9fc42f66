// SPDX-License-Identifier: Apache-2.0
// The PostgreSQL store, with leases that are rows and with those that are advisory locks: a real
// server for each test, on a clock that the test moves; once with a pooler in front of it.

#include "store/postgres/postgres_store.hpp"
#include "suite.hpp"
#include "support/postgres_server.hpp"
#include "support/pumped_environment.hpp"

#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dibs::conformance {

namespace {

/// Some day.
constexpr std::int64_t start_us = 1'790'000'000'000'000;

enum class way { direct, pooled, sessions, pooled_sessions };

class postgres_under_test final : public store_under_test {
  public:
    postgres_under_test(std::string options, way how) : options_{std::move(options)}, how_{how} {
        give_to_plain_user(folder_.path());
        server_.emplace(postgres_server::words{}, &clock_);
        if (how == way::pooled) {
            pooler_.emplace(*server_);
        } else if (how == way::pooled_sessions) {
            pooler_.emplace(*server_,
                            std::vector<std::string>{"pool_mode=session", "default_pool_size=20"});
        }
    }

    std::unique_ptr<store::store> open(core::party who) override {
        auto url = (pooler_ ? pooler_->url() : server_->url()) + options_;
        if (how_ == way::sessions || how_ == way::pooled_sessions) {
            url.insert(url.find(':'), "+advisory");
        }
        std::string detail;
        store::postgres_options options;
        auto where = store::postgres::parse_address(url, detail);
        if (!where) {
            throw std::runtime_error{detail};
        }
        options.where = std::move(*where);
        options.who = std::move(who);
        std::error_code error;
        auto opened = store::open_postgres_store(pumped_.view(), std::move(options), error, detail);
        if (!opened) {
            throw std::runtime_error{error.message() + ": " + detail};
        }
        return opened;
    }

    bool run_until(const std::function<bool()>& told) override { return pumped_.run_until(told); }
    core::environment view() override { return pumped_.view(); }
    core::instant local_now() const override { return pumped_.now(); }
    void pass(microseconds time) override { clock_.advance(time.count()); }
    /// Of those who have locks.
    void end_sessions() override {
        const auto ended = server_->ask(
            "SELECT pid FROM (SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND "
            "objsubid = 1) AS with_locks WHERE pg_terminate_backend(pid, 30000)");
        if (pooler_) {
            // It hangs up on their clients when it notices.
            std::istringstream lines{ended};
            for (std::string pid; std::getline(lines, pid);) {
                EXPECT_TRUE(eventually([&] {
                    return pooler_->command("SHOW SERVERS").find("|" + pid + "|") ==
                           std::string::npos;
                }));
            }
        }
    }
    void step_calendar(microseconds by) override { clock_.advance(by.count()); }

  private:
    std::string options_;
    way how_;
    temporary_folder folder_;
    server_clock clock_{(folder_.path() / "clock").string(), start_us};
    std::optional<postgres_server> server_;
    std::optional<pgbouncer> pooler_;
    pumped_environment pumped_;
};

subject postgres(const char* name, const char* options, way how = way::direct) {
    return {name, [=] { return std::make_unique<postgres_under_test>(options, how); }};
}

/// None where that program is missing.
std::vector<subject> behind_pgbouncer(const subject& one) {
    return has_pgbouncer() ? std::vector{one} : std::vector<subject>{};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(postgres,
                         Conformance,
                         ::testing::Values(postgres("bare", ""),
                                           postgres("elsewhere", "?schema=my%20locks&prefix=app/")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(postgres_behind_pgbouncer,
                         Conformance,
                         ::testing::ValuesIn(behind_pgbouncer(postgres("pooled", "", way::pooled))),
                         name_of);
INSTANTIATE_TEST_SUITE_P(
    postgres_advisory,
    Conformance,
    ::testing::Values(postgres("bare", "", way::sessions),
                      postgres("elsewhere", "?schema=my%20locks&prefix=app/", way::sessions),
                      postgres("hashtext", "?hash=hashtext", way::sessions)),
    name_of);
INSTANTIATE_TEST_SUITE_P(
    postgres_advisory_behind_pgbouncer,
    Conformance,
    ::testing::ValuesIn(behind_pgbouncer(postgres("pooled", "", way::pooled_sessions))),
    name_of);

}  // namespace dibs::conformance
