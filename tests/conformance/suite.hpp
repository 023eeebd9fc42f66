// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one conformance suite: what src/store/store.hpp says, asked of a store. A store joins by one
// file beside this one: it derives from store_under_test and instantiates Conformance under the
// name of its folder in src/store (coverage_test.cpp fails until it has). No test is overridden:
// capabilities decide what is skipped, and a skip says why.
//
// Method: two or more store objects on the same data, each one process' view of it; every test asks
// through them and looks at answers, listings and wakes alone. Time passes only when the test says
// so.

#include "core/verbs.hpp"
#include "store/store.hpp"
#include "support/verbs.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::conformance {

using namespace std::chrono_literals;
using core::effect;
using core::loss;
using core::microseconds;
using core::verdict;
using namespace dibs::testing;  // the short verbs

inline constexpr microseconds forever = core::result_to_keep::forever;

/// A set of data, and the world around it.
class store_under_test {
  public:
    virtual ~store_under_test() = default;

    /// One more process' view of the data. `who` is what others are told about it.
    [[nodiscard]] virtual std::unique_ptr<store::store> open(core::party who) = 0;

    /// Runs callbacks until `told` holds. False: it did not in any time that a sound store needs.
    [[nodiscard]] virtual bool run_until(const std::function<bool()>& told) = 0;

    /// Of what runs on a view of the data; `run_until` runs it.
    [[nodiscard]] virtual core::environment view() = 0;

    /// The clock of the deadlines of entries.
    [[nodiscard]] virtual core::instant local_now() const = 0;

    /// Time passes for the store.
    virtual void pass(microseconds time) = 0;

    /// For a store whose grants do not expire: what they live by ends, without a word of theirs.
    virtual void end_sessions() {}

    /// The store's calendar is set to another time; what decides expiry goes on as before.
    virtual void step_calendar(microseconds by) = 0;
};

struct subject {
    std::string name;
    std::function<std::unique_ptr<store_under_test>()> make;

    friend void PrintTo(const subject& shown, std::ostream* out) { *out << shown.name; }
};

/// The name of a test's parameter: "normal" in sqlite/Conformance.X/normal.
[[nodiscard]] inline std::string name_of(const ::testing::TestParamInfo<subject>& info) {
    return info.param.name;
}

#define DIBS_NEEDS_EXPIRY()                                      \
    if (!caps().expires) {                                       \
        GTEST_SKIP() << caps().name << " ends no grant by time"; \
    }

#define DIBS_NEEDS_HANDING_OVER()                                                     \
    if (!caps().hands_over) {                                                         \
        GTEST_SKIP() << caps().name << " has grants that one process alone can have"; \
    }

/// A watcher that counts.
struct watch_probe {
    store::watch_id id = 0;
    int ready = 0;
    std::error_code error;
    int wakes = 0;
    store::wake_by last_by = store::wake_by::unknown;
};

class Conformance : public ::testing::TestWithParam<subject> {
  protected:
    Conformance();
    ~Conformance() override;

    /// Two processes that are always there.
    store::store& a() { return *a_; }
    store::store& b() { return *b_; }
    std::unique_ptr<store::store>& a_itself() { return a_; }
    std::unique_ptr<store::store>& b_itself() { return b_; }
    std::unique_ptr<store::store> open(std::string_view host);
    const store::capabilities& caps() { return a_->caps(); }

    /// A new one at each call.
    core::holder_id somebody() { return holder_of(++last_holder_); }

    core::entry entry(core::verb what) const;
    core::answer ask(store::store& through, core::verb what, store::lane which = usual_lane);
    store::answers ask_all(store::store& through, std::vector<core::entry> batch);
    core::page list(store::store& through,
                    std::string prefix = "",
                    std::string after = "",
                    std::size_t limit = 1000);
    /// The record as others see it; one that was never written has fence 0.
    core::record_info look(store::store& through, const std::string& key);
    /// All that `look` shows, as text to compare.
    std::string picture(store::store& through, const std::string& key);

    /// Acquires for somebody new, and fails the test when that is not granted. Returns the holder
    /// id.
    core::holder_id take(store::store& through, const std::string& key);
    core::fence_block fences_of(store::store& through, const std::string& key);

    int answered_before_a_renewal(int others);

    std::unique_ptr<watch_probe> watch(store::store& through, std::string_view key);
    bool run_until(const std::function<bool()>& told) { return world_->run_until(told); }
    /// Everything that was on its way to a callback has arrived.
    void settle(std::initializer_list<store::store*> views);

    void pass(microseconds time) { world_->pass(time); }
    /// Whoever holds something has it no longer, and has not given it back: its time is over, or in
    /// a store without expiry its session is.
    void outlive();
    /// What its holder is told after that, when nobody has taken the key since.
    loss outlived() { return caps().expires ? loss::expired : loss::gone; }
    store_under_test& world() { return *world_; }

    static constexpr store::lane usual_lane = store::lane::others;

  private:
    std::unique_ptr<store_under_test> world_;
    std::unique_ptr<store::store> a_;
    std::unique_ptr<store::store> b_;
    std::uint64_t last_holder_ = 0;
};

}  // namespace dibs::conformance
