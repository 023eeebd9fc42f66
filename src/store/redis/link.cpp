// SPDX-License-Identifier: Apache-2.0
#include "store/redis/link.hpp"

#include "core/key.hpp"
#include "store/redis/refusals.hpp"

#include <dibs/error.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

namespace dibs::store::redis {

namespace {

constexpr std::size_t receive_at_once = std::size_t{64} << 10U;
/// How a server that speaks TLS complains of what does not: no reply of Redis begins like that.
constexpr std::string_view tls_alert = "\x15\x03";

/// The value of a key in a map, empty when it is not there. Values that are no text are passed over.
std::string_view value_of(const reply& told, std::string_view key) noexcept {
    std::size_t at = 1;
    for (std::uint32_t part = 0; part + 1 < told[0].children && at + 1 < told.size(); part += 2) {
        const auto& name = told[at];
        const auto& value = told[at + 1];
        if (name.text == key && value.children == 0) {
            return value.text;
        }
        // Over the value and what belongs to it.
        std::size_t left = 1;
        ++at;
        while (left > 0 && at < told.size()) {
            left += told[at].children;
            --left;
            ++at;
        }
    }
    return {};
}

/// The script needs what Redis 6.2 brought (`SET … PXAT`). A version that is no number is believed.
bool is_too_old(std::string_view version) noexcept {
    unsigned major = 0;
    unsigned minor = 0;
    const auto* const end = version.data() + version.size();
    const auto [dot, fault] = std::from_chars(version.data(), end, major);
    if (fault != std::errc{} || dot == end || *dot != '.' ||
        std::from_chars(dot + 1, end, minor).ec != std::errc{}) {
        return false;
    }
    return major < 6 || (major == 6 && minor < 2);
}

/// Of an answer to a greeting: as to a step, since a server that is busy or loads its data may say so first here.
std::error_code code_of_refusal(std::string_view text) {
    return text.starts_with("ERR max number of clients") ? make_error_code(errc::store_busy)
                                                         : answer_to_error(text, false).error;
}

}  // namespace

std::string link::system_text(const char* what, int code) const {
    return std::string{what} + ": " + std::generic_category().message(code);
}

void link::open(core::instant now) {
    const auto begun = std::chrono::steady_clock::now();
    close();
    fault_.clear();
    fault_text_.clear();
    out_.clear();
    sent_ = 0;
    written_ = 0;
    in_ = reply_reader{};
    asked_.clear();
    heard_questions_ = 0;
    takes_pushes_ = false;
    addresses_.clear();
    if (!where_.socket.empty()) {
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        if (where_.socket.size() >= sizeof at.sun_path) {
            fail(errc::invalid_url, "the path of the socket is too long");
            return;
        }
        std::memcpy(at.sun_path, where_.socket.data(), where_.socket.size());
        addresses_.emplace_back(reinterpret_cast<const char*>(&at), sizeof at);
    } else {
        addrinfo wish{};
        wish.ai_socktype = SOCK_STREAM;
        wish.ai_flags = AI_ADDRCONFIG;
        addrinfo* found = nullptr;
        const auto port = std::to_string(where_.port);
        if (const int code = ::getaddrinfo(where_.host.c_str(), port.c_str(), &wish, &found);
            code != 0) {
            fail(errc::store_unreachable,
                 "the host cannot be looked up: " + std::string{::gai_strerror(code)});
            return;
        }
        const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all{found, ::freeaddrinfo};
        for (const auto* one = found; one != nullptr; one = one->ai_next) {
            addresses_.emplace_back(reinterpret_cast<const char*>(one->ai_addr), one->ai_addrlen);
        }
        std::reverse(addresses_.begin(), addresses_.end());
    }
    // The time of the look-up is not the server's.
    opened_ = heard_ = now + (std::chrono::steady_clock::now() - begun);
    share_ = silence_max / std::max<std::size_t>(addresses_.size(), 1);
    try_next_address(opened_);
}

void link::try_next_address(core::instant now) {
    tried_ = now;
    while (!addresses_.empty()) {
        const auto raw = std::move(addresses_.back());
        addresses_.pop_back();
        const auto* at = reinterpret_cast<const sockaddr*>(raw.data());
        close();
        socket_ = ::socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (socket_ < 0) {
            fail(errc::store_unreachable, system_text("no socket", errno));
            continue;
        }
        if (at->sa_family != AF_UNIX) {
            const int on = 1;
            ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            ::setsockopt(socket_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        }
        if (::connect(socket_, at, static_cast<socklen_t>(raw.size())) == 0) {
            connected();
            return;
        }
        if (errno == EINPROGRESS) {
            phase_ = phase::connecting;
            return;
        }
        fail(errno == EACCES || errno == EPERM ? errc::permission_denied : errc::store_unreachable,
             system_text("cannot connect", errno));
    }
}

void link::close() noexcept {
    tls_.reset();
    if (socket_ >= 0) {
        ::close(socket_);
        socket_ = -1;
    }
    phase_ = phase::closed;
}

void link::fail(std::error_code fault, std::string text) noexcept {
    close();
    fault_ = fault;
    fault_text_ = std::move(text);
}

void link::finish() noexcept {
    if (tls_) {
        tls_->finish();
    }
    if (socket_ >= 0) {
        ::shutdown(socket_, SHUT_WR);
    }
}

core::instant link::patience_ends() const noexcept {
    return phase_ == phase::connecting && !addresses_.empty() ? tried_ + share_
                                                              : opened_ + silence_max;
}

bool link::lose_patience(core::instant now) {
    if (phase_ == phase::connecting && !addresses_.empty()) {
        try_next_address(now);
        return phase_ != phase::closed;
    }
    fail(errc::store_unreachable,
         phase_ == phase::connecting ? "cannot connect: the host does not answer"
         : phase_ == phase::securing
             ? "the server accepts the connection and does not answer TLS; if this is its plain "
               "port, name its TLS port or write redis://"
             : "the server accepts the connection and says nothing");
    return false;
}

short link::wanted() const noexcept {
    if (tls_) {
        return tls_->wanted(sent_ < out_.size());
    }
    const bool writes = phase_ == phase::connecting || sent_ < out_.size();
    return static_cast<short>((phase_ == phase::connecting ? 0 : POLLIN) | (writes ? POLLOUT : 0));
}

bool link::go_on(short events, core::instant now) {
    if (phase_ == phase::connecting && events != 0) {
        int code = 0;
        socklen_t size = sizeof code;
        ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &code, &size);
        if (code != 0) {
            fail(errc::store_unreachable, system_text("cannot connect", code));
            try_next_address(now);
            return phase_ != phase::closed;
        }
        addresses_.clear();
        connected();
    }
    if (phase_ == phase::securing && !secure()) {
        return false;
    }
    if (phase_ == phase::closed || phase_ == phase::securing) {
        return phase_ != phase::closed;
    }
    // TLS may have to write in order to read, and holds what came with the end of its handshake.
    if (tls_ && !receive_secured(now)) {
        return false;
    }
    if (!tls_ && (events & (POLLIN | POLLERR | POLLHUP)) != 0 && !receive(now)) {
        return false;
    }
    hear_greetings();
    return phase_ != phase::closed && flush();
}

void link::hear_greetings() {
    while (phase_ == phase::greeting) {
        const auto how = in_.next();
        if (how == reply_reader::state::partial) {
            return;
        }
        if (how == reply_reader::state::broken) {
            fail(errc::store_unreachable, "this is no Redis server: " + in_.fault());
        } else {
            hear_greeting(in_.current());
        }
    }
}

bool link::flush() {
    if (phase_ == phase::connecting || phase_ == phase::securing) {
        return true;
    }
    if (tls_) {
        return flush_secured();
    }
    while (sent_ < out_.size()) {
        const auto wrote = ::send(socket_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
        if (wrote < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno == EAGAIN || errno == EWOULDBLOCK) {
                return true;
            }
            const auto what = system_text("the connection broke", errno);
            // Whoever closes at once (too many clients) mostly said why.
            if (phase_ == phase::greeting && receive(heard_)) {
                hear_greetings();
            }
            if (phase_ != phase::closed) {
                fail(errc::store_unreachable, what);
            }
            return false;
        }
        sent_ += static_cast<std::size_t>(wrote);
        written_ += static_cast<std::uint64_t>(wrote);
    }
    out_.clear();
    sent_ = 0;
    return true;
}

bool link::flush_secured() {
    while (sent_ < out_.size()) {
        const auto wrote = tls_->write(std::string_view{out_}.substr(sent_));
        if (wrote.how == tls_session::state::broken) {
            return break_secured();
        }
        if (wrote.how == tls_session::state::again) {
            return true;
        }
        // Of a record that was sent in part the server can read nothing.
        sent_ += wrote.bytes;
        written_ += wrote.bytes;
    }
    out_.clear();
    sent_ = 0;
    return true;
}

bool link::still_there() {
    // A farewell of TLS is bytes, too: only reading tells.
    if (tls_) {
        return receive_secured(heard_);
    }
    char byte = 0;
    const auto got = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))) {
        return true;
    }
    fail(errc::store_unreachable, "the server closed the connection");
    return false;
}

