// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/link.hpp"

#include "core/key.hpp"
#include "store/postgres/advisory/session.hpp"

#include <dibs/error.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dibs::store::postgres {

namespace {

using namespace std::chrono_literals;

/// How long it may take until the server has greeted, all hosts of the URL together.
constexpr core::nanoseconds patience = 5s;

/// Who we are talking to. A pooler tells a made-up process number when it is connected to.
constexpr const char* who_question =
    "SELECT pg_catalog.pg_backend_pid()::pg_catalog.text, "
    "pg_catalog.current_setting('server_version_num'), "
    "pg_catalog.current_setting('server_encoding'), "
    "pg_catalog.pg_is_in_recovery()::pg_catalog.text";

/// For a session of our own. Whatever the defaults of its user are, these hold for us; a statement
/// of ours that takes so long helps nobody any more, nor one that is no function and waits so long for
/// a row. Whatever the server believes of our tables, a key is looked up by its index, and no function
/// or operator of others is found in the place of the server's own. A row that a policy would hide (row
/// level security) is an error, since whoever does not see a holder would be let in.
constexpr const char* settings =
    "SET search_path = pg_catalog, pg_temp; SET row_security = off; SET synchronous_commit = on; "
    "SET statement_timeout = "
    "'10s'; "
    "SET idle_in_transaction_session_timeout = '10s'; SET idle_session_timeout = 0; "
    "SET default_transaction_isolation = 'read committed'; SET jit = off; "
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; "
    "SET enable_bitmapscan = off; SET enable_sort = off; SET lock_timeout = '5ms'";

/// For one whose locks must not stay for hours when this host vanishes.
constexpr const char* settings_of_kept =
    "; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = "
    "3; "
    "SET tcp_user_timeout = 25000";

constexpr int version_min = 140000;

constexpr std::string_view row_is_locked = "55P03";
/// Of statements that could not be prepared since a table was locked.
constexpr core::nanoseconds prepares_again_after = 1s;

std::string field(const PGresult& told, int which) {
    const char* text = ::PQresultErrorField(&told, which);
    return text == nullptr ? std::string{} : std::string{text};
}

std::optional<server_error> error_of(const PGresult* told) {
    const auto status = ::PQresultStatus(told);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        return std::nullopt;
    }
    server_error why;
    if (told != nullptr) {
        why.state = field(*told, PG_DIAG_SQLSTATE);
        why.words = field(*told, PG_DIAG_MESSAGE_PRIMARY);
        why.fatal = why.state.empty() || field(*told, PG_DIAG_SEVERITY_NONLOCALIZED) != "ERROR";
    } else {
        why.fatal = true;
    }
    return why;
}

}  // namespace

void link::open(core::instant now) {
    order_ = hosts_of(where_.uri);
    begun_with_ = 1;
    connect(now);
}

void link::no_answer(core::instant now) {
    if (phase_ == phase::connecting && begun_with_ < order_.count) {
        ++begun_with_;
        order_ = next_first(std::move(order_));
        connect(now);
        return;
    }
    fail({errc::store_unreachable, where_.shown + ": the server does not answer"});
}

void link::connect(core::instant now) {
    close();
    opened_ = now;
    heard_ = now;
    const auto name = "dibs " + std::to_string(::getpid());
    // What comes later wins: the URL over these, and these over nothing. But for the encoding: in
    // another one our UTF-8 would be other keys, of which those in UTF-8 know nothing.
    constexpr std::array<const char*, 10> names{"keepalives_idle",
                                                "keepalives_interval",
                                                "keepalives_count",
                                                "fallback_application_name",
                                                "dbname",
                                                "client_encoding",
                                                "host",
                                                "hostaddr",
                                                "port",
                                                nullptr};
    // Empty ones count for nothing.
    const std::array<const char*, 10> values{"10",
                                             "5",
                                             "3",
                                             name.c_str(),
                                             where_.uri.c_str(),
                                             "UTF8",
                                             order_.hosts.c_str(),
                                             order_.addresses.c_str(),
                                             order_.ports.c_str(),
                                             nullptr};
    connection_.reset(::PQconnectStartParams(names.data(), values.data(), 1));
    if (!connection_) {
        fail({errc::store_unreachable, where_.shown + ": no memory for a connection"});
        return;
    }
    ::PQsetErrorVerbosity(connection_.get(), PQERRORS_VERBOSE);
    ::PQsetNoticeReceiver(connection_.get(), note_warning, this);
    if (::PQstatus(connection_.get()) == CONNECTION_BAD) {
        broke();
        return;
    }
    phase_ = phase::connecting;
    // libpq wants to write first.
    descriptor_ = ::PQsocket(connection_.get());
    wanted_ = POLLOUT;
}

