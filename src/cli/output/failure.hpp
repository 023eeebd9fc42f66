// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ends a command early: one line for people and the exit status.

#include "cli/output/exit_status.hpp"

#include <stdexcept>
#include <string>

namespace dibs::cli {

class failure : public std::runtime_error {
  public:
    failure(int status, const std::string& message)
        : std::runtime_error(message), status_(status) {}
    [[nodiscard]] int status() const noexcept { return status_; }

  private:
    int status_;
};

/// The command line is wrong.
class usage_error : public failure {
  public:
    explicit usage_error(const std::string& message) : failure(exit_status::usage, message) {}
};

/// Whoever read the output has left, as `head` does.
class reader_gone : public failure {
  public:
    explicit reader_gone(const std::string& message)
        : failure(exit_status::input_output, message) {}
};

/// The store cannot be reached, takes nobody in, or refuses as a standby does: that may pass.
class store_away : public failure {
  public:
    explicit store_away(const std::string& message) : failure(exit_status::unavailable, message) {}
};

/// A setting outside the command line is wrong, or the store cannot be used as it is.
class configuration_error : public failure {
  public:
    explicit configuration_error(const std::string& message)
        : failure(exit_status::configuration, message) {}
};

}  // namespace dibs::cli
