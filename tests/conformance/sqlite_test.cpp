// SPDX-License-Identifier: Apache-2.0
// The SQLite store: real files and its own threads, on a clock that the test moves.

#include "store/sqlite/sqlite_store.hpp"
#include "suite.hpp"
#include "support/manual_store_clock.hpp"
#include "support/pumped_environment.hpp"
#include "support/temporary_folder.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

namespace dibs::conformance {

namespace {

class sqlite_under_test final : public store_under_test {
  public:
    explicit sqlite_under_test(store::sqlite_options::durability sync) : sync_{sync} {}

    std::unique_ptr<store::store> open(core::party who) override {
        store::sqlite_options options;
        options.path = (folder_.path() / "dibs.sqlite").string();
        options.sync = sync_;
        options.who = std::move(who);
        options.clock = clock_.reader();
        std::error_code error;
        std::string detail;
        auto opened = store::open_sqlite_store(pumped_.view(), std::move(options), error, detail);
        if (!opened) {
            throw std::runtime_error{error.message() + ": " + detail};
        }
        return opened;
    }

    bool run_until(const std::function<bool()>& told) override { return pumped_.run_until(told); }
    core::environment view() override { return pumped_.view(); }
    core::instant local_now() const override { return pumped_.now(); }
    void pass(microseconds time) override { clock_.advance(time); }
    void step_calendar(microseconds by) override { clock_.step_wall(by); }

  private:
    temporary_folder folder_;
    pumped_environment pumped_;
    manual_store_clock clock_;
    store::sqlite_options::durability sync_;
};

subject sqlite(const char* name, store::sqlite_options::durability sync) {
    return {name, [sync] { return std::make_unique<sqlite_under_test>(sync); }};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(sqlite,
                         Conformance,
                         ::testing::Values(sqlite("normal",
                                                  store::sqlite_options::durability::normal),
                                           sqlite("full", store::sqlite_options::durability::full)),
                         name_of);

}  // namespace dibs::conformance
