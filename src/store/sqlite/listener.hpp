// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hears wake-ups of other processes and the death of those that this one looks out for, without
// asking anybody anything in the meantime. Its thread starts with the first waiter.
//
// Thread safety: any thread.

#include "store/file_descriptor.hpp"
#include "store/sqlite/holders_folder.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace dibs::store::sqlite {

class listener : public std::enable_shared_from_this<listener> {
  public:
    /// `heard` is called on the listener's thread, and may stop it: the key may be free; empty:
    /// any key.
    listener(holders_folder& folder, std::function<void(std::string key)> heard)
        : folder_(folder), heard_(std::move(heard)) {}

    /// Idempotent.
    [[nodiscard]] failure start();

    /// From now on the key is heard of when one of these dies; replaces what was looked out for
    /// before. True when one of them is dead already.
    [[nodiscard]] bool look_out(const std::string& key, const std::vector<process_id>& processes);

    /// Nothing is heard afterwards. May be called by `heard`.
    void stop();
    /// In a forked child: the thread is not there and must not be waited for.
    void abandon();

  private:
    void listen();
    void hear(std::string key);
    void hear_messages();
    void hear_death(int number);
    void nudge() const;

    holders_folder& folder_;
    const std::function<void(std::string)> heard_;
    file_descriptor socket_;
    file_descriptor nudge_;
    std::thread thread_;

    std::mutex lock_;
    bool stopping_ = false;
    struct watched {
        file_descriptor read_end;
        std::set<std::string> keys;
    };
    std::map<process_id, watched> watched_;
    std::unordered_map<std::string, std::vector<process_id>> by_key_;
    std::vector<file_descriptor> retired_;  // closed by the thread, which may be polling them
};

}  // namespace dibs::store::sqlite
