// SPDX-License-Identifier: Apache-2.0
// The PostgreSQL store: a real server for each test, on a clock that the test moves; once with a
// pooler in front of it.

#include "store/postgres/postgres_store.hpp"
#include "suite.hpp"
#include "support/postgres_server.hpp"
#include "support/pumped_environment.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dibs::conformance {

namespace {

/// Some day.
constexpr std::int64_t start_us = 1'790'000'000'000'000;

enum class way { direct, pooled };

class postgres_under_test final : public store_under_test {
  public:
    postgres_under_test(std::string options, way how) : options_{std::move(options)} {
        give_to_plain_user(folder_.path());
        server_.emplace(postgres_server::words{}, &clock_);
        if (how == way::pooled) {
            pooler_.emplace(*server_);
        }
    }

    std::unique_ptr<store::store> open(core::party who) override {
        const auto url = (pooler_ ? pooler_->url() : server_->url()) + options_;
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
    void step_calendar(microseconds by) override { clock_.advance(by.count()); }

  private:
    std::string options_;
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
std::vector<subject> behind_pgbouncer() {
    return has_pgbouncer() ? std::vector{postgres("pooled", "", way::pooled)}
                           : std::vector<subject>{};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(postgres,
                         Conformance,
                         ::testing::Values(postgres("bare", ""),
                                           postgres("elsewhere", "?schema=my%20locks&prefix=app/")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(postgres_behind_pgbouncer,
                         Conformance,
                         ::testing::ValuesIn(behind_pgbouncer()),
                         name_of);

}  // namespace dibs::conformance
