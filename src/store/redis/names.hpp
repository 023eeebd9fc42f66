// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a record lies: the lock at exactly the user's key behind the prefix, everything else beside
// it in one string, whose name is also the channel that waiters listen to. Both have one hash slot, so
// that a Cluster can keep them together, and no two keys share a name.
//
//   key without hash tag  invoice     {invoice}:~dibs
//   key with one          {a}invoice  {a}invoice:~dibs:

#include <optional>
#include <string>
#include <string_view>

namespace dibs::store::redis {

class names {
  public:
    explicit names(std::string prefix) : prefix_(std::move(prefix)) {}

    [[nodiscard]] std::string lock(std::string_view key) const;
    /// The rest of the record, and the channel.
    [[nodiscard]] std::string rest(std::string_view key) const;
    /// The same, into a text that is used again.
    void put_lock(std::string& name, std::string_view key) const;
    void put_rest(std::string& name, std::string_view key) const;
    /// How long those are.
    [[nodiscard]] std::size_t lock_size(std::string_view key) const noexcept;
    [[nodiscard]] std::size_t rest_size_max(std::string_view key) const noexcept;
    /// The channel by which a process hears that it is the head of a queue, by the name of its rest.
    [[nodiscard]] static std::string channel_of_process(std::string_view process);
    /// The channel by which it hears, by the names of their rests, of the end of locks with which it
    /// left word.
    [[nodiscard]] static std::string channel_of_notices(std::string_view process);
    /// The process of such a channel; empty when it is none.
    [[nodiscard]] static std::string_view process_of_channel(std::string_view channel) noexcept;
    [[nodiscard]] static std::string_view process_of_notices(std::string_view channel) noexcept;
    /// Of the whole database: which server's grants count.
    [[nodiscard]] std::string epoch() const;
    /// Of the whole database, whatever the prefix: the largest fence, as far as it has to be known.
    [[nodiscard]] static std::string fence_mark();
    /// The user's key of such a name; empty when it is none, or one of another prefix.
    [[nodiscard]] std::optional<std::string> key_of_rest(std::string_view name) const;

    /// The user's key of the name of a lock; empty when it is none, or one of another prefix.
    [[nodiscard]] std::optional<std::string> key_of_lock(std::string_view name) const;

    /// Empty when this store can keep the key; else why not.
    [[nodiscard]] static std::string fault_of(std::string_view key);

    /// Globs that match the names of all rests, and of all locks and rests, of records whose key
    /// starts with `key_prefix`, and others.
    [[nodiscard]] std::string pattern_of_rests(std::string_view key_prefix) const;
    [[nodiscard]] std::string pattern(std::string_view key_prefix) const;

  private:
    std::string prefix_;
};

}  // namespace dibs::store::redis
