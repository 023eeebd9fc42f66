// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process with a client in it: the real one, on simulated surroundings and a simulated store.

#include "client/client_core.hpp"
#include "simulation/process/observed_store.hpp"
#include "simulation/process/process.hpp"
#include "simulation/stores/store_model.hpp"

#include <dibs/client.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dibs::simulation {

class client_process final {
  public:
    client_process(world& in,
                   host& on,
                   std::string name,
                   std::uint64_t number,
                   std::uint64_t seed,
                   recorder& history,
                   traffic& counted,
                   store_model& model,
                   const weather& conditions);

    [[nodiscard]] process& self() noexcept { return process_; }
    [[nodiscard]] const std::string& name() const noexcept { return process_.name(); }
    [[nodiscard]] bool alive() const noexcept { return process_.alive(); }
    [[nodiscard]] recorder& history() noexcept { return history_; }

    /// Requires: alive.
    [[nodiscard]] dibs::client& client() noexcept { return *client_; }
    [[nodiscard]] const std::shared_ptr<detail::client_core>& core() noexcept { return core_; }
    [[nodiscard]] observed_store& edge() noexcept { return *edge_; }

    void kill() { process_.kill(); }
    /// Its client ends in good order; what it still wants is refused from then on.
    void close();
    void cut_connections();
    void line_opened();

    /// Let go of after the client when the process is killed: what the client's calls still look at.
    void after_client(std::function<void()> let_go) { after_client_.push_back(std::move(let_go)); }

    /// Called each time that the client tells in its log of a loss, for as long as the caller keeps it.
    using loss_listener = std::function<void()>;
    void on_loss(const std::shared_ptr<loss_listener>& told) { on_loss_.push_back(told); }

  private:
    void let_go();
    void tell_of_loss();
    void note_close();
    void note_settled(const core::doubtful_acquire& doubt,
                      core::undo::proof how,
                      const weather& conditions);

    recorder& history_;
    process process_;
    observed_store* edge_ = nullptr;
    bool closing_ = false;
    std::vector<std::function<void()>> after_client_;
    std::vector<std::weak_ptr<loss_listener>> on_loss_;
    std::function<void()> cut_;
    std::function<void()> opened_;
    std::shared_ptr<detail::client_core> core_;
    std::optional<dibs::client> client_;
};

}  // namespace dibs::simulation
