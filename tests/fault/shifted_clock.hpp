// SPDX-License-Identifier: Apache-2.0
#pragma once
// A wall clock of its own for whoever is launched with it (tests/cli/clock_shim.cpp).

#include "support.hpp"
#include "support/places.hpp"

#include <string>
#include <utility>

namespace dibs::testing {

class shifted_clock {
  public:
    shifted_clock(const folder& here, const std::string& name) : path_(here.file(name)) {
        shift(0);
    }
    void shift(int seconds) const { write_file(path_, std::to_string(seconds)); }
    [[nodiscard]] launch seen_by(launch how) const {
        how.variables["LD_PRELOAD"] = tests::places::clock_shim;
        how.variables["SHIFT_FILE"] = path_;
        return how;
    }

  private:
    std::string path_;
};

}  // namespace dibs::testing
