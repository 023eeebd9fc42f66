// SPDX-License-Identifier: Apache-2.0
#pragma once
// The client's side of a store that is reached over a network: sends batches, and says `unknown`
// when no answer comes in time or the connection breaks. One connection for renewals, one for the
// rest and for notices, one for wake-ups.

#include "simulation/network/line.hpp"
#include "simulation/network/server.hpp"
#include "simulation/process/process.hpp"
#include "store/store.hpp"

#include <map>
#include <memory>
#include <string>

namespace dibs::simulation {

class remote_store final : public store::store {
  public:
    remote_store(process& in, server& to, const weather& conditions, random from);
    ~remote_store() override;

    [[nodiscard]] const dibs::store::capabilities& caps() const noexcept override {
        return server_.caps();
    }
    [[nodiscard]] const std::string& location() const noexcept override { return location_; }
    void execute(dibs::store::lane which,
                 std::vector<core::entry> batch,
                 dibs::store::batch_completion done) override;
    dibs::store::watch_id watch(std::string_view key,
                                dibs::store::watch_completion ready,
                                dibs::store::wake_callback wake) override;
    void unwatch(dibs::store::watch_id id) override;
    dibs::store::watch_id await_notices(std::string_view key,
                                        dibs::store::wake_callback wake) override;
    void list(std::string prefix,
              std::string after,
              std::size_t limit,
              dibs::store::page_completion done) override;
    void close() override;

    // --- what befalls it -------------------------------------------------------------------------

    /// All connections break.
    void cut();
    /// A direction of the line may be open again.
    void opened();

  private:
    struct flight;
    struct reading;
    struct watcher;
    struct shared;

    [[nodiscard]] line& connection(dibs::store::lane which);
    void renew_connections();
    void reconnect_soon();
    void reconnected();
    void answered(std::uint64_t number, dibs::store::answers given);
    void out_of_time(std::uint64_t number);
    void ask_for_wakes(watcher& of);
    void hear_notices();
    void wake_listeners(const std::string& key);
    void ask_again(dibs::store::watch_id id);

    process& process_;
    server& server_;
    const weather& weather_;
    random random_;
    const std::string location_ = "simulated:store";
    bool closed_ = false;
    bool connected_ = true;
    std::uint64_t numbered_ = 0;
    std::uint64_t epoch_ = 0;  ///< of the connections: what is of an earlier one is not heard
    std::unique_ptr<line> lines_[3];
    std::map<std::uint64_t, std::unique_ptr<flight>> flights_;
    std::map<std::uint64_t, std::unique_ptr<reading>> readings_;
    std::map<dibs::store::watch_id, std::shared_ptr<watcher>> watchers_;
    std::map<dibs::store::watch_id, std::shared_ptr<watcher>> listeners_;  ///< to notices
    std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
};

}  // namespace dibs::simulation
