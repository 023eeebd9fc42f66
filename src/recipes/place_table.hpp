// SPDX-License-Identifier: Apache-2.0
#pragma once
// Objects by their names, which they have themselves, as `key`. Every call makes one and drops it
// again, so a name is hashed once for looking it up and keeping it, and nothing is allocated beside
// the objects.
//
// Requires of `Place`: a `key` that converts to std::string_view, and a default-constructed `entry`.
// Thread safety: none.

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace dibs::recipes {

/// What an object has for the table that it is in.
template <typename Place>
struct place_entry {
    std::size_t hash = 0;
    std::shared_ptr<Place> next;
    bool listed = false;
};

template <typename Place>
class place_table {
  public:
    using pointer = std::shared_ptr<Place>;

    place_table() : heads_(fewest_heads) {}
    ~place_table() { clear(); }
    place_table(const place_table&) = delete;
    place_table& operator=(const place_table&) = delete;

    [[nodiscard]] static std::size_t hash_of(std::string_view key) noexcept {
        return std::hash<std::string_view>{}(key);
    }

    /// Null: there is none.
    [[nodiscard]] const pointer& find(std::string_view key) const {
        return find(key, hash_of(key));
    }
    [[nodiscard]] const pointer& find(std::string_view key, std::size_t hash) const {
        const auto* at = &heads_[slot_of(hash)];
        while (*at && ((*at)->entry.hash != hash || (*at)->key != key)) {
            at = &(*at)->entry.next;
        }
        return *at;
    }

    /// Requires: there is none of this name. `hash` is that of its key.
    void add(pointer made, std::size_t hash) {
        if (size_ >= heads_.size()) {
            grow();
        }
        ++size_;
        made->entry.hash = hash;
        made->entry.listed = true;
        push(std::move(made));
    }

    /// Does nothing when it is not in the table.
    void remove(const Place& gone) noexcept {
        if (!gone.entry.listed) {
            return;
        }
        auto* at = &heads_[slot_of(gone.entry.hash)];
        while (at->get() != &gone) {
            at = &(*at)->entry.next;
        }
        const auto taken = std::move(*at);
        *at = std::move(taken->entry.next);
        taken->entry.listed = false;
        --size_;
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

  private:
    static constexpr std::size_t fewest_heads = 16;  // as all numbers of heads, a power of two

    [[nodiscard]] std::size_t slot_of(std::size_t hash) const noexcept {
        return hash & (heads_.size() - 1);
    }

    void push(pointer made) noexcept {
        auto& head = heads_[slot_of(made->entry.hash)];
        made->entry.next = std::move(head);
        head = std::move(made);
    }

    void grow() {
        std::vector<pointer> before(heads_.size() * 2);
        before.swap(heads_);
        for (auto& head : before) {
            while (auto one = std::move(head)) {
                head = std::move(one->entry.next);
                push(std::move(one));
            }
        }
    }

    /// One by one: a long row would take itself apart by recursion.
    void clear() noexcept {
        for (auto& head : heads_) {
            while (const auto one = std::move(head)) {
                head = std::move(one->entry.next);
                one->entry.listed = false;
            }
        }
        size_ = 0;
    }

    std::vector<pointer> heads_;
    std::size_t size_ = 0;
};

}  // namespace dibs::recipes
