// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for the objects that every call makes and drops again. They are made on one thread and
// dropped on another, which is the case where a general allocator takes locks that its threads then
// wait for. Blocks of one type are kept for the next object of that type, up to a bound.
//
// Thread safety: any thread. Nobody ever waits: who finds the pile in use goes to operator new.

#include <atomic>
#include <cstddef>
#include <new>

namespace dibs::core {

template <typename T>
class recycling_allocator {
  public:
    using value_type = T;

    recycling_allocator() noexcept = default;
    template <typename Other>
    recycling_allocator(const recycling_allocator<Other>&) noexcept {}

    [[nodiscard]] T* allocate(std::size_t count) {
        void* block = count == 1 ? kept_.take() : nullptr;
        return static_cast<T*>(block != nullptr ? block : ::operator new(count * sizeof(T)));
    }

    void deallocate(T* block, std::size_t count) noexcept {
        if (count != 1 || !kept_.give(block)) {
            ::operator delete(block);
        }
    }

    friend bool operator==(const recycling_allocator&, const recycling_allocator&) noexcept {
        return true;
    }

  private:
    static_assert(sizeof(T) >= sizeof(void*) && alignof(T) <= alignof(std::max_align_t));

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    static constexpr std::size_t blocks_max = 0;  // a block used again would hide a use after free
#else
    static constexpr std::size_t blocks_max = 512;
#endif

    class pile {
      public:
        [[nodiscard]] void* take() noexcept {
            if (busy_.test_and_set(std::memory_order_acquire)) {
                return nullptr;
            }
            auto* const block = first_;
            if (block != nullptr) {
                first_ = *static_cast<void**>(block);
                --count_;
            }
            busy_.clear(std::memory_order_release);
            return block;
        }

        [[nodiscard]] bool give(void* block) noexcept {
            if (blocks_max == 0 || busy_.test_and_set(std::memory_order_acquire)) {
                return false;
            }
            const bool room = count_ < blocks_max;
            if (room) {
                *::new (block) void* = first_;
                first_ = block;
                ++count_;
            }
            busy_.clear(std::memory_order_release);
            return room;
        }

      private:
        std::atomic_flag busy_;
        void* first_ = nullptr;
        std::size_t count_ = 0;
    };

    // Never destroyed: the last object may go after every static one.
    static inline constinit pile kept_;
};

}  // namespace dibs::core
