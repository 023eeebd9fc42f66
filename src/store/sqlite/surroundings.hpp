// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the database needs to know of the world outside its file. The real one is
// host_surroundings.hpp; a simulator brings virtual time and processes that die when it says so.

#include "core/time.hpp"
#include "store/sqlite/errors.hpp"
#include "store/sqlite/process_id.hpp"

#include <cstdint>

namespace dibs::store::sqlite {

class surroundings {
  public:
    virtual ~surroundings() = default;

    /// The clock that decides expiry, and the calendar.
    [[nodiscard]] virtual core::store_now clock() = 0;

    /// The clock of the deadlines of entries.
    [[nodiscard]] virtual core::instant now() = 0;

    /// Lets another process finish with the file.
    virtual void pause(core::microseconds length) = 0;

    /// True only when it is certain that the process, and everybody who inherited from it, is gone.
    [[nodiscard]] virtual bool gone(const process_id& process) = 0;

    /// Makes this process visible to `gone` of others, before its row is written.
    [[nodiscard]] virtual failure appear() = 0;

    /// A number nobody can foresee: where to look next for what others left behind.
    [[nodiscard]] virtual std::uint64_t draw() = 0;
};

}  // namespace dibs::store::sqlite
