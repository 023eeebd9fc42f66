// SPDX-License-Identifier: Apache-2.0
#pragma once
// Closes a descriptor when it goes.

#include <unistd.h>

#include <utility>

namespace dibs::detail {

class file_descriptor {
  public:
    file_descriptor() noexcept = default;
    explicit file_descriptor(int number) noexcept : number_(number) {}
    file_descriptor(file_descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    file_descriptor& operator=(file_descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~file_descriptor() {
        if (number_ >= 0) {
            ::close(number_);
        }
    }

    [[nodiscard]] int get() const noexcept { return number_; }

  private:
    int number_ = -1;
};

}  // namespace dibs::detail
