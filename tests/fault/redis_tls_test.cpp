// SPDX-License-Identifier: Apache-2.0
// The Redis store by TLS: a real server, certificates of the test's own, and what is wrong with
// them. Each refusal names what happened and what to do.

#include "redis_peer.hpp"
#include "store/redis/address.hpp"
#include "store/redis/link.hpp"
#include "store/redis/plain_commands.hpp"
#include "store/redis/tls_session.hpp"
#include "store/url.hpp"
#include "support/relay.hpp"
#include "support/test_certificates.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

namespace dibs::testing {

namespace {

/// What opening a store told.
struct told {
    std::error_code error;
    std::string text;

    [[nodiscard]] bool has(const std::string& part) const {
        return text.find(part) != std::string::npos;
    }
};

struct RedisTls : ::testing::Test {
    static void SetUpTestSuite() { made = std::make_unique<test_certificates>(); }
    static void TearDownTestSuite() { made.reset(); }

    static std::string url(int port, const std::string& options) {
        return "rediss://127.0.0.1:" + std::to_string(port) + "?" + options;
    }
    static std::string trusted() { return "ca=" + made->ca(); }
    static std::string by(const proof& own) {
        return "&cert=" + own.certificate + "&key=" + own.key;
    }

    static store::redis::address address_of(const std::string& text) {
        std::string fault;
        const auto parts = store::parse_url(text, fault);
        auto where = parts ? store::redis::parse_address(text, parts->options, fault)
                           : std::optional<store::redis::address>{};
        if (!where) {
            throw std::invalid_argument{fault};
        }
        return std::move(*where);
    }
    /// Opens, and if that went well acquires and releases.
    static told work(const std::string& text, const redis_server& any) {
        redis_peer peer{any};
        peer.options.where = address_of(text);
        if (const auto error = peer.open()) {
            return {error, peer.detail};
        }
        const auto granted = peer.ask(acquire_of("k", holder_of(1), 60s));
        EXPECT_EQ(granted.what, verdict::granted) << granted.detail;
        EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
        return {};
    }