void link::close() noexcept {
    phase_ = phase::closed;
    if (kept_ != nullptr) {
        kept_->ended();
    }
    connection_.reset();
    descriptor_ = -1;
    wanted_ = 0;
    busy_ = false;
    prepared_ = false;
    prepared_so_far_ = 0;
    prepares_at_.reset();
    ended_ = false;
    asked_ = question::none;
    last_.reset();
    warning_.clear();
}

void link::abandon() noexcept {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
    static_cast<void>(connection_.release());
    close();
}

void link::fail(trouble why) noexcept {
    fault_ = std::move(why);
    close();
}

void link::broke() {
    const char* told = connection_ ? ::PQerrorMessage(connection_.get()) : "";
    fail(phase_ == phase::closed || phase_ == phase::connecting
             ? trouble_of_connecting(where_.shown, told)
             : trouble{errc::store_unreachable,
                       where_.shown + ": the connection broke: " +
                           trouble_of_connecting("", told).detail.substr(2)});
}

core::instant link::patience_ends() const noexcept {
    const auto shares = phase_ == phase::connecting ? static_cast<std::int64_t>(order_.count) : 1;
    return opened_ + patience / shares;
}

void link::note_warning(void* self, const PGresult* told) {
    const char* severity = ::PQresultErrorField(told, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity == nullptr) {
        return;
    }
    auto& mine = *static_cast<link*>(self);
    if (std::strcmp(severity, "WARNING") == 0) {
        mine.warning_ = field(*told, PG_DIAG_MESSAGE_PRIMARY);
    }
    // The last words of a session that did nothing.
    mine.ended_ =
        mine.ended_ || std::strcmp(severity, "FATAL") == 0 || std::strcmp(severity, "PANIC") == 0;
}

void link::poll_connecting(core::instant now) {
    switch (::PQconnectPoll(connection_.get())) {
        case PGRES_POLLING_FAILED:
            broke();
            return;
        case PGRES_POLLING_READING:
            wanted_ = POLLIN;
            break;
        case PGRES_POLLING_WRITING:
            wanted_ = POLLOUT;
            break;
        case PGRES_POLLING_OK:
            ::PQsetnonblocking(connection_.get(), 1);
            ::PQsetErrorVerbosity(connection_.get(), PQERRORS_DEFAULT);
            phase_ = phase::greeting;
            heard_ = now;
            descriptor_ = ::PQsocket(connection_.get());
            ask(question::who);
            return;
        default:
            break;
    }
    // It may have gone on to another host.
    descriptor_ = ::PQsocket(connection_.get());
}

void link::statements_exist(core::instant now) {
    exist_ = true;
    if (ready() && (!pooled_ || stays_) && !prepared_ && !busy_) {
        phase_ = phase::greeting;
        opened_ = now;
        ask(kept_ != nullptr ? question::begin : question::prepare);
    }
}

bool link::prepares_again(core::instant now) {
    if (!ready() || !exist_ || prepared_ || busy_ || !prepares_at_ || now < *prepares_at_) {
        return false;
    }
    prepares_at_.reset();
    phase_ = phase::greeting;
    opened_ = now;
    ask(question::prepare);
    return true;
}

