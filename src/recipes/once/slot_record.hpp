// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is kept of a slot: who ran it, when, and how that ended. The value of the record's result,
// as one JSON object of format 1.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::recipes {

enum class slot_state : std::uint8_t {
    started,  ///< a run has begun; without a live holder it ended without a word: its process is
              ///< gone, or could not tell the store
    done,
    failed,
    interrupted,  ///< its host was told to stop it: nobody's failure, and free for others
    skipped,      ///< a host found the slot taken or over; in a record of its own
};

struct slot_record {
    std::string job;
    std::string slot;
    unsigned attempt = 0;       ///< of this run, from 1
    unsigned failures = 0;      ///< runs so far that ended and failed
    bool at_most_once = false;  ///< once started, nobody runs the slot again
    slot_state state = slot_state::started;
    bool lost = false;          ///< failed: its lease was lost, so others may have been at it too
    std::optional<int> status;  ///< exit status, once it has ended
    std::string host;
    std::int64_t pid = 0;
    std::string user;
    std::int64_t started_ms = 0;  ///< since 1970, by the clock of the host that ran it: for people
    std::int64_t ended_ms = 0;    ///< 0: not ended
    std::int64_t next_at_ms = 0;  ///< failed: when it may be tried again; 0: never
    /// Since 1970: where the slot begins by its schedule. Empty for a slot that was named by hand.
    std::optional<std::int64_t> begin_ms;
    /// failed: the boot of the host that ran it, and when it ended by the clock that counts from there. Empty: unknown.
    std::string boot;
    std::int64_t ended_boot_ms = 0;
    std::string output;  ///< the end of what the run wrote, when that was asked for
};

/// How long a failed run must not be followed by another: on the host that ran it by the clock that
/// counts from its boot, elsewhere by the store's clock, which tells the age of the record. Zero for
/// other records.
[[nodiscard]] std::chrono::milliseconds back_off_left(const slot_record& record,
                                                      std::chrono::milliseconds age,
                                                      std::string_view boot,
                                                      std::int64_t now_boot_ms) noexcept;

/// Nobody will run the slot again, unless somebody is at it now.
[[nodiscard]] bool is_final(const slot_record& record) noexcept;

[[nodiscard]] std::string_view name_of(slot_state state) noexcept;

[[nodiscard]] std::string to_text(const slot_record& record);

/// Empty when this is no slot's record, or one of a newer format: `newer` tells which.
[[nodiscard]] std::optional<slot_record> slot_record_of(std::string_view text, bool& newer);

// Keys. A slot's name is not empty and holds neither '@' nor '#', so that no two of these are alike.

[[nodiscard]] std::string key_of_slot(std::string_view job, std::string_view slot);
[[nodiscard]] std::string key_of_skip(std::string_view job,
                                      std::string_view slot,
                                      std::string_view host);
/// What tells which slots of a job were forgotten.
[[nodiscard]] std::string key_of_horizon(std::string_view job);
/// Held while a slot of the job is run in turn.
[[nodiscard]] std::string key_of_turn(std::string_view job);
/// For whatever the job calls: JOB/SLOT, with `/` and `%` of the job as in a URL, so that two slots have never the same.
[[nodiscard]] std::string idempotency_key_of(std::string_view job, std::string_view slot);
/// Empty when it may be the name of a slot; else why not.
[[nodiscard]] std::string fault_of_slot(std::string_view slot);

}  // namespace dibs::recipes
