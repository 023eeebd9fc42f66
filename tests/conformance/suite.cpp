// SPDX-License-Identifier: Apache-2.0
#include "suite.hpp"

#include <sstream>
#include <utility>

namespace dibs::conformance {

namespace {

void draw(std::ostream& out, const core::boxed<core::kept_result>& result) {
    if (result) {
        out << " result=" << result->value << " of " << result->fence << " mark=" << result->is_mark
            << " fresh=" << result->fresh << " for " << result->fresh_left.count() << " kept for "
            << result->keep_left.count();
    }
}

}  // namespace

Conformance::Conformance() : world_{GetParam().make()}, a_{open("host-a")}, b_{open("host-b")} {}

Conformance::~Conformance() {
    a_.reset();
    b_.reset();
}

std::unique_ptr<store::store> Conformance::open(std::string_view host) {
    core::party who;
    who.host = host;
    who.pid = 4711;
    who.user = "somebody";
    who.command = "conformance --test";
    return world_->open(std::move(who));
}

core::entry Conformance::entry(core::verb what) const {
    core::entry made;
    made.what = std::move(what);
    made.deadline = world_->local_now() + 1h;
    return made;
}

core::answer Conformance::ask(store::store& through, core::verb what, store::lane which) {
    std::optional<store::answers> given;
    std::vector<core::entry> batch;
    batch.push_back(entry(std::move(what)));
    through.execute(which, std::move(batch), [&](store::answers told) { given = std::move(told); });
    EXPECT_TRUE(run_until([&] { return given.has_value(); })) << "no answer";
    if (!given || given->size() != 1) {
        ADD_FAILURE() << "one entry has one answer";
        return {};
    }
    return std::move(given->front());
}

store::answers Conformance::ask_all(store::store& through, std::vector<core::entry> batch) {
    const auto expected = batch.size();
    std::optional<store::answers> given;
    through.execute(
        usual_lane, std::move(batch), [&](store::answers told) { given = std::move(told); });
    EXPECT_TRUE(run_until([&] { return given.has_value(); })) << "no answer";
    auto all = std::move(given).value_or(store::answers{});
    EXPECT_EQ(all.size(), expected);
    all.resize(expected);
    return all;
}

core::page Conformance::list(store::store& through,
                             std::string prefix,
                             std::string after,
                             std::size_t limit) {
    std::optional<core::page> given;
    through.list(std::move(prefix), std::move(after), limit, [&](core::page told) {
        given = std::move(told);
    });
    EXPECT_TRUE(run_until([&] { return given.has_value(); })) << "no listing";
    auto shown = std::move(given).value_or(core::page{});
    EXPECT_FALSE(shown.error) << shown.error.message() << ": " << shown.detail;
    return shown;
}

core::record_info Conformance::look(store::store& through, const std::string& key) {
    for (auto& record : list(through, key).records) {
        if (record.key == key) {
            return std::move(record);
        }
    }
    core::record_info never_written;
    never_written.key = key;
    return never_written;
}

std::string Conformance::picture(store::store& through, const std::string& key) {
    const auto record = look(through, key);
    std::ostringstream out;
    out << record.key << " fence=" << record.fence << " waiters=" << record.waiters
        << " blocked=" << record.blocked_for.count() << ' ' << record.blocked_reason;
    draw(out, record.result);
    for (const auto& holder : record.holders) {
        out << " holder{" << holder.who.host << ' ' << holder.who.pid << ' ' << holder.who.user
            << ' ' << holder.who.command << ' ' << holder.fences.first << ".." << holder.fences.last
            << " weight=" << holder.weight
            << " attached=" << (holder.attached == core::attachment::attached)
            << " held=" << holder.held_for.count() << " remaining=" << holder.remaining.count()
            << '}';
    }
    return out.str();
}

core::holder_id Conformance::take(store::store& through, const std::string& key) {
    const auto holder = somebody();
    EXPECT_EQ(ask(through, acquire_of(key, holder)).what, verdict::granted) << key;
    return holder;
}

core::fence_block Conformance::fences_of(store::store& through, const std::string& key) {
    const auto holders = look(through, key).holders;
    EXPECT_EQ(holders.size(), 1U);
    return holders.empty() ? core::fence_block{} : holders.front().fences;
}

void Conformance::outlive() {
    pass(usual_ttl);
    if (!caps().expires) {
        world_->end_sessions();
    }
}

std::unique_ptr<watch_probe> Conformance::watch(store::store& through, std::string_view key) {
    auto probe = std::make_unique<watch_probe>();
    auto* counted = probe.get();
    probe->id = through.watch(
        key,
        [counted](std::error_code error) {
            ++counted->ready;
            counted->error = error;
        },
        [counted](store::wake_by whose) {
            ++counted->wakes;
            counted->last_by = whose;
        });
    EXPECT_EQ(probe->ready, 0) << "told inside the call";
    EXPECT_TRUE(run_until([&] { return probe->ready > 0; })) << "never ready";
    EXPECT_FALSE(probe->error) << probe->error.message();
    return probe;
}

void Conformance::settle(std::initializer_list<store::store*> views) {
    for (auto* view : views) {
        list(*view, "", "", 1);
    }
}

// A pattern without an instantiation is an error of the tests, not of a build without optional
// stores.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);

}  // namespace dibs::conformance
