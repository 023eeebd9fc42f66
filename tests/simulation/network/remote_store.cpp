// SPDX-License-Identifier: Apache-2.0
#include "simulation/network/remote_store.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace dibs::simulation {

namespace {

/// After the last deadline of a batch nobody waits for its answer.
constexpr core::nanoseconds grace = core::milliseconds{20};
constexpr core::nanoseconds list_patience = std::chrono::seconds{2};
constexpr core::nanoseconds watch_patience = std::chrono::seconds{1};
constexpr core::nanoseconds reconnect_least = core::milliseconds{5};
constexpr core::nanoseconds reconnect_most = core::milliseconds{200};
constexpr int wake_line = 2;

}  // namespace

/// A batch that was sent.
struct remote_store::flight {
    flight(remote_store& of, std::uint64_t number)
        : patience([&of, number] { of.out_of_time(number); }) {}
    std::size_t entries = 0;
    dibs::store::batch_completion done;
    core::timer patience;
};

struct remote_store::reading {
    reading(remote_store& of, std::uint64_t number)
        : patience([&of, number] {
              core::page none;
              none.error = errc::store_unreachable;
              none.detail = "the store did not answer in time";
              const auto gone = std::move(of.readings_.at(number));
              of.readings_.erase(number);
              gone->done(std::move(none));
          }) {}
    dibs::store::page_completion done;
    core::timer patience;
};

struct remote_store::watcher {
    std::string key;
    dibs::store::watch_completion ready;  ///< empty once it was told
    dibs::store::wake_callback wake;
};

remote_store::remote_store(process& in, server& to, const weather& conditions, random from)
    : process_(in), server_(to), weather_(conditions), random_(from) {
    renew_connections();
}

remote_store::~remote_store() {
    close();
    *here_ = false;
}

void remote_store::renew_connections() {
    ++epoch_;
    for (auto& one : lines_) {
        one = std::make_unique<line>(process_.surrounding_world(), weather_, random_.split());
    }
}

line& remote_store::connection(dibs::store::lane which) {
    return *lines_[which == dibs::store::lane::renewals ? 0 : 1];
}

void remote_store::execute(dibs::store::lane which,
                           std::vector<core::entry> batch,
                           dibs::store::batch_completion done) {
    const auto refuse = [&](std::error_code why, std::string text) {
        dibs::store::answers all(batch.size(), core::refused(why, std::move(text)));
        process_.post(
            [done = std::move(done), all = std::move(all)]() mutable { done(std::move(all)); });
    };
    if (closed_) {
        refuse(errc::closed, "the store was closed");
        return;
    }
    if (!connected_) {
        refuse(errc::store_unreachable, "no connection");
        return;
    }
    const auto number = ++numbered_;
    auto made = std::make_unique<flight>(*this, number);
    made->entries = batch.size();
    made->done = std::move(done);
    auto latest = core::instant{};
    for (const auto& one : batch) {
        latest = std::max(latest, one.deadline);
    }
    process_.env().time.arm(made->patience, latest + grace);
    flights_.emplace(number, std::move(made));

    auto& through = connection(which);
    const auto arrive = [this,
                         here = here_,
                         life = process_.life(),
                         to = &server_,
                         from = process_.number(),
                         epoch = epoch_,
                         left = process_.surrounding_world().now(),
                         which,
                         number](const std::vector<core::entry>& sent, bool answers) {
        if (!to->up()) {
            return;
        }
        // The subscription goes before the request that leaves word, on the same connection.
        if (answers && *life && *here && epoch == epoch_ &&
            std::any_of(sent.begin(), sent.end(), [](const core::entry& one) {
                const auto* asked = std::get_if<core::acquire>(&one.what);
                return asked != nullptr && asked->notify;
            })) {
            hear_notices();
        }
        auto given = to->execute(from, left, sent);
        if (!answers || !*life || !*here || epoch != epoch_) {
            return;  // it has happened, and nobody will hear of it
        }
        connection(which).send(
            direction::to_client,
            [this, here, life, epoch, number, given = std::move(given)]() mutable {
                if (!*life || !*here || epoch != epoch_) {
                    return;
                }
                process_.post([this, here, number, given = std::move(given)]() mutable {
                    if (*here) {
                        answered(number, std::move(given));
                    }
                });
            });
    };
    auto deliver = [arrive, &world = process_.surrounding_world(), batch = std::move(batch)](
                       std::optional<core::nanoseconds> repeated) {
        arrive(batch, true);
        if (repeated) {
            world.in(*repeated, [arrive, batch] { arrive(batch, false); });
        }
    };
    through.send(direction::to_store,
                 [deliver = std::move(deliver), repeated = through.draw_repetition()] {
                     deliver(repeated);
                 });
}

