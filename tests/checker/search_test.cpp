// SPDX-License-Identifier: Apache-2.0
// The search against a naive one that tries every order of every choice of operations, with models
// of its own, on thousands of small random histories.
#include "checker/search/search.hpp"

#include "checker/search/models.hpp"
#include "checker/search/shrink.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace dibs_checker {
namespace {

/// The objects once more, written for the test alone: what happens when the action is done.
struct naive_register {
    using action = fenced_register::action;
    std::int64_t largest = -1;
    std::int64_t value = null_value;

    bool apply(const action& what) {
        const bool stale = what.fenced && what.fence < largest;
        if (what.what == fenced_register::kind::read) {
            return value == what.value;
        }
        if (what.what == fenced_register::kind::refused) {
            return stale;
        }
        if (stale) {
            return false;
        }
        if (what.fenced) {
            largest = std::max(largest, what.fence);
        }
        if (what.what == fenced_register::kind::write) {
            value = what.value;
        }
        return true;
    }
};

struct naive_mutex {
    using action = fenced_mutex::action;
    std::optional<std::int64_t> holder;
    std::int64_t last = -1;

    bool apply(const action& what) {
        if (what.what == fenced_mutex::kind::acquire) {
            if (holder || what.fence <= last) {
                return false;
            }
            holder = last = what.fence;
            return true;
        }
        if (holder != what.fence) {
            return false;
        }
        holder.reset();
        return true;
    }
};

/// Whether some order explains the operations that are not placed yet.
template <class Model, class Naive>
bool explains(const std::vector<operation<Model>>& ops, std::vector<bool>& placed, Naive now) {
    bool complete = true;
    for (std::size_t op = 0; op < ops.size(); ++op) {
        complete = complete && (placed[op] || ops[op].optional());
    }
    if (complete) {
        return true;
    }
    for (std::size_t op = 0; op < ops.size(); ++op) {
        if (placed[op]) {
            continue;
        }
        bool first = true;
        for (std::size_t other = 0; other < ops.size(); ++other) {
            first = first && (placed[other] || ops[other].returned >= ops[op].call);
        }
        auto after = now;
        if (first && after.apply(ops[op].what)) {
            placed[op] = true;
            if (explains(ops, placed, after)) {
                return true;
            }
            placed[op] = false;
        }
    }
    return false;
}

template <class Model, class Naive>
bool naively(const std::vector<operation<Model>>& ops) {
    std::vector<bool> placed(ops.size());
    return explains<Model, Naive>(ops, placed, Naive{});
}

constexpr std::uint64_t plenty = 1'000'000;

template <class Model>
search_result result_of(const std::vector<operation<Model>>& ops) {
    return linearize<Model>(ops, plenty).result;
}

class random_source {
  public:
    explicit random_source(std::uint64_t seed) : engine_(seed) {}
    /// 0 to below `end`. Of our own: the distributions of the standard differ between libraries.
    std::int64_t below(std::int64_t end) {
        return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end));
    }

  private:
    std::mt19937_64 engine_;
};

/// For the message of a failed test.
std::string told(const std::vector<operation<fenced_register>>& ops) {
    std::string made;
    for (const auto& op : ops) {
        made += "\n" + std::to_string(op.call) + ".." +
                (op.optional() ? std::string{"?"} : std::to_string(op.returned)) + " kind " +
                std::to_string(static_cast<int>(op.what.what)) +
                (op.what.fenced ? " fence " + std::to_string(op.what.fence) : "") + " value " +
                std::to_string(op.what.value);
    }
    return made;
}

template <class Model>
void give_times(operation<Model>& op, random_source& random, std::int64_t span) {
    op.call = random.below(span);
    op.returned = random.below(5) == 0 ? no_return : op.call + random.below(4);
}

