// SPDX-License-Identifier: Apache-2.0
// The codec of the Redis protocol: what it reads, what it refuses, that it does not matter how the
// bytes arrive, and that it reads what hiredis reads.

#include "store/redis/resp.hpp"

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <array>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::store::redis {

namespace {

using state = reply_reader::state;

std::size_t draw(const reply& all, std::size_t at, std::ostream& out) {
    const auto& one = all[at];
    static constexpr std::string_view names{"seibn#,(*%>"};
    out << names[static_cast<std::size_t>(one.what)];
    if (one.children > 0 || one.what >= kind::array) {
        out << '[';
        auto next = at + 1;
        for (std::uint32_t child = 0; child < one.children; ++child) {
            next = draw(all, next, out);
        }
        out << ']';
        return next;
    }
    if (one.what == kind::integer || one.what == kind::boolean) {
        out << one.number;
    } else if (one.what != kind::null) {
        out << one.text.size() << '"' << one.text << '"';
    }
    out << ' ';
    return at + 1;
}

std::string drawn(const reply& all) {
    std::ostringstream out;
    EXPECT_EQ(draw(all, 0, out), all.size());
    return out.str();
}

/// All replies in `bytes`, drawn; then "?" if something is left over, "!" if it is broken.
std::string read_all(std::string_view bytes, std::size_t step = 1U << 30U) {
    reply_reader reader;
    std::string seen;
    std::size_t fed = 0;
    for (;;) {
        const auto how = reader.next();
        if (how == state::complete) {
            seen += drawn(reader.current()) + ";";
        } else if (how == state::broken) {
            EXPECT_FALSE(reader.fault().empty());
            EXPECT_EQ(reader.next(), state::broken) << "it stays so";
            return seen + "!";
        } else if (fed == bytes.size()) {
            return seen;
        } else {
            const auto size = std::min(step, bytes.size() - fed);
            reader.feed(bytes.substr(fed, size));
            fed += size;
        }
    }
}

}  // namespace

TEST(RedisProtocol, ReadsEveryTypeOfBothVersions) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"+OK\r\n", "s2\"OK\" ;"},
        {"+\r\n", "s0\"\" ;"},
        {"-ERR no\r\n", "e6\"ERR no\" ;"},
        {":-42\r\n:0\r\n", "i-42 ;i0 ;"},
        {"$3\r\na\r\n\r\n", "b3\"a\r\n\" ;"},
        {"$0\r\n\r\n$-1\r\n*-1\r\n_\r\n", "b0\"\" ;n ;n ;n ;"},
        {"*2\r\n*0\r\n*1\r\n:1\r\n", "*[*[]*[i1 ]];"},
        {"#t\r\n#f\r\n", "#1 ;#0 ;"},
        {",1.5\r\n,inf\r\n(12345678901234567890\r\n",
         ",3\"1.5\" ;,3\"inf\" ;(20\"12345678901234567890\" ;"},
        {"!5\r\nERR x\r\n", "e5\"ERR x\" ;"},
        {"=7\r\ntxt:abc\r\n", "b3\"abc\" ;"},
        {"%1\r\n+k\r\n:1\r\n~1\r\n:2\r\n", "%[s1\"k\" i1 ];*[i2 ];"},
        {">2\r\n+message\r\n+x\r\n", ">[s7\"message\" s1\"x\" ];"},
        {"|1\r\n+ttl\r\n*1\r\n:3\r\n:7\r\n", "i7 ;"},
        {"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n", "*[i1 i2 ];"},
    };
    for (const auto& [bytes, expected] : cases) {
        EXPECT_EQ(read_all(bytes), expected);
        EXPECT_EQ(read_all(bytes, 1), expected) << "byte by byte";
    }
}

