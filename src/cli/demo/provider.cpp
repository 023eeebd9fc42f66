// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/provider.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <thread>

namespace dibs::cli {

namespace {

constexpr std::string_view token_name = "token-";
constexpr std::string_view credential_name = "credential-";

std::string named(std::string_view name, int number) {
    return std::string(name) + std::to_string(number);
}

}  // namespace

shared_provider::shared_provider(std::chrono::milliseconds answers_after)
    : answers_after_(answers_after) {
    void* const room =
        ::mmap(nullptr, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), "shared memory");
    }
    page_ = new (room) page;
}

shared_provider::~shared_provider() {
    ::munmap(page_, sizeof(page));
}

std::optional<shared_provider::grant> shared_provider::refresh(std::string_view credential) const {
    ++page_->refreshes;
    int expected = page_->credential;
    const bool current = credential == named(credential_name, expected) &&
                         page_->credential.compare_exchange_strong(expected, expected + 1);
    if (!current || page_->revoked) {
        page_->revoked = true;
        page_->token = 0;
        std::this_thread::sleep_for(answers_after_);
        return std::nullopt;
    }
    page_->token = expected + 1;
    std::this_thread::sleep_for(answers_after_);
    if (page_->revoked) {
        page_->token = 0;  // also when it was revoked before the token was made
    }
    return grant{named(token_name, expected + 1), named(credential_name, expected + 1)};
}

std::string shared_provider::refresh() const {
    const int number = ++page_->refreshes;
    std::this_thread::sleep_for(answers_after_);
    // The largest number is the last one, whoever comes first.
    int last = page_->token;
    while (last < number && !page_->token.compare_exchange_weak(last, number)) {
    }
    return named(token_name, number);
}

bool shared_provider::serve(std::string_view token) const {
    const bool good = page_->token != 0 && token == named(token_name, page_->token);
    ++(good ? page_->served : page_->refused);
    return good;
}

shared_provider::counts shared_provider::counted() const {
    return {page_->refreshes, page_->served, page_->refused, page_->revoked};
}

}  // namespace dibs::cli
