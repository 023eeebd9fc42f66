// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file descriptor that closes itself.

#include <unistd.h>

#include <utility>

namespace dibs::store {

/// Thread safety: none.
class file_descriptor {
  public:
    file_descriptor() = default;
    /// Takes it over; a negative number, as failed calls of the system return, is none.
    explicit file_descriptor(int number) noexcept : number_(number) {}
    file_descriptor(file_descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    file_descriptor& operator=(file_descriptor&& other) noexcept {
        if (this != &other) {
            close();
            number_ = std::exchange(other.number_, -1);
        }
        return *this;
    }
    ~file_descriptor() { close(); }

    [[nodiscard]] int get() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }
    void close() noexcept {
        if (number_ >= 0) {
            ::close(std::exchange(number_, -1));
        }
    }

  private:
    int number_ = -1;
};

}  // namespace dibs::store
