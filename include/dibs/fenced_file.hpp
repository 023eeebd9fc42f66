// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file that refuses a late writer: it is replaced as a whole, under a lock and only with a fence
// that is not older than the last one. For files on a local disk that are written by nobody else:
// over NFS and the like the lock promises nothing, and who writes without it is not noticed.
//
// Beside FILE there is FILE.fence with the newest fence, which must stay with it.
//
// Thread safety: all of it may be called from any thread, for the same file, too: writers take turns, whether they are of
// one process or of several.

#include <dibs/error.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace dibs {

/// Replaces the content, unless a newer fence was here. False: refused, the file is as it was.
/// Readers see the old content or the new one, never a part; both survive a loss of power.
/// Errors: `store_busy`: another writer did not get done within `wait`; `store_damaged`: FILE.fence
/// cannot be understood; those of the operating system, after which the fence may be claimed
/// already.
[[nodiscard]] bool write_fenced(const std::filesystem::path& file,
                                std::string_view content,
                                std::uint64_t fence,
                                std::chrono::milliseconds wait = std::chrono::milliseconds{10'000});
[[nodiscard]] bool write_fenced(const std::filesystem::path& file,
                                std::string_view content,
                                std::uint64_t fence,
                                std::chrono::milliseconds wait,
                                std::error_code& error) noexcept;

/// Keeps older fences out from now on; to be called before the file is read. False: a newer one was
/// here. Errors: as above.
[[nodiscard]] bool claim_fenced(const std::filesystem::path& file,
                                std::uint64_t fence,
                                std::chrono::milliseconds wait = std::chrono::milliseconds{10'000});
[[nodiscard]] bool claim_fenced(const std::filesystem::path& file,
                                std::uint64_t fence,
                                std::chrono::milliseconds wait,
                                std::error_code& error) noexcept;

}  // namespace dibs
