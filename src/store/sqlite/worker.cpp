// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/worker.hpp"

#include "store/library_thread.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace dibs::store::sqlite {

namespace {

/// Steps of one transaction, about: others must not wait for the write lock much longer than this
/// takes.
constexpr std::size_t steps_max = 512;

/// The worker that this thread lends itself to.
thread_local worker* assisted = nullptr;

core::task letter_of(batch_job& job) {
    return [done = std::move(job.done), replies = std::move(job.replies)]() mutable {
        done(std::move(replies));
    };
}

core::task letter_of(enrolment_job& job) {
    return [done = std::move(job.done), trouble = std::move(job.wish.trouble)]() mutable {
        done(std::move(trouble));
    };
}

core::task letter_of(list_job& job) {
    return [done = std::move(job.done), page = std::move(job.page)]() mutable {
        done(std::move(page));
    };
}

void take_batches(std::vector<batch_job>& from, std::vector<batch_job>& to, std::size_t& steps) {
    auto end = from.begin();
    for (; end != from.end() && steps < steps_max; ++end) {
        steps += end->entries.size();
    }
    if (end == from.end()) {
        to.swap(from);
        return;
    }
    to.assign(std::move_iterator{from.begin()}, std::move_iterator{end});
    from.erase(from.begin(), end);
}

}  // namespace

void worker::start() {
    thread_ = library_thread([self = shared_from_this()] { self->work(); });
}

void worker::added(std::unique_lock<std::mutex> held) {
    // Whoever lends its thread comes for its work; a running thread looks again before it sleeps.
    const bool call = assisted != this && !running_;
    held.unlock();
    if (call) {
        changed_.notify_one();
    }
}

void worker::submit(batch_job job) {
    std::unique_lock held{lock_};
    auto& lane_of = job.which == lane::renewals ? queue_.renewals : queue_.others;
    lane_of.push_back(std::move(job));
    added(std::move(held));
}

void worker::submit(enrolment_job job) {
    std::unique_lock held{lock_};
    queue_.enrolments.push_back(std::move(job));
    added(std::move(held));
}

void worker::submit(list_job job) {
    std::unique_lock held{lock_};
    queue_.lists.push_back(std::move(job));
    added(std::move(held));
}

void worker::submit(unreachable lost) {
    std::unique_lock held{lock_};
    queue_.lost.push_back(std::move(lost));
    added(std::move(held));
}

worker::queue worker::take_some() {
    queue some;
    std::size_t steps = 0;
    take_batches(queue_.renewals, some.renewals, steps);
    // A long row of renewals must not keep everybody else out.
    steps = std::min(steps, steps_max / 2);
    take_batches(queue_.others, some.others, steps);
    some.enrolments.swap(queue_.enrolments);
    some.lists.swap(queue_.lists);
    some.lost.swap(queue_.lost);
    return some;
}

// Requires: nothing is running. The database is free again before anybody is told: what is told may
// call `stop`.
bool worker::run_now(std::unique_lock<std::mutex>& held) {
    running_ = true;
    auto some = take_some();
    held.unlock();
    auto letters = run(std::move(some));
    held.lock();
    running_ = false;
    const bool others_care = !queue_.empty() || stopping_;
    // This thread goes on with what waits, if it is the worker's own, and tells the rest later.
    const bool busy =
        !queue_.empty() && !stopping_ && thread_.get_id() == std::this_thread::get_id();
    held.unlock();
    if (others_care) {
        changed_.notify_all();
    }
    outside_.tell(std::move(letters), busy);
    return busy;
}

void worker::work() {
    std::unique_lock held{lock_};
    for (;;) {
        changed_.wait(held, [&] { return stopping_ || (!running_ && !queue_.empty()); });
        if (stopping_) {
            return;
        }
        const bool left = run_now(held);
        held.lock();
        // A lent thread has come for the work meanwhile, and may have told its own part before ours
        // was left.
        if (left && !stopping_ && (running_ || queue_.empty())) {
            held.unlock();
            outside_.tell({}, false);
            held.lock();
        }
    }
}

std::vector<core::task> worker::run(queue some) {
    failure deaf;
    for (const auto& job : some.enrolments) {
        if (job.wish.begins) {
            deaf = outside_.before_waiting();
            break;
        }
    }
    group work;
    for (auto* jobs : {&some.renewals, &some.others}) {
        for (auto& job : *jobs) {
            job.replies.resize(job.entries.size());
            work.batches.push_back({job.which, job.entries, job.replies});
        }
    }
    for (auto& job : some.enrolments) {
        if (deaf && job.wish.begins) {
            job.wish.trouble = deaf;
        } else {
            work.enrolments.push_back(&job.wish);
        }
    }
    work.lost = std::move(some.lost);

    std::vector<core::task> letters;
    if (!work.batches.empty() || !work.enrolments.empty() || !work.lost.empty()) {
        aftermath after;
        file_.run(work, after);
        outside_.after_commit(after, letters);
    }
    for (auto* jobs : {&some.renewals, &some.others}) {
        for (auto& job : *jobs) {
            letters.push_back(letter_of(job));
        }
    }
    for (auto& job : some.enrolments) {
        letters.push_back(letter_of(job));
    }
    for (auto& job : some.lists) {
        file_.list(job.prefix, job.after, job.limit, job.page);
        letters.push_back(letter_of(job));
    }
    return letters;
}

// --- a lent thread -------------------------------------------------------------------------------

void worker::begin_assist() noexcept {
    assisted = this;
}

bool worker::assist() noexcept {
    std::unique_lock held{lock_};
    if (running_ || stopping_ || queue_.empty()) {
        return false;
    }
    const auto alive = shared_from_this();
    static_cast<void>(run_now(held));
    return true;
}

void worker::end_assist() noexcept {
    if (assisted == this) {
        assisted = nullptr;
    }
    std::unique_lock held{lock_};
    const bool more = !queue_.empty();
    held.unlock();
    if (more) {
        changed_.notify_one();
    }
}

// --- the end -------------------------------------------------------------------------------------

void worker::stop() {
    std::vector<core::task> letters;
    {
        std::unique_lock held{lock_};
        if (std::exchange(stopping_, true)) {
            return;
        }
        file_.give_up();
        changed_.notify_all();
        // A lent thread may be at work.
        changed_.wait(held, [&] { return !running_; });
        letters = refuse_rest();
    }
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();  // it is telling somebody something, and ends after that
    } else if (thread_.joinable()) {
        thread_.join();
    }
    outside_.tell(std::move(letters), false);
}

std::vector<core::task> worker::refuse_rest() {
    const failure closed{errc::closed, "the store was closed"};
    std::vector<core::task> letters;
    for (auto* jobs : {&queue_.renewals, &queue_.others}) {
        for (auto& job : *jobs) {
            job.replies.assign(job.entries.size(), core::refused(closed.error, closed.detail));
            letters.push_back(letter_of(job));
        }
    }
    for (auto& job : queue_.enrolments) {
        job.wish.trouble = closed;
        letters.push_back(letter_of(job));
    }
    for (auto& job : queue_.lists) {
        job.page.error = closed.error;
        job.page.detail = closed.detail;
        letters.push_back(letter_of(job));
    }
    queue_ = {};
    return letters;
}

void worker::abandon() {
    if (thread_.joinable()) {
        thread_.detach();
    }
}

}  // namespace dibs::store::sqlite
