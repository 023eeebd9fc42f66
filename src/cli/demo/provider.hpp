// SPDX-License-Identifier: Apache-2.0
#pragma once
// A provider of access tokens, for the processes of a demo: in memory that they share. It knows the last token alone; each
// new one kills the one before. Credentials change with each use, and one that comes twice ends them all, as is usual
// with rotating refresh tokens.

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::cli {

class shared_provider {
  public:
    explicit shared_provider(std::chrono::milliseconds answers_after);
    ~shared_provider();
    shared_provider(const shared_provider&) = delete;
    shared_provider& operator=(const shared_provider&) = delete;

    struct grant {
        std::string token;
        std::string credential;  ///< for the next time
    };
    /// Takes its time. Empty: invalid_grant. Thread safety: any thread of any of the processes.
    [[nodiscard]] std::optional<grant> refresh(std::string_view credential) const;
    /// As refresh without a credential that changes.
    [[nodiscard]] std::string refresh() const;

    /// A request with this token: true for 200, false for 401. Counted.
    bool serve(std::string_view token) const;

    struct counts {
        int refreshes = 0;
        int served = 0;
        int refused = 0;
        bool revoked = false;  ///< a credential came twice
    };
    [[nodiscard]] counts counted() const;

  private:
    struct page {
        std::atomic<int> refreshes{0};
        std::atomic<int> token{0};
        std::atomic<int> credential{0};
        std::atomic<bool> revoked{false};
        std::atomic<int> served{0};
        std::atomic<int> refused{0};
    };
    page* page_;
    std::chrono::milliseconds answers_after_;
};

}  // namespace dibs::cli