std::vector<operation<fenced_register>> random_register(random_source& random) {
    std::vector<operation<fenced_register>> ops(static_cast<std::size_t>(2 + random.below(6)));
    // Few stamps, so that many meet.
    const auto span = 2 + random.below(12);
    for (auto& op : ops) {
        give_times(op, random, span);
        const auto kind = random.below(10);
        op.what.fence = random.below(3);
        op.what.value = random.below(3);
        if (kind < 4) {
            op.what.what = fenced_register::kind::write;
            op.what.fenced = random.below(5) != 0;
        } else if (kind < 5) {
            op.what.what = fenced_register::kind::claim;
        } else {
            op.what.what = kind < 6 ? fenced_register::kind::refused : fenced_register::kind::read;
            if (op.what.value == 2 && kind >= 6) {
                op.what.value = null_value;
            }
            if (op.optional()) {
                op.returned = op.call + 1;
            }
        }
    }
    return ops;
}

std::vector<operation<fenced_mutex>> random_mutex(random_source& random) {
    std::vector<operation<fenced_mutex>> ops(static_cast<std::size_t>(2 + random.below(6)));
    const auto span = 2 + random.below(14);
    for (auto& op : ops) {
        give_times(op, random, span);
        op.what.fence = random.below(4);
        op.what.what =
            random.below(2) == 0 ? fenced_mutex::kind::acquire : fenced_mutex::kind::release;
    }
    return ops;
}

