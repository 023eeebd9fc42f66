// SPDX-License-Identifier: Apache-2.0
#include "store/redis/tls_verdict.hpp"

#include "core/key.hpp"

#include <arpa/inet.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <string_view>

namespace dibs::store::redis {

namespace {

constexpr int names_shown_max = 5;

struct free_bio {
    void operator()(BIO* one) const noexcept { ::BIO_free(one); }
};
struct free_names {
    void operator()(GENERAL_NAMES* some) const noexcept { ::GENERAL_NAMES_free(some); }
};

/// What `print` writes.
template <typename Print>
std::string printed(Print print) {
    const std::unique_ptr<BIO, free_bio> into{::BIO_new(::BIO_s_mem())};
    if (!into) {
        return "?";
    }
    print(into.get());
    char* bytes = nullptr;
    const auto size = BIO_get_mem_data(into.get(), &bytes);
    return size > 0 ? core::printable({bytes, static_cast<std::size_t>(size)}) : "?";
}

std::string text_of(const X509_NAME* name) {
    return printed([&](BIO* into) { ::X509_NAME_print_ex(into, name, 0, XN_FLAG_RFC2253); });
}

std::string text_of(const ASN1_TIME* when) {
    return printed([&](BIO* into) { ::ASN1_TIME_print(into, when); });
}

std::string text_of(const GENERAL_NAME& one) {
    if (one.type == GEN_DNS) {
        return core::printable(
            {reinterpret_cast<const char*>(::ASN1_STRING_get0_data(one.d.dNSName)),
             static_cast<std::size_t>(::ASN1_STRING_length(one.d.dNSName))});
    }
    const int size = one.type == GEN_IPADD ? ::ASN1_STRING_length(one.d.iPAddress) : 0;
    if (size == 4 || size == 16) {
        std::array<char, INET6_ADDRSTRLEN> text{};
        ::inet_ntop(size == 4 ? AF_INET : AF_INET6,
                    ::ASN1_STRING_get0_data(one.d.iPAddress),
                    text.data(),
                    text.size());
        return text.data();
    }
    return {};
}

/// The names that a certificate is for.
std::string names_in(const X509* shown) {
    const std::unique_ptr<GENERAL_NAMES, free_names> all{static_cast<GENERAL_NAMES*>(
        ::X509_get_ext_d2i(shown, NID_subject_alt_name, nullptr, nullptr))};
    std::string text;
    int count = 0;
    for (int at = 0; all && at < sk_GENERAL_NAME_num(all.get()); ++at) {
        const auto one = text_of(*sk_GENERAL_NAME_value(all.get(), at));
        if (one.empty()) {
            continue;
        }
        if (count++ == names_shown_max) {
            return text + " and others";
        }
        text += (text.empty() ? "" : ", ") + one;
    }
    return text.empty() ? text_of(::X509_get_subject_name(shown)) : text;
}

}  // namespace

void tls_verdict::refuse(X509_STORE_CTX* about) {
    const auto* const shown = ::X509_STORE_CTX_get_current_cert(about);
    const int why = ::X509_STORE_CTX_get_error(about);
    const bool of_server = ::X509_STORE_CTX_get_error_depth(about) == 0;
    if (shown == nullptr) {
        text = "the server's certificate is not trusted";
        return;
    }
    const std::string which = of_server ? "the server's certificate"
                                        : "the certificate of " +
                                              text_of(::X509_get_subject_name(shown)) +
                                              ", above the server's,";
    switch (why) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            text = which + " is for " + names_in(shown) + ", not for " + core::printable(name) +
                   "; ask for the server by a name of its own, in the URL or by sni=NAME";
            return;
        case X509_V_ERR_CERT_HAS_EXPIRED:
            text = which + " expired on " + text_of(::X509_get0_notAfter(shown)) +
                   "; the server needs a new one, unless the clock of this host is wrong";
            return;
        case X509_V_ERR_CERT_NOT_YET_VALID:
            text = which + " is not valid before " + text_of(::X509_get0_notBefore(shown)) +
                   "; the clock of this host may be wrong";
            return;
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
            text = which + " is not trusted: it was issued by " +
                   text_of(::X509_get_issuer_name(shown)) + ", who is not known to " +
                   (ca.empty() ? "this system; name the file of the CA by ca=FILE"
                               : "ca=" + core::printable(ca) + "; name the file of its CA");
            return;
        default:
            text = which + " is not trusted: " + ::X509_verify_cert_error_string(why);
    }
}

}  // namespace dibs::store::redis
