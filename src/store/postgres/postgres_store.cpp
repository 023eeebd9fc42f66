// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/postgres_store.hpp"

#include "store/postgres/advisory/session.hpp"
#include "store/postgres/data_layer.hpp"
#include "store/postgres/diagnosis.hpp"
#include "store/postgres/engine.hpp"
#include "store/postgres/inquiry.hpp"
#include "store/postgres/requests.hpp"
#include "store/remote/party_text.hpp"
#include "store/remote/remote_store.hpp"

#include <dibs/error.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace dibs::store {

namespace {

using namespace std::chrono_literals;

/// So many records are granted between two steps of forgetting old ones, and twice as many looked
/// at.
constexpr std::size_t granted_per_purge = 100;

constexpr capabilities truths{.name = "postgres",
                              .ttl_min = 50ms,
                              .ttl_max = std::chrono::hours{24 * 365},
                              .wakes = true,
                              .wakes_all = true,
                              .notices_death = false,
                              .shared = true,
                              .queues = true,
                              .keeps_grants = true,
                              .survives_restart = true,
                              .steady_expiry = false,
                              .fence_source = "counter in the row and wall clock",
                              .scope = "all hosts that use this database and schema"};

/// Of postgres+advisory://.
constexpr capabilities truths_of_sessions{.name = "postgres+advisory",
                                          .ttl_min = 50ms,
                                          .ttl_max = std::chrono::hours{24 * 365},
                                          .wakes = true,
                                          .wakes_all = true,
                                          .notices_death = true,
                                          .shared = false,
                                          .queues = true,
                                          .keeps_grants = false,
                                          .survives_restart = true,
                                          .steady_expiry = true,
                                          .expires = false,
                                          .hands_over = false,
                                          .fence_source = "counter in the row and wall clock",
                                          .scope = "all hosts that use this database and schema"};

capabilities as_opened(capabilities made, core::microseconds longest_ttl, bool listens) noexcept {
    made.wakes = listens;
    made.wakes_all = listens;
    if (longest_ttl > core::microseconds{0}) {
        made.ttl_max = longest_ttl;
    }
    return made;
}

class postgres_store final : public remote::remote_store {
  public:
    postgres_store(core::environment env, const postgres_options& options)
        : remote_store(env, options.where.shown),
          where_(options.where),
          self_(describe(env, options)),
          engine_(
              std::make_shared<postgres::engine>(env, options.where, self_, box(), announce())) {}

    ~postgres_store() override { close(); }

    remote::trouble start() {
        auto trouble = engine_->start();
        caps_ = as_opened(caps_, self_->longest_ttl, engine_->listens());
        return trouble;
    }

    [[nodiscard]] const capabilities& caps() const noexcept override { return caps_; }

    [[nodiscard]] std::vector<finding> diagnose() override {
        return postgres::diagnose(*engine_, env_, where_);
    }

    [[nodiscard]] std::optional<std::uint64_t> refused_writes(std::string_view key) override {
        const auto put = [&](const std::string& sql) { return postgres::ask(*engine_, env_, sql); };
        return postgres::refused_by_data_layer(put, where_, key);
    }

  private:
    [[nodiscard]] static std::shared_ptr<const postgres::caller> describe(
        core::environment env,
        const postgres_options& options) {
        auto made = std::make_shared<postgres::caller>();
        made->process = remote::draw_process(env.random);
        made->who = remote::text_of(options.who);
        made->prefix = options.where.prefix;
        made->where = options.where.shown;
        made->longest_ttl = options.where.longest_ttl;
        if (options.where.by_session()) {
            made->own =
                std::make_shared<postgres::session>(env.random, options.where, made->process);
        }
        return made;
    }

    [[nodiscard]] remote::leader& lead() noexcept override { return *engine_; }

    void submit(remote::urgency how,
                std::vector<core::entry> batch,
                batch_completion done) override {
        const auto granting = how == remote::urgency::renewal ? 0 : batch.size();
        engine_->submit(how,
                        postgres::batch_request::make(self_, std::move(batch), std::move(done)));
        purge_after(granting);
    }
    void submit(remote::listing wanted, core::instant deadline) override {
        engine_->submit(remote::urgency::look,
                        postgres::make_listing(self_, std::move(wanted), deadline));
    }
    void subscribe(const std::string& key, watch_book::stay which) override {
        engine_->subscribe(key, which);
    }
    void unsubscribe(const std::string& key) override { engine_->unsubscribe(key); }

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
        engine_->submit(remote::urgency::look,
                        std::make_unique<postgres::plain_request>(
                            postgres::statement::purge,
                            std::move(with),
                            env_.time.now() + remote::list_within,
                            [this](const postgres::reply* told,
                                   const remote::trouble&,
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

    const postgres::address where_;
    capabilities caps_ = where_.by_session() ? truths_of_sessions : truths;
    std::size_t written_ = granted_per_purge;
    bool purging_ = false;
    std::string purged_up_to_;

    const std::shared_ptr<const postgres::caller> self_;
    const std::shared_ptr<postgres::engine> engine_;
};

}  // namespace

capabilities postgres_capabilities(core::microseconds longest_ttl, bool listens) noexcept {
    return as_opened(truths, longest_ttl, listens);
}

std::unique_ptr<store> open_postgres_store(core::environment env,
                                           postgres_options options,
                                           std::error_code& error,
                                           std::string& detail) {
    return remote::opened(
        [&](remote::trouble& why) {
            auto made = std::make_unique<postgres_store>(env, options);
            why = made->start();
            return made;
        },
        error,
        detail);
}

}  // namespace dibs::store
