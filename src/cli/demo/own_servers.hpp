// SPDX-License-Identifier: Apache-2.0
#pragma once
// Redis servers of a demo's own, on free ports of this host, which end with it.

#include "cli/demo/actors.hpp"
#include "store/redis/plain_commands.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace dibs::cli {

class own_server {
  public:
    /// Blocks until it answers. Errors: failure, when there is no redis-server or valkey-server to be
    /// run, or it does not come up.
    explicit own_server(const std::string& folder);

    [[nodiscard]] std::string url() const;
    /// Blocks until it has what the other one has.
    void follow(const own_server& primary);
    /// It does nothing, and hears nothing, until it goes on.
    void stop() const;
    void go_on() const;
    void kill();
    /// Those that follow it hear nothing more until they connect anew.
    void cut_followers_off();
    /// It follows nobody any more.
    void promote();

  private:
    std::uint16_t port_;
    std::unique_ptr<actor> process_;
    std::unique_ptr<store::redis::plain_commands> line_;  ///< a replica takes no new ones of ours
};

}  // namespace dibs::cli
