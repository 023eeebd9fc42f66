// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_store.hpp"

#include "core/key.hpp"
#include "store/mailbox.hpp"
#include "store/process_mark.hpp"
#include "store/record/watch_book.hpp"
#include "store/redis/diagnosis.hpp"
#include "store/redis/engine.hpp"
#include "store/redis/party_text.hpp"
#include "store/redis/requests.hpp"
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

constexpr capabilities truths{.name = "redis",
                              .ttl_min = 50ms,
                              .ttl_max = std::chrono::hours{24 * 365},
                              .wakes = true,
                              .notices_death = false,
                              .shared = true,
                              .queues = true,
                              .keeps_grants = false,
                              .survives_restart = true,
                              .steady_expiry = false,
                              .fence_source = "counter in the record and wall clock",
                              .scope = "all hosts that use this server and database"};

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

class redis_store final : public store {
  public:
    redis_store(core::environment env, redis_options options)
        : env_(env),
          location_(options.where.shown()),
          caps_(redis_capabilities(options.where.longest_ttl)),
          self_(std::make_shared<const redis::speaker>(redis::speaker{
              redis::names{options.where.prefix},
              {draw_process(env.random), redis::text_of(options.who), options.where.longest_ttl}})),
          box_(std::make_shared<mailbox>(env.exec)),
          engine_(std::make_shared<redis::engine>(
              env,
              options.where,
              box_,
              redis::engine::hooks{
                  [this](std::string key, watch_book::stay which, std::error_code outcome) {
                      return core::task{[this, key = std::move(key), which, outcome] {
                          book_.entered(key, which, outcome);
                      }};
                  },
                  [this](std::string key) {
                      return core::task{[this, key = std::move(key)] { book_.wake(key); }};
                  }},
              redis::names::channel_of_process(self_->self.process))) {}

    redis::trouble start() {
        auto trouble = engine_->start();
        if (!trouble.error && self_->self.longest_ttl > core::microseconds{0}) {
            if (auto why = redis::why_not_strict(*engine_, env_); !why.empty()) {
                return {errc::store_refused, location_ + ": " + why};
            }
        }
        return trouble;
    }

    ~redis_store() override { close(); }

    [[nodiscard]] const capabilities& caps() const noexcept override { return caps_; }
    [[nodiscard]] const std::string& location() const noexcept override { return location_; }

    void execute(lane which, std::vector<core::entry> batch, batch_completion done) override {
        if (closed_ || forked() || batch.size() > max_batch_entries || batch.empty()) {
            refuse(env_, batch.size(), why_not(), std::move(done));
            return;
        }
        engine_->submit(which == lane::renewals ? redis::urgency::renewal : redis::urgency::other,
                        redis::batch_request::make(self_, std::move(batch), std::move(done)));
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
            engine_->subscribe(self_->where.rest(key), std::string{key}, made.begins);
        }
        return made.id;
    }

    void unwatch(watch_id id) override {
        if (closed_ || forked()) {
            return;
        }
        if (const auto left = book_.remove(id); !left.empty()) {
            engine_->unsubscribe(self_->where.rest(left));
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
            redis::urgency::look,
            redis::begin_listing(self_,
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
        return redis::diagnose(*engine_, env_, *self_);
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

    const core::environment env_;
    const std::string location_;
    const capabilities caps_;
    const process_mark made_here_;
    bool closed_ = false;

    const std::shared_ptr<const redis::speaker> self_;
    const std::shared_ptr<mailbox> box_;
    watch_book book_;
    const std::shared_ptr<redis::engine> engine_;
};

}  // namespace

capabilities redis_capabilities(core::microseconds longest_ttl) noexcept {
    auto made = truths;
    if (longest_ttl > core::microseconds{0}) {
        made.ttl_max = longest_ttl;
    }
    return made;
}

std::unique_ptr<store> open_redis_store(core::environment env,
                                        redis_options options,
                                        std::error_code& error,
                                        std::string& detail) {
    error.clear();
    detail.clear();
    try {
        auto made = std::make_unique<redis_store>(env, std::move(options));
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
