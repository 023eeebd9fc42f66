// SPDX-License-Identifier: Apache-2.0
#include <dibs/fenced_file.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace dibs {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class descriptor {
  public:
    explicit descriptor(int number) : number_(number) {}
    descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    descriptor& operator=(descriptor&&) = delete;
    ~descriptor() {
        if (number_ >= 0) {
            ::close(number_);
        }
    }
    [[nodiscard]] int get() const noexcept { return number_; }

  private:
    int number_;
};

[[noreturn]] void fail(const std::filesystem::path& about) {
    throw std::system_error(errno, std::generic_category(), about.string());
}

void write_all(int to, std::string_view text, const std::filesystem::path& about) {
    while (!text.empty()) {
        const auto done = ::write(to, text.data(), text.size());
        if (done < 0 && errno != EINTR) {
            fail(about);
        }
        text.remove_prefix(done < 0 ? 0 : static_cast<std::size_t>(done));
    }
}

void sync(int what, const std::filesystem::path& about) {
    if (::fsync(what) != 0) {
        fail(about);
    }
}

void sync_folder(const std::filesystem::path& file) {
    const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path{"."};
    const descriptor opened{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (opened.get() < 0) {
        fail(folder);
    }
    sync(opened.get(), folder);
}

/// FILE.fence, locked for as long as this lives.
class fence_file {
  public:
    fence_file(const std::filesystem::path& file, milliseconds wait)
        : path_(file.string() + ".fence"),
          opened_(
              open_locked(path_, clock::now() + std::clamp(wait, milliseconds{0}, longest_wait))) {}

    /// 0: none yet.
    [[nodiscard]] std::uint64_t newest() const {
        std::array<char, width> text{};
        const auto size = ::pread(opened_.get(), text.data(), text.size(), 0);
        if (size < 0) {
            fail(path_);
        }
        if (size == 0) {
            return 0;
        }
        std::uint64_t found = 0;
        const auto* end = text.data() + digits;
        if (size != width || text[digits] != '\n' ||
            std::from_chars(text.data(), end, found).ptr != end) {
            throw error(make_error_code(errc::store_damaged), path_.string());
        }
        return found;
    }
    /// In place, since the lock is the file's; few bytes of one sector, so that they are the old
    /// ones or the new ones after a loss of power.
    void remember(std::uint64_t fence) {
        std::array<char, width + 1> text{};
        std::snprintf(
            text.data(), text.size(), "%020llu\n", static_cast<unsigned long long>(fence));
        if (::pwrite(opened_.get(), text.data(), width, 0) != width) {
            fail(path_);
        }
        sync(opened_.get(), path_);
        sync_folder(path_);
    }

  private:
    static constexpr std::size_t digits = 20;
    static constexpr ssize_t width = digits + 1;

    /// Ten years: what is added to the clock must not overflow it.
    static constexpr milliseconds longest_wait = std::chrono::hours{24 * 365 * 10};

    static descriptor open_locked(const std::filesystem::path& path, clock::time_point until) {
        while (true) {
            descriptor opened{
                ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)};
            if (opened.get() < 0) {
                fail(path);
            }
            while (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0) {
                if (errno != EWOULDBLOCK && errno != EINTR) {
                    fail(path);
                }
                if (clock::now() >= until) {
                    throw error(make_error_code(errc::store_busy),
                                path.string() + ": another writer has it");
                }
                std::this_thread::sleep_for(milliseconds{1});
            }
            // Somebody may have put another file there while this one was being locked.
            struct stat ours {};
            struct stat there {};
            if (::fstat(opened.get(), &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
                ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
                return opened;
            }
        }
    }

    std::filesystem::path path_;
    descriptor opened_;
};

/// The content under a name of its own, until it takes the place of the file.
class draft {
  public:
    draft(const std::filesystem::path& file, std::string_view content)
        : name_(file.string() + ".XXXXXX") {
        const descriptor opened{::mkostemp(name_.data(), O_CLOEXEC)};
        if (opened.get() < 0) {
            name_.clear();
            fail(file);
        }
        try {
            struct stat before {};
            const bool is_there = ::stat(file.c_str(), &before) == 0;
            if (::fchmod(opened.get(), is_there ? before.st_mode & 07777 : 0644) != 0) {
                fail(name_);
            }
            write_all(opened.get(), content, name_);
            sync(opened.get(), name_);
        } catch (...) {
            ::unlink(name_.c_str());
            throw;
        }
    }
    draft(const draft&) = delete;
    draft& operator=(const draft&) = delete;
    ~draft() {
        if (!name_.empty()) {
            ::unlink(name_.c_str());
        }
    }
    void replace(const std::filesystem::path& file) {
        if (::rename(name_.c_str(), file.c_str()) != 0) {
            fail(file);
        }
        name_.clear();
        sync_folder(file);
    }

  private:
    std::string name_;
};

bool write(const std::filesystem::path& file,
           std::optional<std::string_view> content,
           std::uint64_t fence,
           milliseconds wait) {
    if (fence == 0) {
        throw error(make_error_code(errc::invalid_argument), "a fence is larger than 0");
    }
    fence_file known(file, wait);
    const auto newest = known.newest();
    if (newest > fence) {
        return false;
    }
    if (newest < fence) {
        known.remember(fence);  // before the content: what is between the two keeps older ones out
    }
    if (content) {
        draft(file, *content).replace(file);
    }
    return true;
}

template <typename Call>
bool without_throwing(std::error_code& error, Call call) noexcept {
    error.clear();
    try {
        return call();
    } catch (const std::system_error& fault) {
        error = fault.code();
    } catch (const std::bad_alloc&) {
        error = std::make_error_code(std::errc::not_enough_memory);
    }
    return false;
}

}  // namespace

bool write_fenced(const std::filesystem::path& file,
                  std::string_view content,
                  std::uint64_t fence,
                  milliseconds wait) {
    return write(file, content, fence, wait);
}

bool write_fenced(const std::filesystem::path& file,
                  std::string_view content,
                  std::uint64_t fence,
                  milliseconds wait,
                  std::error_code& error) noexcept {
    return without_throwing(error, [&] { return write(file, content, fence, wait); });
}

bool claim_fenced(const std::filesystem::path& file, std::uint64_t fence, milliseconds wait) {
    return write(file, std::nullopt, fence, wait);
}

bool claim_fenced(const std::filesystem::path& file,
                  std::uint64_t fence,
                  milliseconds wait,
                  std::error_code& error) noexcept {
    return without_throwing(error, [&] { return write(file, std::nullopt, fence, wait); });
}

}  // namespace dibs
