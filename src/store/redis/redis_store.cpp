// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_store.hpp"

#include "store/redis/diagnosis.hpp"
#include "store/redis/engine.hpp"
#include "store/redis/requests.hpp"
#include "store/remote/party_text.hpp"
#include "store/remote/remote_store.hpp"

#include <dibs/error.hpp>

#include <chrono>
#include <utility>

namespace dibs::store {

namespace {

using namespace std::chrono_literals;

constexpr capabilities truths{.name = "redis",
                              .ttl_min = 50ms,
                              .ttl_max = std::chrono::hours{24 * 365},
                              .wakes = true,
                              .wakes_all = true,
                              .notifies = true,
                              .notices_death = false,
                              .shared = true,
                              .queues = true,
                              .keeps_grants = false,
                              .survives_restart = true,
                              .steady_expiry = false,
                              .fence_source = "counter in the record and wall clock",
                              .scope = "all hosts that use this server and database"};

class redis_store final : public remote::remote_store {
  public:
    redis_store(core::environment env, const redis_options& options)
        : remote_store(env, options.where.shown()),
          caps_(redis_capabilities(options.where.longest_ttl)),
          self_(std::make_shared<const redis::speaker>(redis::speaker{
              redis::names{options.where.prefix},
              {remote::draw_process(env.random),
               remote::text_of(options.who),
               options.where.longest_ttl,
               [this](std::string_view key) { return engine_->listens(self_->where.rest(key)); },
               [this] { return engine_->hears_notices(); }}})),
          engine_(std::make_shared<redis::engine>(env,
                                                  options.where,
                                                  box(),
                                                  announce(),
                                                  self_->where,
                                                  self_->self.process)) {}

    ~redis_store() override { close(); }

    redis::trouble start() {
        auto trouble = engine_->start();
        if (!trouble.error && self_->self.longest_ttl > core::microseconds{0}) {
            if (auto why = redis::why_not_strict(*engine_, env_); !why.empty()) {
                return {errc::store_refused, location() + ": " + why};
            }
        }
        return trouble;
    }

    [[nodiscard]] const capabilities& caps() const noexcept override { return caps_; }

    [[nodiscard]] std::vector<finding> diagnose() override {
        return redis::diagnose(*engine_, env_, *self_);
    }

  private:
    [[nodiscard]] remote::leader& lead() noexcept override { return *engine_; }

    void submit(remote::urgency how,
                std::vector<core::entry> batch,
                batch_completion done) override {
        engine_->submit(how, redis::batch_request::make(self_, std::move(batch), std::move(done)));
    }
    void submit(remote::listing wanted, core::instant deadline) override {
        engine_->submit(remote::urgency::look,
                        redis::begin_listing(self_, std::move(wanted), deadline));
    }
    void subscribe(const std::string& key, watch_book::stay which) override {
        engine_->subscribe(self_->where.rest(key), key, which);
    }
    void unsubscribe(const std::string& key) override {
        engine_->unsubscribe(self_->where.rest(key));
    }
    void expect_notices(bool any) override { engine_->expect_notices(any); }

    const capabilities caps_;
    const std::shared_ptr<const redis::speaker> self_;
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
    return remote::opened(
        [&](remote::trouble& why) {
            auto made = std::make_unique<redis_store>(env, options);
            why = made->start();
            return made;
        },
        error,
        detail);
}

}  // namespace dibs::store
