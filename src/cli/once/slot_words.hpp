// SPDX-License-Identifier: Apache-2.0
#pragma once
// A slot of a job, in words: what `dibs once` and `dibs runs` say of it.

#include "client/recipes/slot_run.hpp"
#include "recipes/once/slot_record.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace dibs::cli {

[[nodiscard]] std::string instant_text(std::int64_t since_1970_ms);

/// Host, process, user, attempt and beginning of a run.
[[nodiscard]] std::string who_ran(const recipes::slot_record& record);

/// The state of a slot as a sentence. `verdict`: neither granted nor trouble.
[[nodiscard]] std::string describe_slot(const std::string& key,
                                        detail::slot_verdict verdict,
                                        const std::optional<recipes::slot_record>& record);

}  // namespace dibs::cli
