// SPDX-License-Identifier: Apache-2.0
#include "store/redis/tls_files.hpp"

#include "core/key.hpp"
#include "store/text_file.hpp"

#include <dibs/error.hpp>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <sys/stat.h>

#include <cerrno>
#include <limits>
#include <optional>

namespace dibs::store::redis {

namespace {

struct free_bio {
    void operator()(BIO* one) const noexcept { ::BIO_free(one); }
};
struct free_certificate {
    void operator()(X509* one) const noexcept { ::X509_free(one); }
};
struct free_key {
    void operator()(EVP_PKEY* one) const noexcept { ::EVP_PKEY_free(one); }
};
using memory_bio = std::unique_ptr<BIO, free_bio>;
using certificate = std::unique_ptr<X509, free_certificate>;
using private_key = std::unique_ptr<EVP_PKEY, free_key>;

/// The text of a file, wiped afterwards: it may be a key.
class file_text {
  public:
    file_text() = default;
    explicit file_text(std::string text) : text_(std::move(text)) {}
    file_text(const file_text&) = delete;
    file_text& operator=(const file_text&) = delete;
    ~file_text() { ::OPENSSL_cleanse(text_.data(), text_.size()); }

    [[nodiscard]] memory_bio as_bio() const {
        return memory_bio{::BIO_new_mem_buf(text_.data(), static_cast<int>(text_.size()))};
    }
    [[nodiscard]] bool holds(std::string_view part) const {
        return text_.find(part) != std::string::npos;
    }

  private:
    std::string text_;
};

/// Never asks a terminal.
int no_passphrase(char* /*into*/, int /*size*/, int /*writes*/, void* /*data*/) noexcept {
    return -1;
}

tls_fault cannot_read(const char* option, const std::string& path, int code) {
    return {code == EACCES || code == EPERM ? errc::permission_denied : errc::invalid_url,
            std::string{option} + "=" + core::printable(path) +
                " cannot be read: " + std::generic_category().message(code)};
}

tls_fault wrong(const char* option, const std::string& path, const char* what) {
    return {errc::invalid_url, std::string{option} + "=" + core::printable(path) + " " + what};
}

std::optional<std::string> read(const char* option, const std::string& path, tls_fault& fault) {
    auto found = read_text_file(path.c_str());
    if (found.trouble == 0 && found.text.size() > std::numeric_limits<int>::max()) {
        found.trouble = EFBIG;
    }
    if (found.trouble != 0) {
        fault = cannot_read(option, path, found.trouble);
        return std::nullopt;
    }
    return std::move(found.text);
}

bool trust(SSL_CTX* context, const std::string& path, tls_fault& fault) {
    if (path.empty()) {
        if (::SSL_CTX_set_default_verify_paths(context) != 1) {
            fault = {errc::permission_denied,
                     "the CAs of this system cannot be read; name ca=FILE"};
            return false;
        }
        return true;
    }
    auto text = read("ca", path, fault);
    if (!text) {
        return false;
    }
    const file_text held{std::move(*text)};
    const auto from = held.as_bio();
    auto* const known = ::SSL_CTX_get_cert_store(context);
    // Whoever names a server's own certificate, or an intermediate, trusts that one alone.
    ::X509_STORE_set_flags(known, X509_V_FLAG_PARTIAL_CHAIN);
    int count = 0;
    while (const auto one =
               certificate{::PEM_read_bio_X509(from.get(), nullptr, no_passphrase, nullptr)}) {
        count += ::X509_STORE_add_cert(known, one.get());
    }
    if (count == 0) {
        fault = wrong("ca", path, "holds no certificate in PEM form");
    }
    return count > 0;
}

bool show_certificate(SSL_CTX* context, const std::string& path, tls_fault& fault) {
    auto text = read("cert", path, fault);
    if (!text) {
        return false;
    }
    const file_text held{std::move(*text)};
    const auto from = held.as_bio();
    const certificate own{::PEM_read_bio_X509(from.get(), nullptr, no_passphrase, nullptr)};
    if (!own || ::SSL_CTX_use_certificate(context, own.get()) != 1) {
        fault = wrong("cert", path, "holds no certificate in PEM form that can be used");
        return false;
    }
    while (const auto above =
               certificate{::PEM_read_bio_X509(from.get(), nullptr, no_passphrase, nullptr)}) {
        if (::SSL_CTX_add1_chain_cert(context, above.get()) != 1) {
            fault = wrong("cert", path, "holds a chain of certificates that cannot be used");
            return false;
        }
    }
    return true;
}

/// A group may read it, as Debian's ssl-cert does.
bool is_open_to_all(const std::string& path) noexcept {
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 &&
           (found.st_mode & (S_IRWXO | S_IWGRP | S_IXGRP)) != 0;
}

bool take_key(SSL_CTX* context, const tls_settings& from, tls_fault& fault) {
    const auto& path = from.key.empty() ? from.certificate : from.key;
    const char* const option = from.key.empty() ? "cert" : "key";
    auto text = read(option, path, fault);
    if (!text) {
        return false;
    }
    const file_text held{std::move(*text)};
    if (held.holds("PRIVATE KEY") && is_open_to_all(path)) {
        fault = {errc::permission_denied,
                 std::string{option} + "=" + core::printable(path) +
                     " holds a private key that others may read or change; chmod 600 it, or 640"};
        return false;
    }
    const auto bytes = held.as_bio();
    const private_key own{::PEM_read_bio_PrivateKey(bytes.get(), nullptr, no_passphrase, nullptr)};
    if (!own) {
        fault = wrong(option,
                      path,
                      held.holds("ENCRYPTED") ? "holds a key with a passphrase, which is not asked "
                                                "for; store it without"
                      : from.key.empty()      ? "holds no private key; name its file by key=FILE"
                                              : "holds no private key in PEM form");
        return false;
    }
    if (::SSL_CTX_use_PrivateKey(context, own.get()) != 1 ||
        ::SSL_CTX_check_private_key(context) != 1) {
        fault = wrong(option, path, "holds another key than that of the certificate");
        return false;
    }
    return true;
}

}  // namespace

tls_context load_tls_context(const tls_settings& from, tls_fault& fault) {
    // exit() may run while the library's thread is at it.
    ::OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
    tls_context made{::SSL_CTX_new(::TLS_client_method())};
    const bool ready = made && ::SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION) == 1;
    if (!ready) {
        fault = {errc::store_unreachable, "TLS cannot be set up on this host"};
    }
    const bool whole =
        ready && trust(made.get(), from.ca, fault) &&
        (from.certificate.empty() || (show_certificate(made.get(), from.certificate, fault) &&
                                      take_key(made.get(), from, fault)));
    // The application may look at the errors of this thread.
    ::ERR_clear_error();
    return whole ? std::move(made) : nullptr;
}

}  // namespace dibs::store::redis
