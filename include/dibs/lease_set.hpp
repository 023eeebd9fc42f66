// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leases of several keys that were taken together (client::acquire_all): held together, given
// back together, each with a fence of its own.

#include <dibs/lease.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>
#include <system_error>

namespace dibs {

/// Movable; destroying it gives all leases back.
///
/// Each lease is one of its own: the loss of one takes no other along, but what needs all of them
/// must stop. `held`, `remaining` and `lost` speak for the whole.
///
/// Thread safety: as lease.
class lease_set {
  public:
    /// An empty set.
    lease_set() noexcept;
    lease_set(lease_set&& other) noexcept;
    lease_set& operator=(lease_set&& other) noexcept;

    /// As that of lease, for each of them.
    ~lease_set();

    [[nodiscard]] std::size_t size() const noexcept;

    /// In the order of the keys' bytes. Requires: place < size().
    [[nodiscard]] lease& operator[](std::size_t place) noexcept;
    [[nodiscard]] const lease& operator[](std::size_t place) const noexcept;

    /// The lease of a key. Null: it is none of these.
    [[nodiscard]] lease* find(std::string_view key) noexcept;
    [[nodiscard]] const lease* find(std::string_view key) const noexcept;

    /// Whether all are held at this moment; false for an empty set.
    [[nodiscard]] bool held() const noexcept;
    [[nodiscard]] explicit operator bool() const noexcept { return held(); }

    /// How long all are held for sure if no renewal succeeds.
    [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

    /// The fencing token of a key: for what that key protects, and nothing else. Errors: as
    /// lease::fence; errc::not_held for a key that is none of these.
    [[nodiscard]] std::uint64_t fence(std::string_view key) const;
    [[nodiscard]] std::uint64_t fence(std::string_view key, std::error_code& error) const noexcept;

    /// Requested once, when the first of them is lost. As lease::lost.
    [[nodiscard]] std::stop_token lost() const noexcept;

    /// Gives all back; `released` when all of them were held to this moment, and none was moved out or
    /// handed over, which stays where it is. Errors: of the first
    /// one that could not be given back; the others were given back all the same.
    [[nodiscard]] release_outcome release();
    [[nodiscard]] release_outcome release(std::error_code& error) noexcept;

  private:
    friend struct detail::lease_access;
    struct contents;
    explicit lease_set(std::unique_ptr<contents> held) noexcept;
    std::unique_ptr<contents> contents_;
};

}  // namespace dibs