    static std::unique_ptr<test_certificates> made;
};
std::unique_ptr<test_certificates> RedisTls::made;

}  // namespace

TEST_F(RedisTls, WorksWithTheCaOfItsServer) {
    for (const std::string versions : {"TLSv1.2", "TLSv1.3"}) {
        const redis_server server{made->server(), {"--tls-protocols", versions}};
        const auto well = work(url(server.port(), trusted()), server);
        EXPECT_FALSE(well.error) << versions << ": " << well.text;
        const auto named = work(url(server.port(), trusted() + "&sni=locks.example"), server);
        EXPECT_FALSE(named.error) << named.text;
        const auto local =
            work("rediss://localhost:" + std::to_string(server.port()) + "/?" + trusted(), server);
        EXPECT_FALSE(local.error) << local.text;
        // The server's own certificate may be trusted instead of whoever signed it.
        const auto pinned = work(url(server.port(), "ca=" + made->at("server.pem")), server);
        EXPECT_FALSE(pinned.error) << pinned.text;
    }
}

TEST_F(RedisTls, RefusesAServerThatNobodyTrusts) {
    const redis_server server{made->server(), {}};
    const auto unknown = work(url(server.port(), ""), server);
    EXPECT_EQ(unknown.error, errc::permission_denied);
    EXPECT_TRUE(unknown.has("issued by CN=dibs test CA")) << unknown.text;
    EXPECT_TRUE(unknown.has("ca=FILE")) << unknown.text;
    const test_certificates others{"somebody else"};
    const auto wrong = work(url(server.port(), "ca=" + others.ca()), server);
    EXPECT_EQ(wrong.error, errc::permission_denied);
    EXPECT_TRUE(wrong.has("issued by CN=dibs test CA")) << wrong.text;
    EXPECT_TRUE(wrong.has(others.ca())) << wrong.text;
}

TEST_F(RedisTls, RefusesACertificateOfAnotherName) {
    const redis_server server{made->sign("elsewhere", "DNS:locks.example,IP:10.0.0.7"), {}};
    for (const std::string options : {"", "&sni=other.example", "&sni=10.0.0.8"}) {
        const auto wrong = work(url(server.port(), trusted() + options), server);
        EXPECT_EQ(wrong.error, errc::permission_denied) << options;
        EXPECT_TRUE(wrong.has("is for locks.example, 10.0.0.7, not for")) << wrong.text;
    }
    for (const std::string name : {"locks.example", "locks.example.", "10.0.0.7"}) {
        const auto well = work(url(server.port(), trusted() + "&sni=" + name), server);
        EXPECT_FALSE(well.error) << name << ": " << well.text;
    }
}

TEST_F(RedisTls, RefusesACertificateOfAnotherTime) {
    const redis_server past{
        made->sign("past", "IP:127.0.0.1", "20200101000000Z", "20200201000000Z"), {}};
    const auto expired = work(url(past.port(), trusted()), past);
    EXPECT_EQ(expired.error, errc::permission_denied);
    EXPECT_TRUE(expired.has("expired on Feb  1 00:00:00 2020")) << expired.text;
    const redis_server future{
        made->sign("future", "IP:127.0.0.1", "20480101000000Z", "20490101000000Z"), {}};
    const auto early = work(url(future.port(), trusted()), future);
    EXPECT_EQ(early.error, errc::permission_denied);
    EXPECT_TRUE(early.has("not valid before Jan  1 00:00:00 2048")) << early.text;
}

TEST_F(RedisTls, ShowsACertificateToAServerThatAsksForOne) {
    const auto own = made->sign("client", "DNS:client.example");
    const test_certificates others{"somebody else"};
    const auto foreign = others.sign("client", "DNS:client.example");
    // In one file.
    const proof both{made->at("both.pem"), made->at("both.pem")};
    const auto line = "cat " + own.certificate + " " + own.key + " >" + both.key;
    ASSERT_EQ(std::system(line.c_str()), 0);
    ASSERT_EQ(::chmod(both.key.c_str(), 0600), 0);
    for (const std::string versions : {"TLSv1.2", "TLSv1.3"}) {
        const redis_server server{made->server(),
                                  {"--tls-protocols",
                                   versions,
                                   "--tls-auth-clients",
                                   "yes",
                                   "--tls-ca-cert-file",
                                   made->ca()}};
        const auto none = work(url(server.port(), trusted()), server);
        EXPECT_EQ(none.error, errc::permission_denied) << versions;
        EXPECT_TRUE(none.has("asks for a client certificate")) << versions << ": " << none.text;
        const auto wrong = work(url(server.port(), trusted() + by(foreign)), server);
        EXPECT_EQ(wrong.error, errc::permission_denied) << versions;
        EXPECT_TRUE(wrong.has("refuses the client certificate")) << versions << ": " << wrong.text;
        const auto well = work(url(server.port(), trusted() + by(own)), server);
        EXPECT_FALSE(well.error) << versions << ": " << well.text;
        const auto joint =
            work(url(server.port(), trusted() + "&cert=" + both.certificate), server);
        EXPECT_FALSE(joint.error) << versions << ": " << joint.text;
    }
}

TEST_F(RedisTls, RefusesFilesThatItCannotUse) {
    const redis_server server{made->server(), {}};
    const auto own = made->sign("own", "DNS:own.example");
    const auto other = made->sign("other", "DNS:other.example");
    const auto open_to_all = made->sign("open", "DNS:open.example");
    ASSERT_EQ(::chmod(open_to_all.key.c_str(), 0644), 0);
    const auto locked = made->at("locked.key");
    made->run("pkcs8 -topk8 -passout pass:secret -in " + own.key + " -out " + locked);
    ASSERT_EQ(::chmod(locked.c_str(), 0600), 0);
    for (const auto& [options, error, part] :
         {std::tuple{"ca=/nowhere/ca.pem", errc::invalid_url, "No such file"},
          std::tuple{"ca=/etc/hostname", errc::invalid_url, "holds no certificate"},
          std::tuple{"cert=/nowhere/c.pem", errc::invalid_url, "No such file"}}) {
        const auto wrong = work(url(server.port(), options), server);
        EXPECT_EQ(wrong.error, error) << options;
        EXPECT_TRUE(wrong.has(part)) << wrong.text;
    }
    for (const auto& [shown, error, part] :
         {std::tuple{
              proof{own.certificate, own.certificate}, errc::invalid_url, "holds no private key"},
          std::tuple{proof{own.certificate, other.key}, errc::invalid_url, "another key"},
          std::tuple{proof{own.certificate, locked}, errc::invalid_url, "passphrase"},
          std::tuple{open_to_all, errc::permission_denied, "chmod 600"}}) {
        const auto wrong = work(url(server.port(), trusted() + by(shown)), server);
        EXPECT_EQ(wrong.error, error) << part;
        EXPECT_TRUE(wrong.has(part)) << wrong.text;
        EXPECT_FALSE(wrong.has("PRIVATE")) << wrong.text;
    }
}

TEST_F(RedisTls, TellsAPortOfTheOtherKind) {
    const redis_server plain;
    const auto no_tls = work(url(plain.port(), trusted()), plain);
    EXPECT_EQ(no_tls.error, errc::store_unreachable);
    EXPECT_TRUE(no_tls.has("write redis://")) << no_tls.text;
    const redis_server secured{made->server(), {}};
    const auto no_plain = work("redis://127.0.0.1:" + std::to_string(secured.port()), secured);
    EXPECT_EQ(no_plain.error, errc::store_unreachable);
    EXPECT_TRUE(no_plain.has("write rediss://")) << no_plain.text;
    // Others than Redis say so by an alert.
    relay line{plain.socket()};
    line.replies({.instead = std::string{"\x15\x03\x01\x00\x02\x02\x46", 7}});
    const auto told_so = work(line.url(), plain);
    EXPECT_EQ(told_so.error, errc::store_unreachable);
    EXPECT_TRUE(told_so.has("the server speaks TLS")) << told_so.text;
}

TEST_F(RedisTls, NamesASilentServer) {
    const redis_server server{made->server(), {}};
    relay line{std::to_string(server.port())};
    line.swallow_all();
    const auto silent = work(url(line.port(), trusted()), server);
    EXPECT_EQ(silent.error, errc::store_unreachable);
    EXPECT_TRUE(silent.has("does not answer TLS")) << silent.text;
}

// After each number of bytes, until one run is left alone.
TEST_F(RedisTls, IsCutAnywhereInTheHandshake) {
    const redis_server server{made->server(), {}};
    int cuts = 0;
    for (std::int64_t after = 1; after < 4000; after += 97) {
        relay line{std::to_string(server.port())};
        line.replies({.cut_after = after});
        redis_peer peer{server};
        peer.options.where = address_of(url(line.port(), trusted()));
        const auto error = peer.open();
        if (!error) {
            break;
        }
        ++cuts;
        ASSERT_EQ(error, errc::store_unreachable) << after << ": " << peer.detail;
        EXPECT_NE(peer.detail, "");
    }
    EXPECT_GT(cuts, 5);
}

TEST_F(RedisTls, BearsBytesThatComeOneByOneAndCutsInTheMiddle) {
    const redis_server server{made->server(), {}};
    relay line{std::to_string(server.port())};
    line.replies({.byte_by_byte = true});
    line.requests({.byte_by_byte = true});
    redis_peer peer{server};
    peer.options.where = address_of(url(line.port(), trusted()));
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(1), 60s)).what, verdict::granted);
    line.heal();
    line.cut();
    EXPECT_EQ(peer.insist(release_of("k", holder_of(1))).what, verdict::released);
    EXPECT_EQ(line.connections(), 2);
}

