// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tells a forked child from the process that made an object. Asked with every call, so it costs no
// system call where the kernel can empty a page in the child.

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace dibs::store {

/// Thread safety: any thread.
class process_mark {
  public:
    process_mark() noexcept : made_in_(current()) {}

    /// Whether this is a forked child of the process that made the mark.
    [[nodiscard]] bool forked() const noexcept { return current() != made_in_; }

  private:
    using number = std::atomic<std::uint64_t>;
    static_assert(number::is_always_lock_free);

    /// A number of this process that none of its ancestors has.
    [[nodiscard]] static std::uint64_t current() noexcept {
        static number* const kept = emptied_by_fork();
        static number last{0};
        if (kept == nullptr) {
            return static_cast<std::uint64_t>(::getpid());
        }
        auto found = kept->load(std::memory_order_relaxed);
        if (found == 0) {
            const auto fresh = last.fetch_add(1) + 1;
            // Another thread of the child may have been first.
            found = kept->compare_exchange_strong(found, fresh) ? fresh : found;
        }
        return found;
    }

    /// Null: this kernel cannot do that.
    static number* emptied_by_fork() noexcept {
        auto* const page = ::mmap(
            nullptr, sizeof(number), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            return nullptr;
        }
        if (::madvise(page, sizeof(number), MADV_WIPEONFORK) != 0) {
            ::munmap(page, sizeof(number));
            return nullptr;
        }
        return ::new (page) number{0};
    }

    std::uint64_t made_in_;
};

}  // namespace dibs::store
