// SPDX-License-Identifier: Apache-2.0
#include "store/redis/tls_session.hpp"

#include "core/key.hpp"
#include "store/redis/tls_files.hpp"
#include "store/redis/tls_verdict.hpp"

#include <dibs/error.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <limits>
#include <utility>

namespace dibs::store::redis {

namespace {

struct free_session {
    void operator()(SSL* one) const noexcept { ::SSL_free(one); }
};

/// Of the records of TLS, those that may come first.
constexpr unsigned char alert_record = 21;
constexpr unsigned char handshake_record = 22;

/// The name that the server must prove, as certificates have it.
std::string name_to_verify(const address& where) {
    auto name = where.tls->server_name.empty() ? where.host : where.tls->server_name;
    if (name.ends_with('.')) {
        name.pop_back();
    }
    return name;
}

class openssl_session final : public tls_session {
  public:
    openssl_session(const address& where, int socket)
        : socket_(socket),
          certificate_(where.tls->certificate),
          verdict_{name_to_verify(where), where.tls->ca, {}} {}

    bool begin(const tls_settings& from, tls_fault& fault);

    state handshake() override {
        ::ERR_clear_error();
        const int code = ::SSL_connect(session_.get());
        if (code == 1) {
            greeted_ = true;
            wanted_ = POLLIN;
            return state::done;
        }
        return judge(code, wanted_);
    }
    moved read(std::span<char> room) override {
        if (fault_.error) {
            return {state::broken, 0};
        }
        ::ERR_clear_error();
        std::size_t bytes = 0;
        const int code = ::SSL_read_ex(session_.get(), room.data(), room.size(), &bytes);
        if (code == 1) {
            read_waits_for_ = POLLIN;
            return {state::done, bytes};
        }
        return {judge(code, read_waits_for_), 0};
    }
    moved write(std::string_view bytes) override {
        if (fault_.error) {
            return {state::broken, 0};
        }
        ::ERR_clear_error();
        std::size_t written = 0;
        const int code = ::SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &written);
        if (code == 1) {
            write_waits_for_ = POLLOUT;
            return {state::done, written};
        }
        return {judge(code, write_waits_for_), 0};
    }
    bool holds_more() const noexcept override { return ::SSL_has_pending(session_.get()) == 1; }
    short wanted(bool writes) const noexcept override {
        // What has broken shows itself at once, whatever the socket says.
        if (fault_.error) {
            return POLLIN | POLLOUT;
        }
        return greeted_
                   ? static_cast<short>(POLLIN | read_waits_for_ | (writes ? write_waits_for_ : 0))
                   : wanted_;
    }
    void finish() noexcept override {
        ::ERR_clear_error();
        static_cast<void>(::SSL_shutdown(session_.get()));
        ::ERR_clear_error();
    }
    const tls_fault& fault() const noexcept override { return fault_; }

  private:
    // A socket BIO of OpenSSL writes by write(2), which raises SIGPIPE in the caller's thread.
    static BIO_METHOD* method();
    static int send(BIO* through, const char* bytes, int size);
    static int receive(BIO* through, char* into, int size);
    static long control(BIO* through, int what, long number, void* pointer);
    static int verify(int ok, X509_STORE_CTX* about);
    static int choose_certificate(SSL* session, X509** chosen, EVP_PKEY** key);

    state judge(int code, short& waits_for);
    [[nodiscard]] tls_fault explain(int kind) const;
    [[nodiscard]] tls_fault explain_alert(int alert) const;

    const int socket_;
    const std::string certificate_;
    tls_verdict verdict_;
    std::unique_ptr<SSL, free_session> session_;
    bool greeted_ = false;
    short wanted_ = POLLOUT;
    short read_waits_for_ = POLLIN;
    short write_waits_for_ = POLLOUT;
    int first_byte_ = -1;
    int system_error_ = 0;
    bool hung_up_ = false;
    bool asked_for_certificate_ = false;
    tls_fault fault_;
};

// --- the socket ----------------------------------------------------------------------------------

BIO_METHOD* openssl_session::method() {
    // Never freed: a connection may outlast the statics of the process.
    static BIO_METHOD* const made = [] {
        auto* const one =
            ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "dibs socket");
        if (one != nullptr) {
            ::BIO_meth_set_write(one, send);
            ::BIO_meth_set_read(one, receive);
            ::BIO_meth_set_ctrl(one, control);
        }
        return one;
    }();
    return made;
}

