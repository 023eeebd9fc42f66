// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/hand_made_lock.hpp"

#include "store/sqlite/plain_sql.hpp"

#ifdef DIBS_WITH_REDIS
#include "store/redis/plain_commands.hpp"
#endif

namespace dibs::cli {

namespace {

using store::sqlite::plain_sql;

class row final : public hand_made_lock {
  public:
    explicit row(const demo_round& round) : file_(round.data()) {
        plain_sql(file_,
                  "CREATE TABLE IF NOT EXISTS locks(name TEXT PRIMARY KEY, until_ms INTEGER)");
    }
    bool take(std::optional<milliseconds> ttl) override {
        const auto now = std::chrono::duration_cast<milliseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
        return plain_sql(file_,
                         "INSERT INTO locks VALUES('job', " +
                             (ttl ? std::to_string(now + ttl->count()) : "NULL") +
                             ") ON CONFLICT(name) DO UPDATE SET until_ms = excluded.until_ms "
                             "WHERE until_ms <= " +
                             std::to_string(now))
                   .changed == 1;
    }
    std::int64_t give_back() override {
        return plain_sql(file_, "DELETE FROM locks WHERE name = 'job'").changed;
    }
    std::string how_taken(bool with_ttl) const override {
        return with_ttl ? "INSERT … until_ms" : "INSERT INTO locks VALUES('job', NULL)";
    }
    std::string how_given_back() const override { return "DELETE WHERE name = 'job'"; }
    std::string thing() const override { return "row"; }

  private:
    std::string file_;
};

#ifdef DIBS_WITH_REDIS
class key final : public hand_made_lock {
  public:
    explicit key(const demo_round& round)
        : server_(round.store()), name_(round.key() + ":by-hand") {}
    ~key() override = default;

    bool take(std::optional<milliseconds> ttl) override {
        return (ttl ? server_.ask({"SET", name_, "me", "NX", "PX", std::to_string(ttl->count())})
                    : server_.ask({"SETNX", name_, "me"})) != (ttl ? "" : "0");
    }
    std::int64_t give_back() override { return std::stoll(server_.ask({"DEL", name_})); }
    std::string how_taken(bool with_ttl) const override {
        return with_ttl ? "SET job me NX PX" : "SETNX job me";
    }
    std::string how_given_back() const override { return "DEL job"; }
    std::string thing() const override { return "key"; }

  private:
    store::redis::plain_commands server_;
    std::string name_;
};
#endif

}  // namespace

std::unique_ptr<hand_made_lock> open_hand_made_lock(const demo_round& round) {
#ifdef DIBS_WITH_REDIS
    if (round.store().starts_with("redis")) {
        return std::make_unique<key>(round);
    }
#endif
    return std::make_unique<row>(round);
}

}  // namespace dibs::cli