void remote_store::answered(std::uint64_t number, dibs::store::answers given) {
    const auto at = flights_.find(number);
    if (at == flights_.end()) {
        return;
    }
    const auto heard = std::move(at->second);
    flights_.erase(at);
    heard->done(std::move(given));
}

void remote_store::out_of_time(std::uint64_t number) {
    const auto entries = flights_.at(number)->entries;
    answered(number, dibs::store::answers(entries, core::in_doubt("no answer came in time")));
}

void remote_store::list(std::string prefix,
                        std::string after,
                        std::size_t limit,
                        dibs::store::page_completion done) {
    if (closed_ || !connected_) {
        core::page none;
        none.error = closed_ ? errc::closed : errc::store_unreachable;
        none.detail = "no connection";
        process_.post(
            [done = std::move(done), none = std::move(none)]() mutable { done(std::move(none)); });
        return;
    }
    const auto number = ++numbered_;
    auto made = std::make_unique<reading>(*this, number);
    made->done = std::move(done);
    process_.env().time.arm(made->patience, process_.now() + list_patience);
    readings_.emplace(number, std::move(made));
    lines_[1]->send(
        direction::to_store,
        [this,
         here = here_,
         life = process_.life(),
         epoch = epoch_,
         number,
         limit,
         prefix = std::move(prefix),
         after = std::move(after)] {
            if (!*life || !*here || epoch != epoch_ || !server_.up()) {
                return;
            }
            auto page = server_.list(process_.number(), prefix, after, limit);
            lines_[1]->send(
                direction::to_client,
                [this, here, life, epoch, number, page = std::move(page)]() mutable {
                    if (!*life || !*here || epoch != epoch_) {
                        return;
                    }
                    process_.post([this, here, number, page = std::move(page)]() mutable {
                        const auto at = *here ? readings_.find(number) : readings_.end();
                        if (!*here || at == readings_.end()) {
                            return;
                        }
                        const auto heard = std::move(at->second);
                        readings_.erase(at);
                        heard->done(std::move(page));
                    });
                });
        });
}

// --- wake-ups ------------------------------------------------------------------------------------

dibs::store::watch_id remote_store::watch(std::string_view key,
                                          dibs::store::watch_completion ready,
                                          dibs::store::wake_callback wake) {
    if (closed_) {
        process_.post([ready = std::move(ready)]() mutable { ready(errc::closed); });
        return 0;
    }
    if (!caps().wakes) {
        process_.post([ready = std::move(ready)]() mutable { ready(errc::unsupported); });
        return 0;
    }
    const auto id = ++numbered_;
    auto made = std::make_shared<watcher>();
    made->key = key;
    made->ready = std::move(ready);
    made->wake = std::move(wake);
    watchers_.emplace(id, made);
    if (connected_) {
        ask_for_wakes(*made);
    }
    ask_again(id);
    return id;
}

/// A subscription that is not confirmed gets a connection of its own sooner or later.
void remote_store::ask_again(dibs::store::watch_id id) {
    process_.post_in(watch_patience, [this, here = here_, id] {
        const auto at = *here ? watchers_.find(id) : watchers_.end();
        if (!*here || at == watchers_.end() || !at->second->ready) {
            return;
        }
        if (connected_) {
            ask_for_wakes(*at->second);
        }
        ask_again(id);
    });
}

void remote_store::ask_for_wakes(watcher& of) {
    using dibs::store::wake_by;
    const auto wake_all = [this](const std::string& key, bool is_ready, wake_by whose) {
        std::vector<std::shared_ptr<watcher>> mine;
        for (const auto& [id, one] : watchers_) {
            if (one->key == key) {
                mine.push_back(one);
            }
        }
        for (const auto& one : mine) {
            if (is_ready && one->ready) {
                auto ready = std::move(one->ready);
                one->ready = {};
                ready({});
            } else {
                one->wake(whose);
            }
        }
    };
    // Told to the process in its turn, unless the connection has been replaced meanwhile.
    const auto tell = [this, here = here_, life = process_.life(), epoch = epoch_, wake_all](
                          const std::string& key, bool is_ready, wake_by whose) {
        if (!*life || !*here || epoch != epoch_) {
            return;
        }
        lines_[wake_line]->send(direction::to_client,
                                [this, here, life, epoch, wake_all, key, is_ready, whose] {
                                    if (!*life || !*here || epoch != epoch_) {
                                        return;
                                    }
                                    process_.post([here, wake_all, key, is_ready, whose] {
                                        if (*here) {
                                            wake_all(key, is_ready, whose);
                                        }
                                    });
                                });
    };
    lines_[wake_line]->send(
        direction::to_store,
        [to = &server_, life = process_.life(), from = process_.number(), key = of.key, tell] {
            if (!to->up() || !*life) {
                return;
            }
            to->watch(from, key, [tell, key](wake_by whose) { tell(key, false, whose); });
            tell(key, true, wake_by::unknown);
        });
}