void link::stays(core::instant now) {
    stays_ = true;
    if (ready() && pooled_ && !busy_) {
        phase_ = phase::greeting;
        opened_ = now;
        ask(question::settings);
    }
}

void link::ask(question what) {
    asked_ = what;
    if (what == question::who) {
        send_text(who_question);
    } else if (what == question::settings) {
        auto text = std::string{settings};
        if (kept_ != nullptr) {
            text += settings_of_kept;
        }
        if (!channel_.empty()) {
            text += "; LISTEN \"" + channel_ + "\"";
        }
        send_text(text);
    } else if (what == question::begin) {
        send_text(kept_->beginning(where_.quoted_schema(), pooled_));
    } else {
        prepare_next();
    }
}

void link::prepare_next() {
    const auto which = kept_statements[prepared_so_far_];
    busy_ = true;
    const bool sent =
        ::PQsendPrepare(
            connection_.get(), statements::name(which), texts_.text(which).c_str(), 0, nullptr) ==
            1 &&
        flush();
    if (!sent && connection_) {
        broke();
    }
}

void link::hear_greeting() {
    auto told = take();
    if (!told) {
        return;
    }
    if (!told->result) {
        broke();
        return;
    }
    const auto& result = *told->result;
    const auto status = ::PQresultStatus(&result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        const auto state = field(result, PG_DIAG_SQLSTATE);
        if (state.empty()) {
            // libpq's own words, not the server's.
            broke();
            return;
        }
        if (asked_ == question::prepare && state == row_is_locked) {
            // Somebody has the whole table. Steps go the whole way meanwhile, and are answered.
            prepares_at_ = heard_ + prepares_again_after;
            asked_ = question::none;
            phase_ = phase::ready;
            return;
        }
        fail(trouble_of(where_.shown, state, field(result, PG_DIAG_MESSAGE_PRIMARY)));
        return;
    }
    switch (asked_) {
        case question::who:
            hear_who(result);
            return;
        case question::settings:
            if (exist_) {
                ask(kept_ != nullptr ? question::begin : question::prepare);
                return;
            }
            break;
        case question::begin: {
            const bool begun = ::PQntuples(&result) == 1 && ::PQnfields(&result) == 2 &&
                               std::strcmp(::PQgetvalue(&result, 0, 0), "t") == 0;
            kept_->begun(begun, begun ? std::strtoul(::PQgetvalue(&result, 0, 1), nullptr, 10) : 0);
            if (!begun) {
                fail({errc::store_unreachable,
                      where_.shown +
                          ": the server has not ended the session before this one, which may have "
                          "locks of this process still"});
                return;
            }
            ask(question::prepare);
            return;
        }
        case question::prepare:
            if (++prepared_so_far_ < kept_statements.size()) {
                ask(question::prepare);
                return;
            }
            prepared_ = true;
            break;
        case question::none:
            break;
    }
    asked_ = question::none;
    phase_ = phase::ready;
}

void link::hear_who(const PGresult& told) {
    if (::PQntuples(&told) != 1 || ::PQnfields(&told) != 4) {
        fail({errc::store_refused,
              where_.shown + ": the server does not answer as PostgreSQL does"});
        return;
    }
    process_ = std::atoi(::PQgetvalue(&told, 0, 0));
    const int version = std::atoi(::PQgetvalue(&told, 0, 1));
    const std::string encoding = ::PQgetvalue(&told, 0, 2);
    if (version < version_min) {
        fail({errc::unsupported,
              where_.shown + ": the server is PostgreSQL " + std::to_string(version / 10000) +
                  "; dibs needs 14 or newer"});
        return;
    }
    if (encoding != "UTF8" && encoding != "SQL_ASCII") {
        fail({errc::unsupported,
              where_.shown + ": the database is encoded in " + core::printable(encoding) +
                  "; keys are UTF-8, so dibs needs a database in UTF8"});
        return;
    }
    if (std::strcmp(::PQgetvalue(&told, 0, 3), "true") == 0) {
        fail(trouble_of(where_.shown, "25006", "the server is in recovery"));
        return;
    }
    pooled_ = ::PQbackendPID(connection_.get()) != process_;
    if (pooled_ && !stays_) {
        asked_ = question::none;
        phase_ = phase::ready;
    } else {
        ask(question::settings);
    }
}

