// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is seldom there, and large when it is: as std::optional, but of one word when it is empty, so
// that it does not make every object that may have it larger. A copy is a copy of what is inside.
//
// Thread safety: as std::optional.

#include <memory>
#include <optional>
#include <utility>

namespace dibs::core {

template <typename T>
class boxed {
  public:
    boxed() noexcept = default;
    boxed(std::nullopt_t) noexcept {}
    boxed(T value) : inside_(std::make_unique<T>(std::move(value))) {}
    boxed(boxed&&) noexcept = default;
    boxed(const boxed& other) : inside_(other ? std::make_unique<T>(*other) : nullptr) {}
    boxed& operator=(boxed&&) noexcept = default;
    boxed& operator=(const boxed& other) {
        *this = boxed(other);
        return *this;
    }
    ~boxed() = default;

    [[nodiscard]] bool has_value() const noexcept { return inside_ != nullptr; }
    [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }

    // Requires: has_value().
    [[nodiscard]] T& operator*() noexcept { return *inside_; }
    [[nodiscard]] const T& operator*() const noexcept { return *inside_; }
    [[nodiscard]] T* operator->() noexcept { return inside_.get(); }
    [[nodiscard]] const T* operator->() const noexcept { return inside_.get(); }

    void reset() noexcept { inside_.reset(); }

  private:
    std::unique_ptr<T> inside_;
};

}  // namespace dibs::core