bool link::receive(core::instant now) {
    for (;;) {
        auto room = in_.room(receive_at_once);
        const auto got = ::recv(socket_, room.data(), room.size(), 0);
        if (got > 1 && phase_ == phase::greeting && heard_questions_ == 0 &&
            std::string_view{room.data(), 2} == tls_alert) {
            fail(errc::store_unreachable, "the server speaks TLS at this port; write rediss://");
            return false;
        }
        if (got > 0) {
            in_.received(static_cast<std::size_t>(got));
            heard_ = now;
            if (static_cast<std::size_t>(got) < room.size()) {
                return true;
            }
            continue;
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return true;
        }
        auto why = got == 0 ? std::string{"the server closed the connection"}
                            : system_text("the connection broke", errno);
        // What Redis does at a port for TLS.
        if (phase_ == phase::greeting && heard_questions_ == 0 && where_.socket.empty()) {
            why += "; if it speaks TLS at this port, write rediss://";
        }
        fail(errc::store_unreachable, std::move(why));
        return false;
    }
}

bool link::receive_secured(core::instant now) {
    bool heard = false;
    do {
        auto room = in_.room(receive_at_once);
        const auto got = tls_->read(room);
        if (got.how == tls_session::state::broken) {
            // What came before counts first.
            return heard || break_secured();
        }
        if (got.how == tls_session::state::again) {
            return true;
        }
        heard = true;
        in_.received(got.bytes);
        heard_ = now;
    } while (tls_->holds_more());
    return true;
}

