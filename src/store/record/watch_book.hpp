// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which callers of this process wait for which key. However many they are, the store is told once
// per key.
//
// Thread safety: the executor alone.

#include "store/store.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dibs::store {

class watch_book {
  public:
    /// One stay of the process with a key: it may be left and entered again before the first
    /// entering is answered.
    using stay = std::uint64_t;

    struct added {
        watch_id id = 0;
        stay begins = 0;         ///< not 0: enter the key in the store now
        bool ready_now = false;  ///< the key is entered already
    };
    [[nodiscard]] added add(std::string_view key, watch_completion ready, wake_callback wake);

    /// Adds a watcher for whom nothing is entered: it hears of what is told anyway.
    [[nodiscard]] watch_id add_listener(std::string_view key, wake_callback wake);

    /// Not empty: leave this key in the store now.
    [[nodiscard]] std::string remove(watch_id id);

    /// The entering of a stay is answered: tells those who waited for it.
    void entered(const std::string& key, stay which, std::error_code outcome);

    /// Tells one watcher of a key that was entered before it came, if it is still there.
    void ready(watch_id id);

    /// Empty: any key.
    void wake(const std::string& key, wake_by whose = wake_by::unknown);

    void clear();

  private:
    struct watcher {
        watch_completion ready;  // empty once it is told
        wake_callback wake;
    };
    struct place {
        stay which = 0;
        bool entered = false;
        std::error_code outcome;
        std::map<watch_id, watcher> watchers;
    };
    void wake_all_of(const std::string& key, wake_by whose);

    std::unordered_map<std::string, place> places_;
    std::unordered_map<watch_id, std::string> keys_;
    watch_id next_ = 0;
    stay next_stay_ = 0;
};

}  // namespace dibs::store
