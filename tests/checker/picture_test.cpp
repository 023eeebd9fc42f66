// SPDX-License-Identifier: Apache-2.0
// The page is complete in itself, well-formed, and shows nothing of the history as markup.
#include "checker/picture.hpp"

#include "checker/timeline.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <vector>

namespace dibs_checker {
namespace {

using namespace testing;

std::string page_of(const std::string& text) {
    const auto all = read(text);
    std::ostringstream into;
    write_picture(into, all, judged(all));
    return into.str();
}

/// Empty when each element is closed in the right order; else what is not.
std::string unbalanced(const std::string& page) {
    static const std::set<std::string> void_elements{"meta", "!DOCTYPE"};
    std::vector<std::string> open;
    for (auto at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
        const auto end = page.find('>', at);
        if (end == std::string::npos) {
            return "an element without an end";
        }
        auto tag = page.substr(at + 1, end - at - 1);
        const bool closing = tag.front() == '/';
        const bool empty = tag.back() == '/';
        const auto name =
            tag.substr(closing ? 1 : 0, tag.find_first_of(" /", 1) - (closing ? 1 : 0));
        if (closing) {
            if (open.empty() || open.back() != name) {
                return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
            }
            open.pop_back();
        } else if (!empty && !void_elements.contains(name)) {
            open.push_back(name);
        }
    }
    return open.empty() ? "" : open.back() + " stays open";
}

TEST(Picture, IsWellFormedForEveryHistoryThatWeHave) {
    for (const auto* kind : {"bad", "good"}) {
        for (const auto& file : files(kind)) {
            const auto page = page_of(text_of(file));
            EXPECT_EQ(unbalanced(page), "") << file;
            EXPECT_NE(page.find("<svg"), std::string::npos) << file;
            EXPECT_EQ(page.find("=\"nan\""), std::string::npos) << file;
        }
    }
}

TEST(Picture, NeedsNoNetwork) {
    const auto page = page_of(text_of(files("bad").front()));
    for (const auto* word :
         {"http://", "https://", "<script", "<img", "<link", "url(", "@import"}) {
        EXPECT_EQ(page.find(word), std::string::npos) << word;
    }
    EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Picture, ShowsWhatIsInTheHistoryAsText) {
    const std::string nasty = R"(</svg><script>alert(1)</script>&\"')";
    const auto page = page_of(
        R"({"seq":0,"sim_ns":0,"op":"plan","format":1,"note":")" + nasty + "\"}\n" +
        R"({"seq":1,"sim_ns":1,"op":"fault","ph":"at","name":")" + nasty + R"(","proc":")" + nasty +
        "\"}\n" + R"({"seq":2,"sim_ns":2,"op":"grant","store_ns":2,"store":")" + nasty +
        R"(","key":")" + nasty + R"(","holder":")" + nasty +
        R"(","fence":2,"ttl_ns":9,"store_expires_ns":99})" + "\n" +
        R"({"seq":3,"sim_ns":3,"op":"grant","store_ns":3,"store":")" + nasty + R"(","key":")" +
        nasty + R"(","holder":"h2","fence":1,"ttl_ns":9,"store_expires_ns":99})" + "\n" +
        R"({"seq":4,"sim_ns":4,"op":"write","ph":"inv","call":1,"proc":")" + nasty +
        R"(","key":"k","value":")" + nasty + "\"}\n" +
        R"({"seq":5,"sim_ns":5,"op":"write","ph":"fail","call":1,"proc":")" + nasty +
        R"(","key":"k","error":")" + nasty + "\"}\n");
    EXPECT_EQ(page.find("<script"), std::string::npos);
    EXPECT_EQ(unbalanced(page), "");
    EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

TEST(Picture, EscapesWhatMarkupIsMadeOf) {
    EXPECT_EQ(escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    EXPECT_EQ(escaped(std::string{"a\x01"
                                  "b\n"}),
              "a?b\n");
}

/// The number or word behind the name, from `at` on.
std::pair<std::size_t, std::size_t> place_of(const std::string& text,
                                             const std::string& name,
                                             std::size_t at) {
    const auto label = "\"" + name + "\":";
    const auto begin = text.find(label, at) + label.size();
    return {begin, text.find_first_of(",}", begin)};
}

TEST(Picture, ShowsTheExcerptOfALongHistoryAlone) {
    auto text = sound_history(1, 4'000);
    // A read in the middle returns what was written first, long ago.
    const auto read_at = text.find("\"op\":\"read\",\"ph\":\"ok\"", text.size() / 2);
    ASSERT_NE(read_at, std::string::npos);
    const auto [key, key_end] = place_of(text, "key", read_at);
    const auto name = text.substr(key, key_end - key);
    std::size_t write_at = 0;
    do {
        write_at = text.find("\"op\":\"write\",\"ph\":\"inv\"", write_at + 1);
    } while (text.compare(place_of(text, "key", write_at).first, name.size(), name) != 0);
    ASSERT_LT(write_at, read_at);
    const auto [old, old_end] = place_of(text, "value", write_at);
    const auto [value, value_end] = place_of(text, "value", read_at);
    text.replace(value, value_end - value, text.substr(old, old_end - old));
    const auto page = page_of(text);
    EXPECT_NE(page.find("C4: broken"), std::string::npos);
    EXPECT_NE(page.find("events are left out here"), std::string::npos);
    EXPECT_LT(page.size(), 300'000U);
}

}  // namespace
}  // namespace dibs_checker