TEST_F(RedisTls, CarriesMoreThanASocketHoldsBothWays) {
    const redis_server server{made->server(), {}};
    store::redis::plain_commands line{url(server.port(), trusted())};
    std::string much(std::size_t{24} << 20U, 'a');
    for (std::size_t at = 0; at < much.size(); at += 4099) {
        much[at] = static_cast<char>('b' + at % 20);
    }
    EXPECT_TRUE(line.ask({"ECHO", much}) == much);
    EXPECT_EQ(line.ask({"PING"}), "PONG");
    // The answer counts, although the end of the connection comes along with it.
    for (int at = 0; at < 20; ++at) {
        store::redis::plain_commands leaving{url(server.port(), trusted())};
        EXPECT_EQ(leaving.ask({"QUIT"}), "OK") << at;
    }
}

// What waits is moved to another place in memory by what is appended.
TEST_F(RedisTls, TakesMoreWhileAPartWaitsToBeSent) {
    const redis_server server{made->server(), {}};
    const auto where = address_of(url(server.port(), trusted()));
    store::redis::link line{where};
    const core::instant some_time{1h};
    const auto step = [&] {
        pollfd one{line.descriptor(), line.wanted(), 0};
        const bool moves = ::poll(&one, 1, 5000) == 1;
        EXPECT_TRUE(moves) << "waited for what is there";
        return moves && line.go_on(one.revents, some_time);
    };
    line.open(some_time);
    while (!line.ready() && step()) {
    }
    ASSERT_TRUE(line.ready()) << line.fault_text();
    const std::string much(std::size_t{8} << 20U, 'a');
    int waited = 0;
    for (int at = 0; at < 4; ++at) {
        store::redis::write_command(line.out(), {"ECHO", much});
        ASSERT_TRUE(line.flush()) << line.fault_text();
        waited += line.all_sent() ? 0 : 1;
    }
    EXPECT_GT(waited, 1) << "nothing had to wait: the test shows nothing";
    int answers = 0;
    while (answers < 4 && step()) {
        while (line.next() == store::redis::reply_reader::state::complete) {
            EXPECT_TRUE(line.current().front().text == much);
            ++answers;
        }
    }
    EXPECT_EQ(answers, 4) << line.fault_text();
}

TEST_F(RedisTls, NoticesThatTheServerHasSaidFarewell) {
    redis_server server{made->server(), {}};
    redis_peer peer{server};
    peer.options.where = address_of(url(server.port(), trusted()));
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(1), 60s)).what, verdict::granted);
    for (int at = 0; at < 5; ++at) {
        // What was heard of just now is not looked at again.
        std::this_thread::sleep_for(30ms);
        EXPECT_EQ(server.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}), "1");
        const auto given = peer.ask(renew_of("k", holder_of(1), 60s));
        EXPECT_NE(given.took, effect::unknown) << at << ": " << given.detail;
    }
}

// The application's thread must not die of it.
TEST_F(RedisTls, RaisesNoSignal) {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    ::close(ends[1]);
    store::redis::tls_fault fault;
    const auto where = address_of(url(1, trusted()));
    const auto session = store::redis::begin_tls(where, ends[0], fault);
    ASSERT_NE(session, nullptr) << fault.text;
    EXPECT_EQ(session->handshake(), store::redis::tls_session::state::broken);
    EXPECT_EQ(session->fault().error, errc::store_unreachable);
    ::close(ends[0]);
}

}  // namespace dibs::testing
