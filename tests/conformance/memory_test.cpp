// SPDX-License-Identifier: Apache-2.0
// The memory store, on virtual time.

#include "store/memory/memory_store.hpp"
#include "suite.hpp"
#include "support/virtual_environment.hpp"

#include <string>
#include <utility>

namespace dibs::conformance {

namespace {

class memory_under_test final : public store_under_test {
  public:
    explicit memory_under_test(bool wakes_all = false) : wakes_all_{wakes_all} {}

    std::unique_ptr<store::store> open(core::party who) override {
        store::memory_options options;
        options.name =
            "conformance";  // one test at a time, and a name lives no longer than its views
        options.who = std::move(who);
        options.clock = clock_.reader();
        options.wakes_all = wakes_all_;
        return store::make_memory_store(virtual_.view(), std::move(options));
    }

    bool run_until(const std::function<bool()>& told) override {
        return virtual_.run_until(told, 1min);
    }

    core::environment view() override { return virtual_.view(); }
    core::instant local_now() const override { return virtual_.now(); }
    void pass(microseconds time) override { clock_.advance(time); }
    void step_calendar(microseconds by) override { clock_.step_wall(by); }

  private:
    const bool wakes_all_;
    virtual_environment virtual_;
    manual_store_clock clock_;
};

const subject memory{"virtual_time", [] { return std::make_unique<memory_under_test>(); }};
const subject waking{"all_woken", [] { return std::make_unique<memory_under_test>(true); }};

}  // namespace

INSTANTIATE_TEST_SUITE_P(memory, Conformance, ::testing::Values(memory, waking), name_of);

}  // namespace dibs::conformance
