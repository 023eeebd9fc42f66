// SPDX-License-Identifier: Apache-2.0
#pragma once
// Feeds the database. All that waits goes into one transaction: a batch costs little more than one
// step, and a commit to disk is paid once. One thread works, either the worker's own or one that a
// blocking caller lends.
//
// Thread safety: any thread, except `stop`.

#include "core/unique_function.hpp"
#include "store/sqlite/database.hpp"
#include "store/store.hpp"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dibs::store::sqlite {

struct batch_job {
    lane which = lane::others;
    std::vector<core::entry> entries;
    answers replies;
    batch_completion done;
};

struct enrolment_job {
    enrolment wish;
    core::unique_function<void(failure)> done;
};

struct list_job {
    std::string prefix;
    std::string after;
    std::size_t limit = 0;
    core::page page;
    page_completion done;
};

class worker : public std::enable_shared_from_this<worker> {
  public:
    struct hooks {
        std::function<failure()> before_waiting;  ///< before the first enrolment of a group
        /// Before anybody is told; adds what is to be told besides.
        std::function<void(aftermath&, std::vector<core::task>&)> after_commit;
        /// Brings completions to their callers. These may run at once, on this thread, and stop the
        /// worker; not when it is `busy`, and will then bring more, or nothing.
        std::function<void(std::vector<core::task>, bool busy)> tell;
    };

    worker(database& file, hooks outside) : file_(file), outside_(std::move(outside)) {}

    void start();

    void submit(batch_job job);
    void submit(enrolment_job job);
    void submit(list_job job);
    /// On the thread that runs the database, too.
    void submit(unreachable lost);

    void begin_assist() noexcept;
    [[nodiscard]] bool assist() noexcept;
    void end_assist() noexcept;

    /// Refuses what waits, ends what runs, and waits for the thread, unless it is called on it.
    /// Nobody uses the database afterwards.
    void stop();
    /// In a forked child: the thread is not there.
    void abandon();

  private:
    struct queue {
        std::vector<batch_job> renewals;
        std::vector<batch_job> others;
        std::vector<enrolment_job> enrolments;
        std::vector<list_job> lists;
        std::vector<unreachable> lost;

        [[nodiscard]] bool empty() const noexcept {
            return renewals.empty() && others.empty() && enrolments.empty() && lists.empty() &&
                   lost.empty();
        }
    };

    void added(std::unique_lock<std::mutex> held);
    void work();
    [[nodiscard]] queue take_some();
    /// Returns what is to be told, once the database is free again.
    [[nodiscard]] std::vector<core::task> run(queue some);
    /// True: something was left to be told, and must be.
    bool run_now(std::unique_lock<std::mutex>& held);
    [[nodiscard]] std::vector<core::task> refuse_rest();

    database& file_;
    const hooks outside_;
    std::thread thread_;

    std::mutex lock_;
    std::condition_variable changed_;
    queue queue_;
    bool running_ = false;
    bool stopping_ = false;
};

}  // namespace dibs::store::sqlite
