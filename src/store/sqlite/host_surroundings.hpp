// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host as the database sees it.

#include "core/environment.hpp"
#include "store/sqlite/holders_folder.hpp"
#include "store/sqlite/surroundings.hpp"

#include <cstddef>
#include <ctime>
#include <functional>
#include <span>

namespace dibs::store::sqlite {

class host_surroundings final : public surroundings {
  public:
    host_surroundings(core::environment env,
                      std::function<core::store_now()> clock,
                      holders_folder& folder)
        : env_(env), clock_(std::move(clock)), folder_(folder) {}

    [[nodiscard]] core::store_now clock() override { return clock_(); }
    [[nodiscard]] core::instant now() override { return env_.time.now(); }
    void pause(core::microseconds length) override {
        const std::timespec span{0, length.count() * 1000};
        ::nanosleep(&span, nullptr);
    }
    [[nodiscard]] bool gone(const process_id& process) override { return folder_.gone(process); }
    [[nodiscard]] failure appear() override { return folder_.appear(); }
    [[nodiscard]] std::uint64_t draw() override {
        std::uint64_t drawn = 0;
        env_.random.fill(std::as_writable_bytes(std::span{&drawn, 1}));
        return drawn;
    }

  private:
    const core::environment env_;
    const std::function<core::store_now()> clock_;
    holders_folder& folder_;
};

}  // namespace dibs::store::sqlite
