// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a command writes to its stdout, read as it is written, up to a bound.

#include "store/file_descriptor.hpp"

#include <cstddef>
#include <string>
#include <thread>

namespace dibs::cli {

/// A pipe, and a thread that empties it.
class captured_output {
  public:
    /// Keeps up to `bytes_max`; what is more is read and dropped. Requires: signals are taken by a desk. Errors:
    /// std::system_error.
    explicit captured_output(std::size_t bytes_max);
    ~captured_output();
    captured_output(const captured_output&) = delete;
    captured_output& operator=(const captured_output&) = delete;

    /// Where the command is to write. Close-on-exec.
    [[nodiscard]] int descriptor() const noexcept { return writer_.get(); }

    struct text {
        std::string bytes;
        bool too_long = false;
    };
    /// The command has ended: what it has written until now, whoever else still has the pipe open.
    [[nodiscard]] text finish();

  private:
    void read_all();
    void take_what_is_there();

    const std::size_t bytes_max_;
    store::file_descriptor reader_;
    store::file_descriptor writer_;
    store::file_descriptor over_;  ///< readable when the command has ended
    text text_;                    ///< the thread's, until it has ended
    std::thread thread_;
};

}  // namespace dibs::cli
