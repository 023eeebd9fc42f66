// SPDX-License-Identifier: Apache-2.0
// Long histories of a world in which everything goes right pass all checks, and each kind of damage
// done to them is noticed by the check that is there for it.
#include "support.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>

namespace dibs_checker {
namespace {

using namespace testing;

TEST(SoundHistory, PassesAllChecksThatItHoldsSomethingFor) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const auto found = judged(read(sound_history(seed, 2'000)));
        EXPECT_EQ(with_outcome(found, outcome::not_judged), (std::set<std::string>{"C10", "C11"}))
            << "seed " << seed;
        EXPECT_TRUE(with_outcome(found, outcome::violated).empty()) << "seed " << seed << '\n'
                                                                    << told(found);
        EXPECT_TRUE(with_outcome(found, outcome::undecided).empty()) << "seed " << seed << '\n'
                                                                     << told(found);
    }
}

TEST(SoundHistory, IsTheSameForTheSameSeed) {
    EXPECT_EQ(sound_history(7, 500), sound_history(7, 500));
    EXPECT_NE(sound_history(7, 500), sound_history(8, 500));
}

/// The lines of a history, to be damaged.
class lines {
  public:
    explicit lines(const std::string& text) {
        std::istringstream from{text};
        for (std::string line; std::getline(from, line);) {
            all_.push_back(line);
        }
    }
    [[nodiscard]] std::string text() const {
        std::string made;
        for (const auto& line : all_) {
            made += line + "\n";
        }
        return made;
    }
    [[nodiscard]] std::size_t size() const { return all_.size(); }
    std::string& operator[](std::size_t index) { return all_[index]; }

    /// A random line that has all of these; nothing when there is none.
    std::optional<std::size_t> pick(std::mt19937_64& random,
                                    const std::vector<std::string>& parts,
                                    std::size_t from = 0) {
        std::vector<std::size_t> found;
        for (auto index = from; index < all_.size(); ++index) {
            bool all = true;
            for (const auto& part : parts) {
                all = all && all_[index].find(part) != std::string::npos;
            }
            if (all) {
                found.push_back(index);
            }
        }
        if (found.empty()) {
            return std::nullopt;
        }
        return found[random() % found.size()];
    }

    /// The value of a number or a text in a line, as it stands there.
    [[nodiscard]] std::string value(std::size_t line, const std::string& name) const {
        const auto [begin, end] = place(line, name);
        return all_[line].substr(begin, end - begin);
    }
    void set(std::size_t line, const std::string& name, const std::string& value) {
        const auto [begin, end] = place(line, name);
        all_[line].replace(begin, end - begin, value);
    }

  private:
    [[nodiscard]] std::pair<std::size_t, std::size_t> place(std::size_t line,
                                                            const std::string& name) const {
        const auto label = "\"" + name + "\":";
        const auto begin = all_[line].find(label) + label.size();
        return {begin, all_[line].find_first_of(",}", begin)};
    }

    std::vector<std::string> all_;
};

using damage = std::function<bool(lines&, std::mt19937_64&)>;

/// Does the damage to histories of 20 seeds; each time the check notices it.
void expect_noticed(check_id by, const damage& how) {
    int done = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        lines all{sound_history(seed, 1'500)};
        std::mt19937_64 random{seed};
        if (!how(all, random)) {
            continue;
        }
        ++done;
        const auto found = judged(read(all.text()));
        EXPECT_EQ(of(found, by).outcome(), outcome::violated) << "seed " << seed;
    }
    EXPECT_GE(done, 10);
}

TEST(DamagedHistory, TwoFencesSwappedAreNoticed) {
    expect_noticed(check_id::c3, [](lines& all, std::mt19937_64& random) {
        const auto first = all.pick(random, {"\"op\":\"grant\""});
        if (!first) {
            return false;
        }
        const auto second = all.pick(
            random, {"\"op\":\"grant\"", "\"key\":" + all.value(*first, "key")}, *first + 1);
        if (!second) {
            return false;
        }
        const auto fence = all.value(*first, "fence");
        all.set(*first, "fence", all.value(*second, "fence"));
        all.set(*second, "fence", fence);
        return true;
    });
}

TEST(DamagedHistory, AGrantGivenEarlierIsNoticed) {
    // Grants follow one another: whoever takes the place of the second one in the store's time
    // before the first has ended overlaps it.
    expect_noticed(check_id::c1, [](lines& all, std::mt19937_64& random) {
        const auto end = all.pick(random, {"\"op\":\"end\""});
        if (!end ||
            !all.pick(random, {"\"op\":\"grant\"", "\"key\":" + all.value(*end, "key")}, *end)) {
            return false;
        }
        const auto key = all.value(*end, "key");
        const auto next = [&] {
            for (auto index = *end + 1; index < all.size(); ++index) {
                if (all[index].find("\"op\":\"grant\"") != std::string::npos &&
                    all.value(index, "key") == key) {
                    return index;
                }
            }
            return all.size();
        }();
        // Unless the first had expired in the meantime.
        const auto gap =
            std::stoll(all.value(next, "sim_ns")) - std::stoll(all.value(*end, "sim_ns"));
        if (gap > 300'000'000) {
            return false;
        }
        all.set(*end, "fence", "1");
        return true;
    });
}

TEST(DamagedHistory, AReadThatReturnsSomethingElseIsNoticed) {
    expect_noticed(check_id::c4, [](lines& all, std::mt19937_64& random) {
        const auto read = all.pick(random, {"\"op\":\"read\"", "\"ph\":\"ok\""});
        if (!read) {
            return false;
        }
        all.set(*read, "value", "987654321");
        return true;
    });
}

TEST(DamagedHistory, ALostIncrementIsNoticed) {
    expect_noticed(check_id::c5, [](lines& all, std::mt19937_64& random) {
        const auto count = all.pick(random, {"\"op\":\"count\"", "\"ph\":\"ok\""});
        if (!count) {
            return false;
        }
        // Fewer than there were, and it had been one more at least for certain.
        const auto key = all.value(*count, "key");
        for (std::size_t index = 0; index < *count; ++index) {
            if (all[index].find("\"op\":\"increment\"") != std::string::npos &&
                all[index].find("\"ph\":\"ok\"") != std::string::npos &&
                all.value(index, "key") == key &&
                std::stoll(all.value(index, "sim_ns")) + 10'000'000 <
                    std::stoll(all.value(*count, "sim_ns"))) {
                all.set(*count, "value", "0");
                return true;
            }
        }
        return false;
    });
}

TEST(DamagedHistory, HeldAfterTheDeadlineIsNoticed) {
    expect_noticed(check_id::c6, [](lines& all, std::mt19937_64& random) {
        const auto held = all.pick(random, {"\"op\":\"held\"", "\"held\":true"});
        if (!held) {
            return false;
        }
        all.set(*held,
                "local_ns",
                std::to_string(std::stoll(all.value(*held, "local_ns")) + 3'000'000'000));
        return true;
    });
}

TEST(DamagedHistory, ARenewalBySomebodyElseIsNoticed) {
    expect_noticed(check_id::c7, [](lines& all, std::mt19937_64& random) {
        const auto renewal = all.pick(random, {"\"op\":\"prolong\""});
        if (!renewal) {
            return false;
        }
        all.set(*renewal, "holder", "\"stranger\"");
        return true;
    });
}

TEST(DamagedHistory, AGrantToSomebodyWhoHadSettledIsNoticed) {
    expect_noticed(check_id::c8, [](lines& all, std::mt19937_64& random) {
        const auto settled = all.pick(random, {"\"op\":\"settled\""});
        if (!settled) {
            return false;
        }
        const auto grant = all.pick(
            random, {"\"op\":\"grant\"", "\"key\":" + all.value(*settled, "key")}, *settled);
        if (!grant) {
            return false;
        }
        all.set(*grant, "holder", all.value(*settled, "holder"));
        return true;
    });
}

TEST(DamagedHistory, AnAnswerThatNeverComesIsNoticed) {
    expect_noticed(check_id::c12, [](lines& all, std::mt19937_64&) {
        // The last phase alone is judged: an acquire that begins in it, and a long time after that.
        const auto over = all.size() - 1;
        const auto sim = all.value(over, "sim_ns");
        const auto seq = std::stoll(all.value(over, "seq"));
        all[over] = R"({"seq":)" + std::to_string(seq) + R"(,"sim_ns":)" + sim +
                    R"(,"op":"acquire","ph":"inv","call":900000,"proc":"late","local_ns":0,)"
                    R"("key":"key0","ttl_ns":5,"waits":true})"
                    "\n" +
                    R"({"seq":)" + std::to_string(seq + 1) + R"(,"sim_ns":)" + sim +
                    R"(0,"op":"over"})";
        return true;
    });
}

}  // namespace
}  // namespace dibs_checker
