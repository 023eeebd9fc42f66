// SPDX-License-Identifier: Apache-2.0
#pragma once
// A callable that is moved, never copied: std::move_only_function is C++23. Callables of up to so many
// words live inside the object, so that the path of one acquire allocates as little as possible.

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace dibs::core {

template <typename Signature, std::size_t Words = 6>
class unique_function;

template <typename Result, typename... Args, std::size_t Words>
class unique_function<Result(Args...), Words> {
  public:
    unique_function() noexcept = default;
    unique_function(std::nullptr_t) noexcept {}

    template <typename Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, unique_function> &&
             std::is_invocable_r_v<Result, std::decay_t<Callable>&, Args...>)
        unique_function(Callable&& callable) {
        using stored = std::decay_t<Callable>;
        if constexpr (fits_inside<stored>) {
            ::new (static_cast<void*>(storage_)) stored(std::forward<Callable>(callable));
            table_ = &inside<stored>;
        } else {
            ::new (static_cast<void*>(storage_))
                stored*(new stored(std::forward<Callable>(callable)));
            table_ = &outside<stored>;
        }
    }

    unique_function(unique_function&& other) noexcept { take(other); }

    unique_function& operator=(unique_function&& other) noexcept {
        if (this != &other) {
            reset();
            take(other);
        }
        return *this;
    }

    unique_function(const unique_function&) = delete;
    unique_function& operator=(const unique_function&) = delete;

    ~unique_function() { reset(); }

    explicit operator bool() const noexcept { return table_ != nullptr; }

    Result operator()(Args... args) { return table_->call(storage_, std::forward<Args>(args)...); }

  private:
    static constexpr std::size_t inside_bytes = Words * sizeof(void*);

    template <typename Stored>
    static constexpr bool fits_inside =
        sizeof(Stored) <= inside_bytes &&
        alignof(Stored) <= alignof(void*) && std::is_nothrow_move_constructible_v<Stored>;

    struct operations {
        Result (*call)(void* self, Args&&... args);
        void (*move)(void* from, void* to) noexcept;
        void (*destroy)(void* self) noexcept;
    };

    template <typename Stored>
    static constexpr operations inside{
        [](void* self, Args&&... args) -> Result {
            return (*std::launder(static_cast<Stored*>(self)))(std::forward<Args>(args)...);
        },
        [](void* from, void* to) noexcept {
            auto* source = std::launder(static_cast<Stored*>(from));
            ::new (to) Stored(std::move(*source));
            source->~Stored();
        },
        [](void* self) noexcept { std::launder(static_cast<Stored*>(self))->~Stored(); }};

    template <typename Stored>
    static constexpr operations outside{
        [](void* self, Args&&... args) -> Result {
            return (**std::launder(static_cast<Stored**>(self)))(std::forward<Args>(args)...);
        },
        [](void* from, void* to) noexcept {
            ::new (to) Stored*(*std::launder(static_cast<Stored**>(from)));
        },
        [](void* self) noexcept { delete *std::launder(static_cast<Stored**>(self)); }};

    void take(unique_function& other) noexcept {
        if (other.table_ != nullptr) {
            other.table_->move(other.storage_, storage_);
            table_ = std::exchange(other.table_, nullptr);
        }
    }

    void reset() noexcept {
        if (table_ != nullptr) {
            std::exchange(table_, nullptr)->destroy(storage_);
        }
    }

    const operations* table_ = nullptr;
    alignas(void*) std::byte storage_[inside_bytes];
};

}  // namespace dibs::core