TEST(RedisProtocol, RefusesWhatTheProtocolDoesNotAllow) {
    for (const std::string bytes : {"HTTP/1.1 400\r\n",
                                    "\r\n",
                                    "+a\nb\r\n",
                                    "+a\rb",
                                    ":\r\n",
                                    ":1x\r\n",
                                    ":+1\r\n",
                                    ":01\r\n",
                                    ":99999999999999999999\r\n",
                                    "$-2\r\n",
                                    "$3\r\nabcd\r\n",
                                    "$x\r\n",
                                    "*-2\r\n",
                                    "~-1\r\n",
                                    "%-1\r\n",
                                    ">0\r\n",
                                    "*1\r\n>1\r\n:1\r\n",
                                    "#x\r\n",
                                    "_x\r\n",
                                    "=2\r\nab\r\n",
                                    ",\r\n",
                                    ",1x\r\n",
                                    "(1.5\r\n",
                                    "$?\r\n",
                                    "*?\r\n",
                                    "|0\r\n",
                                    "$-1x\r\n"}) {
        const auto seen = read_all(bytes);
        EXPECT_TRUE(seen.ends_with("!")) << bytes << " gave " << seen;
        EXPECT_EQ(read_all(bytes, 1), seen);
    }
}

TEST(RedisProtocol, LimitsSizeCountAndDepth) {
    reply_limits small;
    small.bytes = 100;
    small.nodes = 10;
    small.depth = 3;
    const auto broken = [&](std::string_view bytes) {
        reply_reader reader{small};
        reader.feed(bytes);
        return reader.next() == state::broken;
    };
    EXPECT_TRUE(broken("$101\r\n"));
    EXPECT_FALSE(broken("$90\r\n"));
    EXPECT_TRUE(broken("*11\r\n"));
    EXPECT_FALSE(broken("*9\r\n"));
    EXPECT_TRUE(broken("%6\r\n"));
    EXPECT_TRUE(broken("*1\r\n*1\r\n*1\r\n*1\r\n"));
    EXPECT_FALSE(broken("*1\r\n*1\r\n*1\r\n:1\r\n"));
    EXPECT_TRUE(broken("*2\r\n*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n*6\r\n:1\r\n:1\r\n:1\r\n"));
    EXPECT_TRUE(broken("+" + std::string(70'000, 'x')));
    EXPECT_TRUE(broken(std::string(40, ':')));
}

TEST(RedisProtocol, WritesCommands) {
    std::string out;
    write_command(out, {"SET", "k\r\n", ""});
    EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
    out.clear();
    command_writer writer{out};
    writer.begin(1);
    writer.word(std::int64_t{-5});
    EXPECT_EQ(out, "*1\r\n$2\r\n-5\r\n");
}

namespace {

class bytes_of_chance {
  public:
    explicit bytes_of_chance(unsigned seed) : random_(seed) {}
    std::size_t below(std::size_t limit) { return random_() % limit; }

    std::string text(std::size_t longest) {
        std::string made(below(longest + 1), '\0');
        for (auto& byte : made) {
            byte = static_cast<char>(below(256));
        }
        return made;
    }
    /// A reply of RESP2.
    std::string reply(unsigned depth = 0) {
        switch (below(depth < 5 ? 7 : 5)) {
            case 0:
                return "+" + line() + "\r\n";
            case 1:
                return "-" + line() + "\r\n";
            case 2:
                return ":" + std::to_string(static_cast<std::int64_t>(random_()) >> below(64)) +
                       "\r\n";
            case 3:
                return below(4) == 0 ? "$-1\r\n" : "*-1\r\n";
            case 4: {
                const auto bulk = text(20);
                return "$" + std::to_string(bulk.size()) + "\r\n" + bulk + "\r\n";
            }
            default: {
                const auto count = below(4);
                auto made = "*" + std::to_string(count) + "\r\n";
                for (std::size_t at = 0; at < count; ++at) {
                    made += reply(depth + 1);
                }
                return made;
            }
        }
    }
    std::string damaged(std::string bytes) {
        static constexpr std::string_view telling{"+-:$*_\r\n0123456789\0x"};
        for (auto changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) {
            const auto at = below(bytes.size());
            switch (below(3)) {
                case 0:
                    bytes[at] = telling[below(telling.size())];
                    break;
                case 1:
                    bytes.erase(at, 1 + below(3));
                    break;
                default:
                    bytes.insert(at, 1, telling[below(telling.size())]);
            }
        }
        return bytes;
    }

  private:
    std::string line() {
        auto made = text(10);
        std::erase_if(made, [](char one) { return one == '\r' || one == '\n'; });
        return made;
    }
    std::mt19937_64 random_;
};

void draw(const redisReply& one, std::ostream& out) {
    switch (one.type) {
        case REDIS_REPLY_ARRAY:
            out << "*[";
            for (std::size_t at = 0; at < one.elements; ++at) {
                draw(*one.element[at], out);
            }
            out << ']';
            return;
        case REDIS_REPLY_INTEGER:
            out << 'i' << one.integer << ' ';
            return;
        case REDIS_REPLY_NIL:
            out << "n ";
            return;
        default:
            out << (one.type == REDIS_REPLY_STATUS  ? 's'
                    : one.type == REDIS_REPLY_ERROR ? 'e'
                                                    : 'b')
                << one.len << '"' << std::string_view{one.str, static_cast<std::size_t>(one.len)}
                << "\" ";
    }
}

std::string read_by_hiredis(std::string_view bytes) {
    const std::unique_ptr<redisReader, void (*)(redisReader*)> reader{redisReaderCreate(),
                                                                      redisReaderFree};
    redisReaderFeed(reader.get(), bytes.data(), bytes.size());
    std::ostringstream out;
    for (;;) {
        void* found = nullptr;
        if (redisReaderGetReply(reader.get(), &found) != REDIS_OK) {
            out << '!';
            return out.str();
        }
        if (found == nullptr) {
            return out.str();
        }
        draw(*static_cast<redisReply*>(found), out);
        out << ';';
        freeReplyObject(found);
    }
}

}  // namespace

TEST(RedisProtocol, ReadsWhatHiredisReads) {
    for (unsigned seed = 0; seed < 10'000; ++seed) {
        bytes_of_chance chance{seed};
        const auto bytes = chance.reply() + chance.reply();
        const auto ours = read_all(bytes);
        ASSERT_EQ(ours, read_by_hiredis(bytes)) << "seed " << seed;
        ASSERT_EQ(read_all(bytes, 1 + chance.below(5)), ours) << "seed " << seed;
    }
}

namespace {

bool speaks_resp3(std::string_view bytes) {
    bool begins = true;
    for (const char one : bytes) {
        if (begins && std::string_view{"_#,(!=~%>|"}.find(one) != std::string_view::npos) {
            return true;
        }
        begins = one == '\n';
    }
    return false;
}

}  // namespace

// Ours may refuse more; what it takes, hiredis takes, and reads the same in it.
TEST(RedisProtocol, TakesNoDamagedReplyThatHiredisReadsInAnotherWay) {
    unsigned refused = 0;
    for (unsigned seed = 0; seed < 30'000; ++seed) {
        bytes_of_chance chance{seed};
        const auto bytes = chance.damaged(chance.reply());
        const auto ours = read_all(bytes);
        ASSERT_EQ(read_all(bytes, 1 + chance.below(5)), ours) << "seed " << seed;
        if (speaks_resp3(bytes)) {
            continue;  // which hiredis of Debian 12 does not know
        }
        const auto theirs = read_by_hiredis(bytes);
        if (ours.ends_with("!")) {
            ++refused;
            ASSERT_TRUE(theirs.starts_with(ours.substr(0, ours.size() - 1))) << "seed " << seed;
        } else {
            // Of a reply that is not whole yet, either may know already that it never will be.
            ASSERT_TRUE(theirs == ours || theirs == ours + "!")
                << "seed " << seed << ": " << ::testing::PrintToString(bytes) << " is to us "
                << ours << ", to them " << theirs;
        }
    }
    EXPECT_GT(refused, 1000U) << "the damage is worth the name";
}

TEST(RedisProtocol, CommandsAreReadAsTheyWereWritten) {
    for (unsigned seed = 0; seed < 1000; ++seed) {
        bytes_of_chance chance{seed};
        std::vector<std::string> words;
        std::vector<std::string_view> views;
        for (std::size_t count = 1 + chance.below(5); count > 0; --count) {
            words.push_back(chance.text(30));
        }
        std::string expected = "*[";
        for (const auto& word : words) {
            views.emplace_back(word);
            expected += "b" + std::to_string(word.size()) + "\"" + word + "\" ";
        }
        std::string bytes;
        write_command(bytes, views);
        ASSERT_EQ(read_all(bytes), expected + "];");
    }
}

}  // namespace dibs::store::redis
