// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/postgres_store.hpp"

#include "core/key.hpp"
#include "store/mailbox.hpp"
#include "store/postgres/diagnosis.hpp"
#include "store/postgres/engine.hpp"
#include "store/postgres/requests.hpp"
#include "store/process_mark.hpp"
#include "store/record/watch_book.hpp"
#include "store/refusing.hpp"

#include <dibs/error.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <utility>

namespace dibs::store {

namespace {

using namespace std::chrono_literals;

/// How long a listing may take.
constexpr auto list_within = 30s;

/// So many records are granted between two steps of forgetting old ones, and twice as many looked
/// at.
constexpr std::size_t granted_per_purge = 100;

constexpr capabilities truths{.name = "postgres",
                              .ttl_min = 50ms,
                              .ttl_max = std::chrono::hours{24 * 365},
                              .wakes = true,
                              .notices_death = false,
                              .shared = true,
                              .queues = true,
                              .keeps_grants = true,
                              .survives_restart = true,
                              .steady_expiry = false,
                              .fence_source = "counter in the row and wall clock",
                              .scope = "all hosts that use this database and schema"};

std::string draw_process(core::entropy& random) {
    std::array<std::byte, 8> bytes{};
    random.fill(bytes);
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const auto byte : bytes) {
        text += digits[std::to_integer<unsigned>(byte) >> 4U];
        text += digits[std::to_integer<unsigned>(byte) & 15U];
    }
    return text;
}

class postgres_store final : public store {
  public:
    postgres_store(core::environment env, const postgres_options& options)
        : env_(env),
          where_(options.where),
          location_(options.where.shown),
          self_(std::make_shared<const postgres::caller>(
              postgres::caller{draw_process(env.random),
                               postgres::text_of(options.who),
                               options.where.prefix,
                               options.where.shown,
                               options.where.longest_ttl})),
          box_(std::make_shared<mailbox>(env.exec)),
          engine_(std::make_shared<postgres::engine>(
              env,
              options.where,
              self_,
              box_,
              postgres::engine::hooks{
                  [this](std::string key, watch_book::stay which, std::error_code outcome) {
                      return core::task{[this, key = std::move(key), which, outcome] {
                          book_.entered(key, which, outcome);
                      }};
                  },
                  [this](std::string key) {
                      return core::task{[this, key = std::move(key)] { book_.wake(key); }};
                  }})) {}

    postgres::trouble start() {
        auto trouble = engine_->start();
        caps_.wakes = engine_->listens();
        if (self_->longest_ttl > core::microseconds{0}) {
            caps_.ttl_max = self_->longest_ttl;
        }
        return trouble;
    }

    ~postgres_store() override { close(); }

    [[nodiscard]] const capabilities& caps() const noexcept override { return caps_; }
    [[nodiscard]] const std::string& location() const noexcept override { return location_; }

    void execute(lane which, std::vector<core::entry> batch, batch_completion done) override {
        if (closed_ || forked() || batch.size() > max_batch_entries || batch.empty()) {
            refuse(env_, batch.size(), why_not(), std::move(done));
            return;
        }
        const auto granting = which == lane::others ? batch.size() : 0;
        engine_->submit(
            which == lane::renewals ? postgres::urgency::renewal : postgres::urgency::other,
            postgres::batch_request::make(self_, std::move(batch), std::move(done)));
        purge_after(granting);
    }

    watch_id watch(std::string_view key, watch_completion ready, wake_callback wake) override {
        if (closed_ || forked()) {
            refuse(env_, why_not(), std::move(ready));
            return 0;
        }
        if (!caps_.wakes) {
            refuse(env_,
                   core::refused(errc::unsupported, "a pooler passes no notifications on"),
                   std::move(ready));
            return 0;
        }
        const auto made = book_.add(key, std::move(ready), std::move(wake));
        if (made.ready_now) {
            box_->send([this, id = made.id] { book_.ready(id); });
        } else if (made.begins != 0) {
            engine_->subscribe(std::string{key}, made.begins);
        }
        return made.id;
    }

    void unwatch(watch_id id) override {
        if (closed_ || forked()) {
            return;
        }
        if (auto left = book_.remove(id); !left.empty()) {
            engine_->unsubscribe(std::move(left));
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
        engine_->submit(
            postgres::urgency::look,
            postgres::make_listing(self_,
                                   {std::move(prefix), std::move(after), limit, std::move(done)},
                                   env_.time.now() + list_within));
    }

    void close() override {
        if (std::exchange(closed_, true)) {
            return;
        }
        if (forked()) {
            engine_->abandon();
            return;
        }
        book_.clear();
        engine_->stop();
        box_->close();
    }

    [[nodiscard]] std::vector<finding> diagnose() override {
        return postgres::diagnose(*engine_, env_, where_);
    }

    void begin_assist() noexcept override { engine_->begin_assist(); }
    bool assist() noexcept override { return engine_->assist(); }
    void end_assist() noexcept override { engine_->end_assist(); }

  private:
    [[nodiscard]] bool forked() const noexcept { return made_here_.forked(); }

    [[nodiscard]] core::answer why_not() const {
        return closed_ || forked()
                   ? unusable(forked())
                   : core::refused(errc::invalid_argument, "too many entries in a batch");
    }

    /// Whoever writes cleans up a little behind itself.
    void purge_after(std::size_t entries) {
        written_ += entries;
        if (written_ < granted_per_purge || purging_) {
            return;
        }
        purging_ = true;
        postgres::parameters with;
        with.text(purged_up_to_);
        with.number(static_cast<std::int64_t>(2 * std::exchange(written_, 0)));
        engine_->submit(postgres::urgency::look,
                        std::make_unique<postgres::plain_request>(
                            postgres::statement::purge,
                            std::move(with),
                            env_.time.now() + list_within,
                            [this](const postgres::reply* told,
                                   const postgres::trouble&,
                                   postgres::request::outcome after) {
                                std::string last;
                                if (told != nullptr && !postgres::fault_of(*told, "").error &&
                                    ::PQntuples(told->result.get()) == 1) {
                                    last = postgres::row{*told->result, 0}.bytes(0);
                                }
                                after.letters.push_back([this, last = std::move(last)] {
                                    purging_ = false;
                                    purged_up_to_ = last;
                                });
                            }));
    }

    const core::environment env_;
    const postgres::address where_;
    const std::string location_;
    capabilities caps_ = truths;
    const process_mark made_here_;
    bool closed_ = false;
    std::size_t written_ = granted_per_purge;
    bool purging_ = false;
    std::string purged_up_to_;

    const std::shared_ptr<const postgres::caller> self_;
    const std::shared_ptr<mailbox> box_;
    watch_book book_;
    const std::shared_ptr<postgres::engine> engine_;
};

}  // namespace

std::unique_ptr<store> open_postgres_store(core::environment env,
                                           postgres_options options,
                                           std::error_code& error,
                                           std::string& detail) {
    error.clear();
    detail.clear();
    try {
        auto made = std::make_unique<postgres_store>(env, options);
        auto trouble = made->start();
        if (!trouble.error) {
            return made;
        }
        error = trouble.error;
        detail = std::move(trouble.detail);
    } catch (const std::exception& thrown) {
        error = errc::store_unreachable;
        detail = std::string{"cannot be opened: "} + core::printable(thrown.what());
    }
    return nullptr;
}

}  // namespace dibs::store
