// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/host_clock.hpp"

#include "store/text_file.hpp"

#include <dibs/error.hpp>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <sstream>

namespace dibs::store::sqlite {

namespace {

core::nanoseconds read_clock(clockid_t which) noexcept {
    std::timespec at{};
    ::clock_gettime(which, &at);
    return std::chrono::seconds{at.tv_sec} + core::nanoseconds{at.tv_nsec};
}

std::string link_target(const char* path) {
    std::error_code none;
    return std::filesystem::read_symlink(path, none).string();
}

}  // namespace

core::nanoseconds boot_offset(std::string_view offsets) {
    std::istringstream lines{std::string{offsets}};
    std::string clock;
    long long seconds = 0;
    long long nanoseconds = 0;
    while (lines >> clock >> seconds >> nanoseconds) {
        if (clock == "boottime") {
            return std::chrono::seconds{seconds} + core::nanoseconds{nanoseconds};
        }
    }
    return {};
}

failure host_clock::open(host_clock& opened) {
    // Kernels without time namespaces have neither file.
    const auto own = link_target("/proc/self/ns/time");
    const auto children = link_target("/proc/self/ns/time_for_children");
    if (own != children) {
        return {errc::unsupported,
                "this process has set up a time namespace for its children and is not in it "
                "itself, so its clock cannot be compared with others'; start dibs in a child "
                "(unshare --fork)"};
    }
    constexpr auto path = "/proc/self/timens_offsets";
    const auto offsets = read_text_file(path);
    if (offsets.trouble != 0 && offsets.trouble != ENOENT) {
        return translate_errno(offsets.trouble, std::string{path} + ": cannot be read");
    }
    opened.offset_ = boot_offset(offsets.text);
    return {};
}

core::store_now host_clock::now() const noexcept {
    using std::chrono::duration_cast;
    return {core::store_instant{
                duration_cast<core::microseconds>(read_clock(CLOCK_BOOTTIME) - offset_)},
            core::wall_instant{duration_cast<core::microseconds>(read_clock(CLOCK_REALTIME))}};
}

failure read_boot_id(std::string& id) {
    constexpr auto path = "/proc/sys/kernel/random/boot_id";
    const auto file = read_text_file(path);
    if (file.trouble == EMFILE || file.trouble == ENFILE) {
        return translate_errno(file.trouble, std::string{path} + ": cannot be read");
    }
    id = file.text.substr(0, file.text.find('\n'));
    if (file.trouble != 0 || id.empty()) {
        return {errc::unsupported,
                std::string{path} +
                    ": cannot be read, so grants from before a reboot could not be told from live "
                    "ones; mount /proc"};
    }
    return {};
}

}  // namespace dibs::store::sqlite