TEST(Search, AgreesWithTheNaiveOneOnRegisters) {
    random_source random{1};
    std::map<bool, int> seen;
    for (int round = 0; round < 40'000; ++round) {
        const auto ops = random_register(random);
        const bool expected = naively<fenced_register, naive_register>(ops);
        ASSERT_EQ(result_of(ops) == search_result::linearizable, expected)
            << "round " << round << told(ops);
        ++seen[expected];
    }
    EXPECT_GT(seen[true], 2'000);
    EXPECT_GT(seen[false], 2'000);
}

TEST(Search, AgreesWithTheNaiveOneOnMutexes) {
    random_source random{2};
    std::map<bool, int> seen;
    for (int round = 0; round < 20'000; ++round) {
        const auto ops = random_mutex(random);
        const bool expected = naively<fenced_mutex, naive_mutex>(ops);
        ASSERT_EQ(result_of(ops) == search_result::linearizable, expected) << "round " << round;
        ++seen[expected];
    }
    EXPECT_GT(seen[true], 1'000);
    EXPECT_GT(seen[false], 1'000);
}

/// What a correct register would have answered: each operation takes effect at a random instant of
/// its interval.
std::vector<operation<fenced_register>> sound_register(random_source& random,
                                                       std::size_t count,
                                                       std::int64_t width) {
    struct drawn {
        operation<fenced_register> op;
        std::int64_t effect;
    };
    std::vector<drawn> all(count);
    std::int64_t now = 0;
    for (auto& each : all) {
        now += random.below(3);
        each.op.call = now;
        each.op.returned = now + random.below(width);
        each.effect = each.op.call + random.below(each.op.returned - each.op.call + 1);
        each.op.what.fence = now / 50 + random.below(2);
        each.op.what.value = random.below(1'000'000);
        each.op.what.what = static_cast<fenced_register::kind>(random.below(4));
    }
    std::stable_sort(all.begin(), all.end(), [](const drawn& left, const drawn& right) {
        return left.effect < right.effect;
    });
    naive_register truth;
    std::vector<operation<fenced_register>> ops;
    for (auto& each : all) {
        auto& what = each.op.what;
        if (what.what == fenced_register::kind::read) {
            what.value = truth.value;
        } else {
            if (what.what == fenced_register::kind::refused) {
                what.what = fenced_register::kind::write;
            }
            if (!truth.apply(what)) {
                what.what = fenced_register::kind::refused;
            } else if (random.below(10) == 0) {
                each.op.returned = no_return;
            }
        }
        ops.push_back(each.op);
    }
    return ops;
}

TEST(Search, TakesLongSoundHistories) {
    random_source random{3};
    for (int round = 0; round < 60; ++round) {
        const auto ops = sound_register(random, 400, 12);
        ASSERT_EQ(result_of(ops), search_result::linearizable) << "round " << round;
    }
}

TEST(Search, NoticesAReadThatWasMoved) {
    random_source random{4};
    int moved = 0;
    for (int round = 0; round < 300; ++round) {
        auto ops = sound_register(random, 60, 6);
        for (auto& op : ops) {
            if (op.what.what == fenced_register::kind::read) {
                // A value that nobody wrote explains itself in no order.
                op.what.value = -2;
                ++moved;
                break;
            }
        }
        ASSERT_EQ(result_of(ops), search_result::impossible) << "round " << round;
    }
    EXPECT_EQ(moved, 300);
}

// Found by the comparison above: the unfenced write of 0 must not be done with when another write
// has just left 0 there, since it is needed after the write of 1.
TEST(Search, KeepsAWriteOfWhatIsThereForLater) {
    using kind = fenced_register::kind;
    const std::vector<operation<fenced_register>> ops{
        {{kind::write, 0, true, 0}, 0, 2},
        {{kind::write, 0, false, 0}, 0, 3},
        {{kind::read, 0, true, 1}, 0, 1},
        {{kind::write, 2, true, 1}, 0, 0},
        {{kind::read, 0, true, 0}, 1, 2},
    };
    EXPECT_EQ(result_of(ops), search_result::linearizable);
}

TEST(Search, RunsOutOfStepsRatherThanGuessing) {
    // A value that nobody wrote, behind many writes in any order: each order has to be tried.
    std::vector<operation<fenced_register>> ops;
    for (std::int64_t write = 0; write < 14; ++write) {
        ops.push_back({{fenced_register::kind::write, 1, true, write}, 0, 10});
        ops.push_back({{fenced_register::kind::read, 0, true, write}, 0, 10});
    }
    ops.push_back({{fenced_register::kind::read, 0, true, 99}, 0, 20});
    const auto report = linearize<fenced_register>(ops, 1'000);
    EXPECT_EQ(report.result, search_result::out_of_steps);
    EXPECT_GE(report.steps, 1'000U);
    // The same steps on every run.
    EXPECT_EQ(linearize<fenced_register>(ops, 1'000).steps, report.steps);
}

TEST(Search, EntersNoConfigurationTwice) {
    // 2^12 sets of writes with 12 states each are far fewer than 12! orders.
    std::vector<operation<fenced_register>> ops;
    for (std::int64_t write = 0; write < 12; ++write) {
        ops.push_back({{fenced_register::kind::write, 1, true, write}, 0, 10});
    }
    ops.push_back({{fenced_register::kind::read, 0, true, 99}, 0, 20});
    const auto report = linearize<fenced_register>(ops, plenty);
    EXPECT_EQ(report.result, search_result::impossible);
    EXPECT_LT(report.steps, 700'000U);
}

TEST(Search, PutsAcquiresInTheOrderOfTheirFences) {
    // Any of 2^30 subsets of the waiters could be tried in vain before the impossible one.
    std::vector<operation<fenced_mutex>> ops;
    for (std::int64_t fence = 1; fence <= 30; ++fence) {
        ops.push_back({{fenced_mutex::kind::acquire, fence}, 0, 100 + fence});
        ops.push_back({{fenced_mutex::kind::release, fence}, 0, 100 + fence});
    }
    ops.push_back({{fenced_mutex::kind::release, 99}, 0, 200});
    const auto report = linearize<fenced_mutex>(ops, 10'000);
    EXPECT_EQ(report.result, search_result::impossible);
}

TEST(Search, KeepsTheShortestPartThatFails) {
    random_source random{5};
    for (int round = 0; round < 20; ++round) {
        auto ops = sound_register(random, 200, 6);
        const auto end = ops.back().call + 100;
        using kind = fenced_register::kind;
        ops.push_back({{kind::write, 1'000'000, true, 7}, end, end + 1});
        ops.push_back({{kind::read, 0, true, 8}, end + 2, end + 3});
        const auto report = linearize<fenced_register>(ops, plenty);
        ASSERT_EQ(report.result, search_result::impossible);
        shrinker<fenced_register> shortest{ops, plenty * 20};
        shortest.cut_after(report.stuck_at);
        std::vector<std::vector<std::size_t>> reads;
        for (std::size_t op = 0; op + 1 < ops.size(); ++op) {
            if (ops[op].what.what == kind::read || ops[op].what.what == kind::refused) {
                reads.push_back({op});
            }
        }
        shortest.take_away(reads);
        for (const auto& group : reads) {
            EXPECT_FALSE(shortest.kept(group.front()));
        }
        EXPECT_TRUE(shortest.kept(ops.size() - 1));
    }
}

}  // namespace
}  // namespace dibs_checker
