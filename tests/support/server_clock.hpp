// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calendar of a server under test, by way of server_clock_shim.cpp.

#include "support/places.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace dibs::testing {

/// The calendar of a server, set by the test.
class server_clock {
  public:
    enum class runs {
        when_told,  ///< stands still between two calls of advance()
        by_itself,  ///< the time of this host, and what advance() added to it
    };

    server_clock(const std::string& path, std::int64_t start_us, runs how = runs::when_told)
        : path_(path), how_(how) {
        const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (opened < 0 || ::ftruncate(opened, sizeof(std::int64_t)) != 0) {
            throw std::runtime_error{"no clock file " + path};
        }
        void* place =
            ::mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
        ::close(opened);
        if (place == MAP_FAILED) {
            throw std::runtime_error{"no clock in " + path};
        }
        clock_ = static_cast<std::atomic<std::int64_t>*>(place);
        clock_->store(start_us);
    }
    server_clock(const server_clock&) = delete;
    server_clock& operator=(const server_clock&) = delete;
    ~server_clock() { ::munmap(clock_, sizeof(std::int64_t)); }

    /// What stands before the command line of a server that goes by it.
    [[nodiscard]] std::vector<std::string> wrapper() const {
        return {"env",
                std::string{"LD_PRELOAD="} + tests::places::server_clock_shim,
                "DIBS_SERVER_CLOCK=" + path_,
                std::string{"DIBS_SERVER_CLOCK_RUNS="} + (goes_by_itself() ? "1" : "")};
    }

    void advance(std::int64_t us) { clock_->fetch_add(us); }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] bool goes_by_itself() const noexcept { return how_ == runs::by_itself; }

  private:
    std::string path_;
    runs how_;
    std::atomic<std::int64_t>* clock_ = nullptr;
};

}  // namespace dibs::testing
