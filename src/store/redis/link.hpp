// SPDX-License-Identifier: Apache-2.0
#pragma once
// One connection to the server: made, greeted, read and written without ever blocking. Whoever owns
// it waits for its descriptor and asks it to go on.
//
//   closed ──open──▶ connecting ──▶ securing ──▶ greeting ──▶ ready
//     ▲                  │              │            │          │
//     └──────────────────┴── fault ─────┴────────────┴──────────┘
//
// Only what speaks TLS is secured; the others are greeted at once.
//
// Thread safety: none.

#include "core/time.hpp"
#include "store/redis/address.hpp"
#include "store/redis/resp.hpp"
#include "store/redis/tls_session.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

struct addrinfo;

namespace dibs::store::redis {

class link {
  public:
    enum class phase : std::uint8_t { closed, connecting, securing, greeting, ready };

    /// A server that has been asked and says nothing for so long is given up.
    static constexpr core::nanoseconds silence_max = std::chrono::seconds{2};

    explicit link(const address& where) noexcept : where_(where) {}
    link(const link&) = delete;
    link& operator=(const link&) = delete;
    ~link() { close(); }

    /// Begins. May be `closed` afterwards: see `fault`. Looks the host up, which may take as long as
    /// the host's resolver does.
    void open(core::instant now);
    void close() noexcept;

    [[nodiscard]] phase at() const noexcept { return phase_; }
    [[nodiscard]] bool ready() const noexcept { return phase_ == phase::ready; }
    [[nodiscard]] core::instant opened() const noexcept { return opened_; }
    [[nodiscard]] core::instant last_heard() const noexcept { return heard_; }

    [[nodiscard]] int descriptor() const noexcept { return socket_; }
    /// What to wait for, as poll(2) says it.
    [[nodiscard]] short wanted() const noexcept;

    /// Until it is ready: how long what is being done now may take.
    [[nodiscard]] core::instant patience_ends() const noexcept;
    /// At that time: tries the next address of the host, or fails. False: it is closed now.
    bool lose_patience(core::instant now);

    /// After poll(2): connects, greets, writes what is left, receives. False: it is closed now.
    bool go_on(short events, core::instant now);

    /// Where commands are appended; `flush` sends them.
    [[nodiscard]] std::string& out() noexcept { return out_; }
    bool flush();
    [[nodiscard]] bool all_sent() const noexcept { return sent_ == out_.size(); }
    /// Bytes that were given to the server, and those that were appended, since `open`.
    [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
    [[nodiscard]] std::uint64_t appended() const noexcept {
        return written_ + (out_.size() - sent_);
    }
    /// Whether the other side has hung up while nobody listened. False: it is closed now.
    bool still_there();

    /// Whether the server may say something unasked between its replies (RESP3), and so be
    /// subscribed to here.
    [[nodiscard]] bool takes_pushes() const noexcept { return takes_pushes_; }

    /// The next reply after the greeting. `broken`: it is closed now.
    [[nodiscard]] reply_reader::state next();
    [[nodiscard]] const reply& current() const noexcept { return in_.current(); }
    [[nodiscard]] std::size_t size_of_current() const noexcept { return in_.size(); }

    /// Why it is closed.
    [[nodiscard]] std::error_code fault() const noexcept { return fault_; }
    [[nodiscard]] const std::string& fault_text() const noexcept { return fault_text_; }
    void fail(std::error_code fault, std::string text) noexcept;

    /// Says that nothing more will come from here. The server hangs up once it has seen that.
    void finish() noexcept;

  private:
    enum class question : std::uint8_t { hello, authenticate, name, select };

    void try_next_address(core::instant now);
    void connected();
    bool secure();
    void greet();
    void greet_in_the_old_way();
    void ask(question what, std::initializer_list<std::string_view> words);
    void hear_greetings();
    void hear_greeting(const reply& told);
    void hear_hello(const reply& told);
    bool receive(core::instant now);
    bool receive_secured(core::instant now);
    bool flush_secured();
    bool break_secured();
    [[nodiscard]] std::string system_text(const char* what, int code) const;

    const address& where_;
    phase phase_ = phase::closed;
    int socket_ = -1;
    std::unique_ptr<tls_session> tls_;    // empty: in plain
    std::vector<std::string> addresses_;  // raw socket addresses that are still to be tried
    core::nanoseconds share_{};           // of each address in the time there is
    core::instant tried_{};               // when the present address was
    core::instant opened_{};
    core::instant heard_{};
    std::string out_;
    std::size_t sent_ = 0;
    std::uint64_t written_ = 0;
    reply_reader in_;
    std::vector<question> asked_;
    std::size_t heard_questions_ = 0;
    bool takes_pushes_ = false;
    std::error_code fault_;
    std::string fault_text_;
};

}  // namespace dibs::store::redis
