// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end of what a command writes, kept while all of it is passed on to where it goes without this.

#include "store/file_descriptor.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <thread>

namespace dibs::cli {

class output_tail {
  public:
    /// Keeps the last `most` bytes of stdout and stderr together. Starts a thread. Errors: std::system_error.
    explicit output_tail(std::size_t most);
    ~output_tail();
    output_tail(const output_tail&) = delete;
    output_tail& operator=(const output_tail&) = delete;

    /// What becomes the command's stdout and stderr.
    [[nodiscard]] int output() const noexcept { return streams_[0].writer.get(); }
    [[nodiscard]] int errors() const noexcept { return streams_[1].writer.get(); }

    /// The command has ended: passes on what it has written until now, and returns the end of it. What it left behind may go
    /// on writing; nobody reads that.
    std::string finish();

  private:
    struct stream {
        store::file_descriptor reader;
        store::file_descriptor writer;
        int onward = -1;
    };
    void copy() noexcept;
    bool pass(stream& from) noexcept;
    /// False: whoever read it has gone.
    [[nodiscard]] bool write_all(int to, const char* text, std::size_t length) noexcept;
    [[nodiscard]] bool told_to_finish() const noexcept;

    std::size_t most_;
    std::array<stream, 2> streams_;
    store::file_descriptor finishing_;
    std::string kept_;
    std::thread thread_;
};

}  // namespace dibs::cli
