// SPDX-License-Identifier: Apache-2.0
#pragma once
// One connection to the server by libpq, which never blocks. Whoever owns it waits for its
// descriptor and asks it to go on.
//
//   closed ──open──▶ connecting ──▶ greeting ──▶ ready
//     ▲                  │             │           │
//     └──────────────────┴── fault ────┴───────────┘
//
// Greeting: it learns whether the session is its own, or one that a pooler lends it for a statement
// at a time. An own one is set up, and the statements that matter are prepared in it; a lent one is
// left as it is. One that keeps locks begins as such once the tables are there.
//
// Thread safety: none.

#include "core/time.hpp"
#include "store/postgres/address.hpp"
#include "store/postgres/carrier.hpp"
#include "store/postgres/host_order.hpp"
#include "store/postgres/statements.hpp"
#include "store/postgres/trouble.hpp"
#include "store/postgres/wire.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace dibs::store::postgres {

class session;

class link final : public carrier {
  public:
    enum class phase : std::uint8_t { closed, connecting, greeting, ready };

    /// A server that has been asked and says nothing for so long is given up.
    static constexpr core::nanoseconds silence_max = std::chrono::seconds{3};

    /// Not empty: the channel that an own session listens to. Not null: what is to be this session,
    /// and nothing else.
    link(const address& where,
         const statements& texts,
         std::string channel,
         session* kept = nullptr)
        : where_(where), texts_(texts), channel_(std::move(channel)), kept_(kept) {}
    ~link() = default;

    /// Begins. May be `closed` afterwards: see `fault`. Looks the host up, which may take as long as
    /// the host's resolver does.
    void open(core::instant now);
    void close() noexcept;
    /// Its patience is over: goes on with the next host of the URL, each for its share of the patience, else fails.
    void no_answer(core::instant now);
    void fail(trouble why) noexcept;
    /// In a forked child: lets go of the connection, which is the parent's, without a word to the
    /// server.
    void abandon() noexcept;

    /// From now on, and in every connection to come, the statements exist, so that they can be
    /// prepared. An open connection greets once more.
    void statements_exist(core::instant now);

    /// Whether it greets once more now: statements could not be prepared a while ago, since somebody
    /// had locked a table, and are to be by now.
    bool prepares_again(core::instant now);

    /// A pooler lends this session, and sessions to come, for as long as the connection lasts. An
    /// open one greets once more.
    void stays(core::instant now);

    [[nodiscard]] phase at() const noexcept { return phase_; }
    [[nodiscard]] bool ready() const noexcept { return phase_ == phase::ready; }
    [[nodiscard]] core::instant opened() const noexcept { return opened_; }
    [[nodiscard]] core::instant last_heard() const noexcept { return heard_; }
    [[nodiscard]] core::instant patience_ends() const noexcept;
    /// A pooler lends us the session; known once it is ready.
    [[nodiscard]] bool pooled() const noexcept { return pooled_; }
    [[nodiscard]] int process() const noexcept { return process_; }
    [[nodiscard]] PGconn* raw() const noexcept { return connection_.get(); }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    /// What to wait for, as poll(2) says it.
    [[nodiscard]] short wanted() const noexcept { return wanted_; }

    /// After poll(2): connects, greets, writes what is left, receives. False: it is closed now.
    bool go_on(core::instant now);

    bool send(statement which, const parameters& with) override;
    bool send_text(const std::string& sql) override;
    [[nodiscard]] bool is_set_up() const noexcept override { return prepared_; }
    [[nodiscard]] bool busy() const noexcept { return busy_; }
    /// Whether the other side has hung up while nobody listened. False: it is closed now.
    bool still_there();

    /// The reply to what was sent, once it is whole.
    [[nodiscard]] std::optional<reply> take();
    /// Whether it is closed, or closes now, since the other side is gone.
    bool hung_up();
    /// What somebody notified of, one after the other.
    [[nodiscard]] std::optional<std::string> notification();

    /// Why it is closed.
    [[nodiscard]] const trouble& fault() const noexcept { return fault_; }

  private:
    enum class question : std::uint8_t { none, who, settings, begin, prepare };

    static void note_warning(void* self, const PGresult* told);
    void connect(core::instant now);
    void poll_connecting(core::instant now);
    void ask(question what);
    void prepare_next();
    void hear_greeting();
    void hear_who(const PGresult& told);
    bool flush();
    void broke();

    const address& where_;
    const statements& texts_;
    const std::string channel_;
    session* const kept_;
    bool stays_ = false;
    bool exist_ = false;
    phase phase_ = phase::closed;
    std::unique_ptr<PGconn, freeing> connection_;
    int descriptor_ = -1;
    short wanted_ = 0;
    int process_ = 0;
    bool pooled_ = false;
    std::size_t prepared_so_far_ = 0;
    bool prepared_ = false;
    std::optional<core::instant> prepares_at_;
    bool busy_ = false;
    bool ended_ = false;  ///< the server said so
    question asked_ = question::none;
    host_order order_;
    std::size_t begun_with_ = 1;  ///< how many of the hosts since it was opened
    core::instant opened_{};
    core::instant heard_{};
    result_ptr last_;
    std::string warning_;
    trouble fault_;
};

}  // namespace dibs::store::postgres