bool link::break_secured() {
    const auto why = tls_->fault();
    fail(why.error, why.text);
    return false;
}

reply_reader::state link::next() {
    if (phase_ != phase::ready) {
        return reply_reader::state::partial;
    }
    const auto how = in_.next();
    if (how == reply_reader::state::broken) {
        fail(errc::store_unreachable, "the server does not speak the protocol: " + in_.fault());
    }
    return how;
}

// --- greeting ------------------------------------------------------------------------------------

void link::ask(question what, std::initializer_list<std::string_view> words) {
    write_command(out_, words);
    asked_.push_back(what);
}

void link::connected() {
    if (!where_.tls) {
        phase_ = phase::greeting;
        greet();
        return;
    }
    tls_fault fault;
    tls_ = begin_tls(where_, socket_, fault);
    if (!tls_) {
        fail(fault.error, std::move(fault.text));
        return;
    }
    phase_ = phase::securing;
    secure();
}

bool link::secure() {
    switch (tls_->handshake()) {
        case tls_session::state::broken:
            return break_secured();
        case tls_session::state::done:
            phase_ = phase::greeting;
            greet();
            break;
        case tls_session::state::again:
            break;
    }
    return true;
}

void link::greet() {
    if (where_.password.empty()) {
        ask(question::hello, {"HELLO", "3"});
    } else {
        ask(question::hello,
            {"HELLO",
             "3",
             "AUTH",
             where_.user.empty() ? std::string_view{"default"} : std::string_view{where_.user},
             where_.password});
    }
}