bool link::go_on(core::instant now) {
    if (phase_ == phase::closed) {
        return false;
    }
    if (phase_ == phase::connecting) {
        poll_connecting(now);
        return phase_ != phase::closed;
    }
    if (::PQconsumeInput(connection_.get()) == 0) {
        if (!busy_) {
            broke();
            return false;
        }
        // What the server said last, before it hung up, is still to be read.
    } else if (!flush()) {
        broke();
        return false;
    }
    heard_ = now;
    heard_ = now;
    if (phase_ == phase::greeting) {
        hear_greeting();
    }
    return phase_ != phase::closed;
}

bool link::flush() {
    const int left = ::PQflush(connection_.get());
    wanted_ = static_cast<short>(left > 0 ? POLLIN | POLLOUT : POLLIN);
    return left >= 0;
}

bool link::still_there() {
    pollfd one{descriptor_, POLLIN, 0};
    while (::poll(&one, 1, 0) > 0) {
        if (::PQconsumeInput(connection_.get()) == 0) {
            broke();
            return false;
        }
    }
    return !hung_up();
}

bool link::send(statement which, const parameters& with) {
    const auto seen = with.seen();
    const auto count = static_cast<int>(with.size());
    warning_.clear();
    const char* const kept_as = prepared_ ? statements::name(which) : nullptr;
    const int sent = kept_as != nullptr ? ::PQsendQueryPrepared(connection_.get(),
                                                                kept_as,
                                                                count,
                                                                seen.values.data(),
                                                                seen.lengths.data(),
                                                                seen.formats.data(),
                                                                1)
                                        : ::PQsendQueryParams(connection_.get(),
                                                              texts_.text(which).c_str(),
                                                              count,
                                                              nullptr,
                                                              seen.values.data(),
                                                              seen.lengths.data(),
                                                              seen.formats.data(),
                                                              1);
    if (sent == 0) {
        broke();
        return false;
    }
    busy_ = true;
    // A part of it may be on its way: what fails from now on is told by what is received.
    static_cast<void>(flush());
    return true;
}

bool link::send_text(const std::string& sql) {
    warning_.clear();
    if (::PQsendQuery(connection_.get(), sql.c_str()) == 0) {
        broke();
        return false;
    }
    busy_ = true;
    static_cast<void>(flush());
    return true;
}

std::optional<reply> link::take() {
    if (!busy_) {
        return std::nullopt;
    }
    while (::PQisBusy(connection_.get()) == 0) {
        result_ptr next{::PQgetResult(connection_.get())};
        if (next) {
            // Of several, the one that failed tells the most.
            if (!last_ || ::PQresultStatus(last_.get()) != PGRES_FATAL_ERROR) {
                last_ = std::move(next);
            }
            continue;
        }
        busy_ = false;
        reply whole;
        whole.result = std::move(last_);
        whole.warning = std::exchange(warning_, {});
        whole.error = error_of(whole.result.get());
        return whole;
    }
    return std::nullopt;
}

bool link::hung_up() {
    if (phase_ == phase::closed) {
        return true;
    }
    // Has libpq look at what came; a session is told of its end before its connection is closed.
    static_cast<void>(::PQisBusy(connection_.get()));
    if (ended_ || ::PQstatus(connection_.get()) == CONNECTION_BAD) {
        broke();
        return true;
    }
    return false;
}

std::optional<std::string> link::notification() {
    if (phase_ == phase::closed) {
        return std::nullopt;
    }
    auto* told = ::PQnotifies(connection_.get());
    if (told == nullptr) {
        return std::nullopt;
    }
    std::string key = told->extra;
    ::PQfreemem(told);
    return key;
}

}  // namespace dibs::store::postgres
