// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the store objects of one name share: records, who granted them, who watches.
//
// Thread safety: one object may be used from any thread; each call is one atomic step, a batch
// included.

#include "core/record.hpp"
#include "core/time.hpp"
#include "store/record/rules.hpp"
#include "store/record/ticket_line.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store {

using store_clock_reader = std::function<core::store_now()>;

class memory_space {
  public:
    /// Tells a watcher, on its own executor. Called with the space locked: must do no more than
    /// post.
    using waker = std::function<void(wake_by)>;

    /// The space of a name; a new one for the empty name.
    [[nodiscard]] static std::shared_ptr<memory_space> open(const std::string& name);

    /// A process comes in. Returns its number.
    [[nodiscard]] std::uint64_t join(core::party who);

    /// A process is gone: its watchers too, and what it was granted attached.
    void leave(std::uint64_t process, core::store_now now);

    /// `now` is the local moment that the entries' deadlines are compared with. `wakes_all`: what ends
    /// a grant wakes every process, and tells each whose step it was.
    [[nodiscard]] answers execute(std::uint64_t self,
                                  const std::vector<core::entry>& batch,
                                  const store_clock_reader& clock,
                                  core::instant now,
                                  bool wakes_all = false);

    void watch(watch_id id, std::uint64_t process, std::string_view key, waker wake);
    void unwatch(watch_id id);

    [[nodiscard]] core::page list(std::uint64_t self,
                                  const std::string& prefix,
                                  const std::string& after,
                                  std::size_t limit,
                                  const store_clock_reader& clock);

    /// Never twice in the life of the program, whichever space it is for.
    [[nodiscard]] static watch_id new_watch_id() noexcept;

  private:
    struct member final {
        core::party who;
        bool gone = false;
    };
    class known_parties final : public parties {
      public:
        explicit known_parties(const std::map<std::uint64_t, member>& all) : all_{all} {}
        [[nodiscard]] core::party who(std::uint64_t number) const override;

      private:
        const std::map<std::uint64_t, member>& all_;
    };
    struct watcher {
        watch_id id = 0;
        std::uint64_t process = 0;
        waker wake;
        bool woken = false;  ///< and nobody has taken the key since
    };
    using records = std::map<std::string, core::record, std::less<>>;
    using watcher_lists = std::map<std::string, std::vector<watcher>, std::less<>>;

    core::answer execute_one(const core::entry& what, const rules_context& context, bool wakes_all);
    void know_the_dead(core::record& kept) const;
    [[nodiscard]] bool others_wait(const std::string& key, core::store_now now, std::uint64_t self);
    [[nodiscard]] std::uint32_t waiting_processes(const std::string& key) const;
    [[nodiscard]] bool gone(std::uint64_t process) const;
    /// The head of the queue, if there is one; else one of those who race.
    void wake_next(const std::string& key, core::store_now now);
    void wake_process(const std::string& key, std::uint64_t process);
    void wake_one(const std::string& key);
    /// `by`: the process whose step it is, where that is told; 0: it is not.
    void wake_all(const std::string& key, std::uint64_t by = 0);
    void note_taken(const std::string& key);
    void purge_some(core::store_now now);
    void purge(records::iterator at, core::store_now now);

    std::mutex mutex_;
    records records_;
    std::map<std::string, ticket_line, std::less<>> queues_;  ///< none is empty
    std::uint64_t last_ticket_ = 0;
    ticket_line::gone_query gone_query_ = [this](std::uint64_t process) { return gone(process); };
    watcher_lists watchers_;
    std::map<watch_id, std::string> watched_key_;
    std::map<std::uint64_t, member> processes_;
    std::uint64_t last_process_ = 0;
    std::string purged_up_to_;
};

}  // namespace dibs::store