// Servers and proxies that know RESP2 alone.
void link::greet_in_the_old_way() {
    if (!where_.password.empty()) {
        if (where_.user.empty()) {
            ask(question::authenticate, {"AUTH", where_.password});
        } else {
            ask(question::authenticate, {"AUTH", where_.user, where_.password});
        }
    }
    ask(question::name, {"CLIENT", "SETNAME", where_.name});
    ask(question::select, {"SELECT", std::to_string(where_.database)});
}

void link::hear_hello(const reply& told) {
    const auto& head = told.front();
    if (head.what == kind::error) {
        if (head.text.starts_with("WRONGPASS") || head.text.starts_with("NOAUTH")) {
            fail(errc::permission_denied,
                 where_.password.empty()
                     ? "the server asks for a password, and the URL names none: write "
                       "redis://:PASSWORD@HOST, or redis://USER:PASSWORD@HOST"
                     : "the server refuses user and password: " + core::printable(head.text));
        } else if (head.text.starts_with("NOPROTO") || head.text.starts_with("ERR unknown") ||
                   head.text.starts_with("NOPERM")) {
            greet_in_the_old_way();
        } else {
            fail(code_of_refusal(head.text), "the server refused: " + core::printable(head.text));
        }
        return;
    }
    const bool presents_itself =
        (head.what == kind::map || head.what == kind::array) &&
        (!value_of(told, "version").empty() || !value_of(told, "role").empty());
    if (!presents_itself) {
        fail(errc::store_unreachable, "this is no Redis server: it does not answer HELLO");
        return;
    }
    if (value_of(told, "mode") == "cluster") {
        fail(errc::unsupported, "a Redis Cluster is not supported yet");
        return;
    }
    const auto version = value_of(told, "version");
    if (is_too_old(version)) {
        fail(errc::unsupported,
             "the server is Redis " + core::printable(version) + "; 6.2 or later is needed");
        return;
    }
    const auto role = value_of(told, "role");
    if (role == "replica" || role == "slave") {
        fail(errc::store_refused, "the server is a replica, which takes no writes");
        return;
    }
    takes_pushes_ = head.what == kind::map;
    ask(question::name, {"CLIENT", "SETNAME", where_.name});
    if (where_.database != 0) {
        ask(question::select, {"SELECT", std::to_string(where_.database)});
    }
}

void link::hear_greeting(const reply& told) {
    const auto& head = told.front();
    if (head.what == kind::push || heard_questions_ >= asked_.size()) {
        if (head.what == kind::error) {
            fail(code_of_refusal(head.text), "the server refused: " + core::printable(head.text));
        }
        return;
    }
    const auto about = asked_[heard_questions_++];
    switch (about) {
        case question::hello:
            hear_hello(told);
            break;
        case question::authenticate:
            if (head.what == kind::error) {
                fail(errc::permission_denied,
                     "the server refuses user and password: " + core::printable(head.text));
            }
            break;
        case question::name:
            break;  // a name is for people: whoever may not set it goes without
        case question::select:
            if (head.what == kind::error) {
                fail(head.text.starts_with("ERR DB index") ? errc::invalid_url
                                                           : code_of_refusal(head.text),
                     "database " + std::to_string(where_.database) +
                         " cannot be used: " + core::printable(head.text));
            }
            break;
    }
    if (phase_ == phase::greeting && heard_questions_ == asked_.size()) {
        phase_ = phase::ready;
    }
}

}  // namespace dibs::store::redis
