// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/sqlite_store.hpp"

#include "core/key.hpp"
#include "store/mailbox.hpp"
#include "store/process_mark.hpp"
#include "store/record/watch_book.hpp"
#include "store/refusing.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/diagnosis.hpp"
#include "store/sqlite/holders_folder.hpp"
#include "store/sqlite/host_clock.hpp"
#include "store/sqlite/host_surroundings.hpp"
#include "store/sqlite/listener.hpp"
#include "store/sqlite/place.hpp"
#include "store/sqlite/worker.hpp"

#include <dibs/error.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <utility>

namespace dibs::store {

namespace {

using namespace std::chrono_literals;
using sqlite::failure;

/// How long a waiter tries to get into the file; its own timers do alone after that.
constexpr auto enrol_within = 5s;

constexpr unsigned sweep_one_in = 32;

constexpr capabilities truths{.name = "sqlite",
                              .ttl_min = 50ms,
                              .ttl_max = std::chrono::hours{24 * 30},
                              .wakes = true,
                              .notices_death = true,
                              .shared = true,
                              .queues = true,
                              .keeps_grants = true,
                              .survives_restart = true,
                              .fence_source = "counter in the row and wall clock",
                              .scope = "this host, this user"};

class sqlite_store final : public store {
  public:
    sqlite_store(core::environment env, const sqlite_options& options, sqlite::process_id self)
        : env_(env),
          location_("sqlite:" + sqlite::shown_path(options.path)),
          path_(options.path),
          boot_id_(options.boot_id),
          full_(options.sync == sqlite_options::durability::full),
          self_(self),
          box_(std::make_shared<mailbox>(env.exec)),
          folder_(options.path, self),
          world_(env, options.clock, folder_),
          listener_(std::make_shared<sqlite::listener>(folder_, [this](std::string key) {
              box_->send(letter_about(std::move(key)));
          })) {}