int openssl_session::send(BIO* through, const char* bytes, int size) {
    auto& self = *static_cast<openssl_session*>(::BIO_get_data(through));
    ::BIO_clear_retry_flags(through);
    const auto sent = ::send(self.socket_, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            ::BIO_set_retry_write(through);
        } else {
            self.system_error_ = errno;
        }
    }
    return static_cast<int>(sent);
}

int openssl_session::receive(BIO* through, char* into, int size) {
    auto& self = *static_cast<openssl_session*>(::BIO_get_data(through));
    ::BIO_clear_retry_flags(through);
    const auto got = ::recv(self.socket_, into, static_cast<std::size_t>(size), 0);
    if (got > 0 && self.first_byte_ < 0) {
        self.first_byte_ = static_cast<unsigned char>(*into);
    }
    if (got == 0) {
        self.hung_up_ = true;
    }
    if (got < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            ::BIO_set_retry_read(through);
        } else {
            self.system_error_ = errno;
        }
    }
    return static_cast<int>(got);
}

long openssl_session::control(BIO* through, int what, long /*number*/, void* /*pointer*/) {
    if (what == BIO_CTRL_EOF) {
        return static_cast<openssl_session*>(::BIO_get_data(through))->hung_up_ ? 1 : 0;
    }
    return what == BIO_CTRL_FLUSH ? 1 : 0;
}

// --- the beginning -------------------------------------------------------------------------------

