// SPDX-License-Identifier: Apache-2.0
#include "client/recipes/sealing.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <array>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace dibs::detail {

namespace {

constexpr std::size_t key_bytes = 32;
constexpr std::size_t nonce_bytes = 12;
constexpr std::size_t tag_bytes = 16;
constexpr std::string_view digits = "0123456789abcdef";

using key = std::array<unsigned char, key_bytes>;

struct free_context {
    void operator()(EVP_CIPHER_CTX* of) const noexcept { EVP_CIPHER_CTX_free(of); }
};
using context = std::unique_ptr<EVP_CIPHER_CTX, free_context>;

context new_context() {
    context made{EVP_CIPHER_CTX_new()};
    if (!made) {
        throw std::bad_alloc();
    }
    return made;
}

const unsigned char* bytes(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes(std::string& text) {
    return reinterpret_cast<unsigned char*>(text.data());
}

std::string hex(std::span<const unsigned char> from) {
    std::string text;
    for (const auto one : from) {
        text += digits[one >> 4U];
        text += digits[one & 15U];
    }
    return text;
}

int digit_of(char shown) {
    const char small = shown >= 'A' && shown <= 'F' ? static_cast<char>(shown + 32) : shown;
    const auto at = digits.find(small);
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

std::optional<key> key_of(std::string_view shown) {
    key made{};
    if (shown.size() != 2 * key_bytes) {
        return std::nullopt;
    }
    for (std::size_t at = 0; at < key_bytes; ++at) {
        const int high = digit_of(shown[2 * at]);
        const int low = digit_of(shown[2 * at + 1]);
        if (high < 0 || low < 0) {
            return std::nullopt;
        }
        made[at] = static_cast<unsigned char>(high * 16 + low);
    }
    return made;
}

class openssl_sealer final : public recipes::sealer {
  public:
    explicit openssl_sealer(std::vector<key> keys) : keys_(std::move(keys)) {}
    ~openssl_sealer() override {
        for (auto& one : keys_) {
            OPENSSL_cleanse(one.data(), one.size());
        }
    }

    [[nodiscard]] std::string key_name() const override { return name_of(keys_.front()); }

    [[nodiscard]] std::string seal(std::string_view plain, std::string_view bound_to) override {
        std::string sealed(nonce_bytes + plain.size() + tag_bytes, '\0');
        if (RAND_bytes(bytes(sealed), static_cast<int>(nonce_bytes)) != 1) {
            throw std::runtime_error("no randomness to seal a value with");
        }
        const auto cipher = new_context();
        int length = 0;
        const bool done =
            EVP_EncryptInit_ex(
                cipher.get(), EVP_aes_256_gcm(), nullptr, keys_.front().data(), bytes(sealed)) ==
                1 &&
            EVP_EncryptUpdate(cipher.get(),
                              nullptr,
                              &length,
                              bytes(bound_to),
                              static_cast<int>(bound_to.size())) == 1 &&
            EVP_EncryptUpdate(cipher.get(),
                              bytes(sealed) + nonce_bytes,
                              &length,
                              bytes(plain),
                              static_cast<int>(plain.size())) == 1 &&
            EVP_EncryptFinal_ex(cipher.get(), bytes(sealed) + nonce_bytes + length, &length) == 1 &&
            EVP_CIPHER_CTX_ctrl(cipher.get(),
                                EVP_CTRL_GCM_GET_TAG,
                                static_cast<int>(tag_bytes),
                                bytes(sealed) + nonce_bytes + plain.size()) == 1;
        if (!done) {
            throw std::runtime_error("a value could not be sealed");
        }
        return sealed;
    }

    [[nodiscard]] std::optional<std::string> open(std::string_view name,
                                                  std::string_view sealed,
                                                  std::string_view bound_to) override {
        if (sealed.size() < nonce_bytes + tag_bytes) {
            return std::nullopt;
        }
        for (const auto& one : keys_) {
            if (name_of(one) == name) {
                return open_by(one, sealed, bound_to);
            }
        }
        return std::nullopt;
    }

  private:
    /// Part of a digest, which tells nothing of the key.
    static std::string name_of(const key& which) {
        std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
        SHA256(which.data(), which.size(), digest.data());
        return hex(std::span(digest).first(4));
    }

    static std::optional<std::string> open_by(const key& which,
                                              std::string_view sealed,
                                              std::string_view bound_to) {
        const auto length = sealed.size() - nonce_bytes - tag_bytes;
        std::string tag(sealed.substr(nonce_bytes + length));
        std::string plain(length, '\0');
        const auto cipher = new_context();
        int written = 0;
        const bool done =
            EVP_DecryptInit_ex(
                cipher.get(), EVP_aes_256_gcm(), nullptr, which.data(), bytes(sealed)) == 1 &&
            EVP_DecryptUpdate(cipher.get(),
                              nullptr,
                              &written,
                              bytes(bound_to),
                              static_cast<int>(bound_to.size())) == 1 &&
            EVP_DecryptUpdate(cipher.get(),
                              bytes(plain),
                              &written,
                              bytes(sealed.substr(nonce_bytes)),
                              static_cast<int>(length)) == 1 &&
            EVP_CIPHER_CTX_ctrl(
                cipher.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(tag_bytes), tag.data()) == 1 &&
            EVP_DecryptFinal_ex(cipher.get(), bytes(plain) + written, &written) == 1;
        if (!done) {
            return std::nullopt;
        }
        return plain;
    }

    std::vector<key> keys_;
};

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r";
    const auto from = text.find_first_not_of(blank);
    if (from == std::string_view::npos) {
        return {};
    }
    return text.substr(from, text.find_last_not_of(blank) - from + 1);
}

}  // namespace

std::unique_ptr<recipes::sealer> make_sealer(std::string_view keys, std::string& fault) {
    std::vector<key> found;
    unsigned line = 0;
    while (!keys.empty()) {
        ++line;
        const auto end = keys.find('\n');
        const auto text = trimmed(keys.substr(0, end));
        keys = end == std::string_view::npos ? std::string_view{} : keys.substr(end + 1);
        if (text.empty() || text.front() == '#') {
            continue;
        }
        const auto one = key_of(text);
        if (!one) {
            fault =
                "line " + std::to_string(line) + " of the keys is not a key: 64 hexadecimal digits";
            return nullptr;
        }
        found.push_back(*one);
    }
    if (found.empty()) {
        fault = "there is no key: one line of 64 hexadecimal digits";
        return nullptr;
    }
    return std::make_unique<openssl_sealer>(std::move(found));
}

std::string new_sealing_key() {
    key drawn{};
    if (RAND_bytes(drawn.data(), static_cast<int>(drawn.size())) != 1) {
        return {};
    }
    auto text = hex(drawn) + '\n';
    OPENSSL_cleanse(drawn.data(), drawn.size());
    return text;
}

}  // namespace dibs::detail