dibs::store::watch_id remote_store::await_notices(std::string_view key,
                                                  dibs::store::wake_callback wake) {
    if (closed_ || !caps().notifies) {
        return 0;
    }
    const auto id = ++numbered_;
    auto made = std::make_shared<watcher>();
    made->key = key;
    made->wake = std::move(wake);
    listeners_.emplace(id, std::move(made));
    return id;
}

/// Told by the connection for requests, in its turn among the answers.
void remote_store::hear_notices() {
    server_.hear_notices(
        process_.number(),
        [this, here = here_, life = process_.life(), epoch = epoch_](const std::string& key) {
            if (!*life || !*here || epoch != epoch_) {
                return;
            }
            connection(dibs::store::lane::others)
                .send(direction::to_client, [this, here, life, epoch, key] {
                    if (!*life || !*here || epoch != epoch_) {
                        return;
                    }
                    process_.post([this, here, key] {
                        if (*here) {
                            wake_listeners(key);
                        }
                    });
                });
        });
}

/// Of every key, if it is empty.
void remote_store::wake_listeners(const std::string& key) {
    std::vector<std::shared_ptr<watcher>> mine;
    for (const auto& [id, one] : listeners_) {
        if (key.empty() || one->key == key) {
            mine.push_back(one);
        }
    }
    for (const auto& one : mine) {
        one->wake(dibs::store::wake_by::unknown);
    }
}

void remote_store::unwatch(dibs::store::watch_id id) {
    if (listeners_.erase(id) != 0) {
        return;
    }
    const auto at = watchers_.find(id);
    if (at == watchers_.end()) {
        return;
    }
    const auto key = at->second->key;
    watchers_.erase(at);
    const bool others = std::any_of(watchers_.begin(), watchers_.end(), [&](const auto& one) {
        return one.second->key == key;
    });
    if (!others && connected_) {
        lines_[wake_line]->send(direction::to_store,
                                [to = &server_, from = process_.number(), key] {
                                    if (to->up()) {
                                        to->unwatch(from, key);
                                    }
                                });
    }
}

// --- connections ---------------------------------------------------------------------------------

void remote_store::cut() {
    if (closed_ || !connected_) {
        return;
    }
    connected_ = false;
    renew_connections();
    server_.leave(process_.number());
    process_.post([this, here = here_] {
        if (!*here) {
            return;
        }
        auto broken = std::exchange(flights_, {});
        for (auto& [number, one] : broken) {
            one->done(
                dibs::store::answers(one->entries, core::in_doubt("the connection has broken")));
        }
        wake_listeners({});  // what was said meanwhile is lost
    });
    reconnect_soon();
}

void remote_store::reconnect_soon() {
    process_.post_in(random_.between(reconnect_least, reconnect_most), [this, here = here_] {
        if (!*here || closed_) {
            return;
        }
        const bool shut = weather_.is_closed(direction::to_store) ||
                          weather_.is_closed(direction::to_client) || !server_.up();
        if (shut) {
            reconnect_soon();
        } else {
            reconnected();
        }
    });
}

void remote_store::reconnected() {
    connected_ = true;
    // Whatever happened meanwhile was not heard of: everybody looks for himself.
    for (const auto& [id, one] : watchers_) {
        ask_for_wakes(*one);
    }
}

void remote_store::opened() {
    for (auto& one : lines_) {
        one->opened();
    }
}

void remote_store::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    watchers_.clear();
    listeners_.clear();
    server_.leave(process_.number());
    auto broken = std::exchange(flights_, {});
    for (auto& [number, one] : broken) {
        one->done(dibs::store::answers(one->entries, core::in_doubt("the store was closed")));
    }
    auto unread = std::exchange(readings_, {});
    for (auto& [number, one] : unread) {
        core::page none;
        none.error = errc::closed;
        one->done(std::move(none));
    }
}

}  // namespace dibs::simulation