    failure start(const sqlite_options& options) {
        failure trouble;
        sqlite::database_options settings;
        settings.path = options.path;
        settings.full = options.sync == sqlite_options::durability::full;
        settings.make = options.make;
        settings.boot_id = options.boot_id;
        settings.self = self_;
        settings.who = options.who;
        database_ = sqlite::database::open(std::move(settings), world_, trouble);
        if (trouble) {
            return trouble;
        }
        struct stat file {};
        if (::stat(options.path.c_str(), &file) == 0 && (file.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
            truths_.scope = "this host, all users who may write the file";
        }
        worker_ = std::make_shared<sqlite::worker>(
            *database_,
            sqlite::worker::hooks{
                [this] { return listener_->start(); },
                [this](sqlite::aftermath& after, std::vector<core::task>& letters) {
                    finish(after, letters);
                },
                [box = box_](std::vector<core::task> letters, bool busy) {
                    box->send(std::move(letters), busy);
                }});
        worker_->start();
        return {};
    }

    ~sqlite_store() override {
        close();
        if (forked()) {
            // Nothing of the parent's connection may be touched here, not even to close it.
            static_cast<void>(database_.release());
        }
    }

    [[nodiscard]] const capabilities& caps() const noexcept override { return truths_; }
    [[nodiscard]] const std::string& location() const noexcept override { return location_; }
    [[nodiscard]] int liveness_descriptor() const noexcept override { return folder_.lifeline(); }

    void execute(lane which, std::vector<core::entry> batch, batch_completion done) override {
        if (closed_ || forked()) {
            refuse(env_, batch.size(), why_not(), std::move(done));
            return;
        }
        sqlite::batch_job job;
        job.which = which;
        job.entries = std::move(batch);
        job.done = std::move(done);
        worker_->submit(std::move(job));
    }

    watch_id watch(std::string_view key, watch_completion ready, wake_callback wake) override {
        if (closed_ || forked()) {
            refuse(env_, why_not(), std::move(ready));
            return 0;
        }
        const auto made = book_.add(key, std::move(ready), std::move(wake));
        if (made.ready_now) {
            box_->send([this, id = made.id] { book_.ready(id); });
        } else if (made.begins != 0) {
            enrol(std::string{key}, true, made.begins);
        }
        return made.id;
    }

    void unwatch(watch_id id) override {
        if (closed_ || forked()) {
            return;
        }
        if (auto left = book_.remove(id); !left.empty()) {
            enrol(std::move(left), false, 0);
        }
    }

    void list(std::string prefix,
              std::string after,
              std::size_t limit,
              page_completion done) override {
        if (closed_ || forked()) {
            refuse(env_, why_not(), std::move(done));
            return;
        }
        sqlite::list_job job;
        job.prefix = std::move(prefix);
        job.after = std::move(after);
        job.limit = limit;
        job.done = std::move(done);
        worker_->submit(std::move(job));
    }

    void close() override {
        if (std::exchange(closed_, true)) {
            return;
        }
        if (forked()) {
            if (worker_) {
                worker_->abandon();
            }
            listener_->abandon();
            return;
        }
        book_.clear();
        if (worker_) {
            worker_->stop();
        }
        listener_->stop();
        box_->close();
        if (database_) {
            // What a child tree has inherited still counts; whoever comes after its end cleans up.
            const bool everybody_gone = folder_.disappear();
            if (database_->leave(everybody_gone)) {
                folder_.remove(self_);
            }
            database_.reset();
        }
    }

    [[nodiscard]] std::vector<finding> diagnose() override {
        return sqlite::diagnose({.path = path_,
                                 .full = full_,
                                 .boot_id = boot_id_,
                                 .self = self_,
                                 .now = world_.clock()});
    }

    void begin_assist() noexcept override { worker_->begin_assist(); }
    bool assist() noexcept override { return worker_->assist(); }
    void end_assist() noexcept override { worker_->end_assist(); }

    [[nodiscard]] int lifeline() const noexcept { return folder_.lifeline(); }

  private:
    [[nodiscard]] bool forked() const noexcept { return made_here_.forked(); }

    [[nodiscard]] core::answer why_not() const { return unusable(forked()); }

    void enrol(std::string key, bool begins, watch_book::stay which) {
        sqlite::enrolment_job job;
        job.wish.key = key;
        job.wish.begins = begins;
        job.wish.deadline = env_.time.now() + enrol_within;
        job.done = [this, key = std::move(key), which](failure trouble) {
            book_.entered(key, which, trouble.error);
        };
        worker_->submit(std::move(job));
    }

    [[nodiscard]] core::task letter_about(std::string key) {
        return [this, key = std::move(key)] { book_.wake(key); };
    }

    /// On the thread that runs the database.
    void finish(sqlite::aftermath& after, std::vector<core::task>& letters) {
        for (const auto& next : after.lookouts) {
            if (listener_->look_out(next.key, next.processes)) {
                letters.push_back(letter_about(next.key));
            }
        }
        for (auto& order : after.wakes) {
            wake_first(order, letters);
        }
        for (const auto& process : after.buried) {
            folder_.remove(process);
        }
        if (!swept_ && folder_.lifeline() >= 0) {
            swept_ = true;
            // A look at the whole folder is dear, and needed only after somebody died between two
            // steps: one process in so many takes it.
            if (std::to_integer<unsigned>(self_.bytes[0]) % sweep_one_in == 0) {
                folder_.sweep([&](const auto& process) { return database_->unknown(process); });
            }
        }
    }

    void wake_first(sqlite::wake_order& order, std::vector<core::task>& letters) {
        using reach = sqlite::holders_folder::reach;
        sqlite::unreachable lost;
        for (const auto& candidate : order.candidates) {
            auto outcome = reach::woken;
            if (candidate.id == self_) {
                letters.push_back(letter_about(order.key));
            } else {
                outcome = folder_.wake(candidate.id, order.key);
            }
            if (outcome == reach::gone) {
                lost.processes.push_back(candidate.process);
            }
            lost.nobody_woken = outcome != reach::woken;
            if (!lost.nobody_woken) {
                break;
            }
        }
        if (!lost.processes.empty()) {
            lost.key = std::move(order.key);
            worker_->submit(std::move(lost));
        }
    }

    const core::environment env_;
    const std::string location_;
    const std::string path_;
    capabilities truths_ = truths;
    const std::string boot_id_;
    const bool full_;
    const sqlite::process_id self_;
    const process_mark made_here_;
    bool closed_ = false;
    bool swept_ = false;  // of the thread that runs the database

    std::shared_ptr<mailbox> box_;
    watch_book book_;
    sqlite::holders_folder folder_;
    sqlite::host_surroundings world_;
    std::shared_ptr<sqlite::listener> listener_;
    std::unique_ptr<sqlite::database> database_;
    std::shared_ptr<sqlite::worker> worker_;
};

failure fill_in(sqlite_options& options) {
    if (auto trouble = sqlite::prepare_place(options.path, options.make); trouble) {
        return trouble;
    }
    if (!options.clock) {
        sqlite::host_clock clock;
        if (auto trouble = sqlite::host_clock::open(clock); trouble) {
            return trouble;
        }
        options.clock = [clock] { return clock.now(); };
    }
    return options.boot_id.empty() ? sqlite::read_boot_id(options.boot_id) : failure{};
}

}  // namespace

std::unique_ptr<store> open_sqlite_store(core::environment env,
                                         sqlite_options options,
                                         std::error_code& error,
                                         std::string& detail) {
    error.clear();
    detail.clear();
    failure trouble;
    std::unique_ptr<sqlite_store> made;
    try {
        trouble = fill_in(options);
        if (!trouble) {
            made =
                std::make_unique<sqlite_store>(env, options, sqlite::process_id::draw(env.random));
            trouble = made->start(options);
        }
    } catch (const std::exception& thrown) {
        trouble = {errc::store_unreachable,
                   sqlite::shown_path(options.path) +
                       ": cannot be opened: " + core::printable(thrown.what())};
    }
    if (trouble) {
        error = trouble.error;
        detail = std::move(trouble.detail);
        return nullptr;
    }
    return made;
}

}  // namespace dibs::store