int openssl_session::verify(int ok, X509_STORE_CTX* about) {
    const auto* session = static_cast<const SSL*>(
        ::X509_STORE_CTX_get_ex_data(about, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
    if (ok != 1) {
        static_cast<openssl_session*>(SSL_get_app_data(session))->verdict_.refuse(about);
    }
    return ok;
}

/// Called when the server asks for a certificate and none was named.
int openssl_session::choose_certificate(SSL* session, X509** /*chosen*/, EVP_PKEY** /*key*/) {
    static_cast<openssl_session*>(SSL_get_app_data(session))->asked_for_certificate_ = true;
    return 0;
}

bool openssl_session::begin(const tls_settings& from, tls_fault& fault) {
    const auto context = load_tls_context(from, fault);
    if (!context) {
        return false;
    }
    ::SSL_CTX_set_client_cert_cb(context.get(), choose_certificate);
    session_.reset(::SSL_new(context.get()));
    auto* const through = method() != nullptr ? ::BIO_new(method()) : nullptr;
    if (!session_ || through == nullptr) {
        ::BIO_free(through);
        fault = {errc::store_unreachable, "TLS cannot be set up on this host"};
        return false;
    }
    ::BIO_set_data(through, this);
    ::BIO_set_init(through, 1);
    ::SSL_set_bio(session_.get(), through, through);
    SSL_set_app_data(session_.get(), this);
    // The row of commands grows, and moves, while a part of it waits to be sent.
    SSL_set_mode(session_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_set_mode(session_.get(), SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ::SSL_set_options(session_.get(), SSL_OP_NO_RENEGOTIATION);
    ::SSL_set_read_ahead(session_.get(), 1);
    ::SSL_set_verify(session_.get(), SSL_VERIFY_PEER, verify);
    auto* const rules = ::SSL_get0_param(session_.get());
    const auto& name = verdict_.name;
    bool named = ::X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) == 1;
    if (!named) {
        ::X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        named = ::X509_VERIFY_PARAM_set1_host(rules, name.data(), name.size()) == 1 &&
                SSL_set_tlsext_host_name(session_.get(), name.c_str()) == 1;
    }
    ::ERR_clear_error();
    if (name.empty() || !named) {
        fault = {errc::invalid_url, core::printable(name) + " is no name that a server can prove"};
        return false;
    }
    return true;
}

// --- the faults ----------------------------------------------------------------------------------

tls_session::state openssl_session::judge(int code, short& waits_for) {
    const int kind = ::SSL_get_error(session_.get(), code);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
        waits_for = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return state::again;
    }
    fault_ = explain(kind);
    ::ERR_clear_error();
    return state::broken;
}

tls_fault openssl_session::explain(int kind) const {
    if (!verdict_.text.empty()) {
        return {errc::permission_denied, verdict_.text};
    }
    if (first_byte_ >= 0 && first_byte_ != alert_record && first_byte_ != handshake_record) {
        return {errc::store_unreachable,
                "the server speaks no TLS at this port; name its TLS port, or write redis://"};
    }
    const auto code = ::ERR_peek_error();
    const int reason = ERR_GET_REASON(code);
    const bool of_tls = ERR_GET_LIB(code) == ERR_LIB_SSL;
    if (of_tls && reason > SSL_AD_REASON_OFFSET && reason <= SSL_AD_REASON_OFFSET + 255) {
        return explain_alert(reason - SSL_AD_REASON_OFFSET);
    }
    if (of_tls && reason == SSL_R_UNSUPPORTED_PROTOCOL) {
        return {errc::unsupported, "the server's TLS is too old: 1.2 or later is needed"};
    }
    if (system_error_ != 0) {
        return {errc::store_unreachable,
                "the connection broke: " + std::generic_category().message(system_error_)};
    }
    if (kind == SSL_ERROR_ZERO_RETURN || hung_up_) {
        return {errc::store_unreachable,
                greeted_ ? "the server closed the connection"
                         : "the server closed the connection while TLS began"};
    }
    const char* const why = ::ERR_reason_error_string(code);
    return {errc::store_unreachable,
            std::string{"TLS broke: "} + (why != nullptr ? why : "no reason is known")};
}

tls_fault openssl_session::explain_alert(int alert) const {
    const bool about_certificate =
        alert == SSL_AD_HANDSHAKE_FAILURE || alert == SSL_AD_CERTIFICATE_REQUIRED;
    if (about_certificate && asked_for_certificate_) {
        return {errc::permission_denied,
                "the server asks for a client certificate; name one by cert=FILE and key=FILE"};
    }
    const std::string told = ::SSL_alert_desc_string_long(alert);
    switch (alert) {
        case SSL_AD_BAD_CERTIFICATE:
        case SSL_AD_UNSUPPORTED_CERTIFICATE:
        case SSL_AD_CERTIFICATE_REVOKED:
        case SSL_AD_CERTIFICATE_EXPIRED:
        case SSL_AD_CERTIFICATE_UNKNOWN:
        case SSL_AD_UNKNOWN_CA:
        case SSL_AD_ACCESS_DENIED:
            if (!certificate_.empty()) {
                return {errc::permission_denied,
                        "the server refuses the client certificate cert=" +
                            core::printable(certificate_) + ": " + told};
            }
            break;
        case SSL_AD_PROTOCOL_VERSION:
            return {errc::unsupported,
                    "the server's versions of TLS are others: 1.2 or later is needed"};
        case SSL_AD_UNRECOGNIZED_NAME:
            return {errc::permission_denied,
                    "the server does not go by the name " + core::printable(verdict_.name) +
                        "; name another one by sni=NAME"};
        default:
            break;
    }
    return {errc::store_unreachable, "the server ended TLS: " + told};
}

}  // namespace

std::unique_ptr<tls_session> begin_tls(const address& where, int socket, tls_fault& fault) {
    auto made = std::make_unique<openssl_session>(where, socket);
    if (!made->begin(*where.tls, fault)) {
        return nullptr;
    }
    return made;
}

}  // namespace dibs::store::redis
