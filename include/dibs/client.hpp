// SPDX-License-Identifier: Apache-2.0
#pragma once
// The client: one connection to a store, one watchdog for all leases that were acquired through it.

#include <dibs/election.hpp>
#include <dibs/error.hpp>
#include <dibs/idempotent.hpp>
#include <dibs/info.hpp>
#include <dibs/lease.hpp>
#include <dibs/lease_set.hpp>
#include <dibs/once.hpp>
#include <dibs/options.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace dibs {

/// How loud a message is.
enum class log_level { debug, info, warning, error };

/// Settings of a client that have a good default. Not an aggregate: see options.hpp.
class client_options {
  public:
    client_options() = default;

    /// What others are told about this process when they find a key held. Default: its command
    /// line. Do not put secrets here.
    client_options& command(std::string text) {
        command_ = std::move(text);
        return *this;
    }

    /// Where messages go. Default: nowhere. Called on threads of the client's, one call at a time;
    /// must not throw and must not call the client.
    client_options& log(std::function<void(log_level, std::string_view)> sink) {
        log_ = std::move(sink);
        return *this;
    }

    [[nodiscard]] const std::string& command() const noexcept { return command_; }
    [[nodiscard]] const std::function<void(log_level, std::string_view)>& log() const noexcept {
        return log_;
    }

  private:
    std::string command_;
    std::function<void(log_level, std::string_view)> log_;
};

/// Acquires leases on the keys of one store.
///
/// A key is 1 to 1,024 bytes of UTF-8 without control characters, and can be seen. Keys are compared
/// byte by byte.
///
/// That somebody else holds the key, or stands in its queue before the caller, or that an operator
/// has put it on hold, is not an error: the optional is empty. Errors are of these kinds (`error.code() == condition::…`):
///   - invalid_argument: a key, an option or the URL is wrong; nothing was sent;
///   - retryable: surely not applied; nothing is held;
///   - outcome_unknown: the store may have given the lease; the client undoes that in the
///     background, and at the latest it ends by expiry;
///   - cancelled: the caller asked to stop; nothing is held.
///
/// Thread safety: all members but the destructor and moves may be called from any thread at the
/// same time. The destructor waits shortly for releases under way; leases that are still held then
/// are given back, and their handles are lost. In a forked child the client cannot be used
/// (errc::unsupported), and its destruction changes nothing there: make another one. A static object
/// may have a client and use it in its destructor, unless other threads still do.
///
/// Without memory, and without a thread to request the first loss of a lease on, the process is
/// terminated, since the members that tell an error by its code do not throw; its leases end then as
/// those of any process that dies.
class client {
  public:
    /// Opens a store by its URL: `sqlite:/var/lib/app/locks.db`, `redis://HOST`, `postgres://HOST/DB`,
    /// `memory:`. Errors: invalid_argument, retryable (it cannot be reached now), errc::store_damaged,
    /// errc::permission_denied, errc::unsupported; and the system's own, such as
    /// std::errc::too_many_files_open, when it has no descriptor or thread left for the client.
    explicit client(std::string_view store_url, client_options options = {});
    client(std::string_view store_url, client_options options, std::error_code& error) noexcept;

    client(client&& other) noexcept;
    client& operator=(client&& other) noexcept;
    ~client();

    /// Takes the key if it is free and nobody waits in its queue (order::queue), without waiting.
    /// The right default for jobs.
    [[nodiscard]] std::optional<lease> try_acquire(std::string_view key,
                                                   acquire_options options = {});
    [[nodiscard]] std::optional<lease> try_acquire(std::string_view key,
                                                   acquire_options options,
                                                   std::error_code& error) noexcept;

    /// Takes the key, waiting up to `options.wait` for it, or until `stop` is requested; in which
    /// order is `options.order`. Empty when somebody else still holds it then. Never returns later than its wait and timeout allow by
    /// more than a scheduling delay.
    [[nodiscard]] std::optional<lease> acquire(std::string_view key,
                                               acquire_options options = {},
                                               std::stop_token stop = {});
    [[nodiscard]] std::optional<lease> acquire(std::string_view key,
                                               acquire_options options,
                                               std::stop_token stop,
                                               std::error_code& error) noexcept;

    /// Takes all these keys or none, waiting up to `options.wait` for all of them together. Empty when
    /// somebody else still holds one of them then; those that were taken before it are given back.
    /// Keys that are all free are taken in one step, where the store executes a batch as one (SQLite,
    /// Redis); otherwise they are waited for in an order that is the same for all callers, so that no two
    /// can wait for each other, whatever the order in which they name them. A key that is named twice
    /// counts once. `options` holds for each of them; time is counted for all together. Do not call
    /// it, nor wait for any key, while you hold one of another call: that order is yours to keep.
    /// Errors: as acquire, and invalid_argument for no key at all. <dibs/async.hpp> and <dibs/asio.hpp>
    /// have it, too.
    [[nodiscard]] std::optional<lease_set> acquire_all(const std::vector<std::string>& keys,
                                                       acquire_options options = {},
                                                       std::stop_token stop = {});
    [[nodiscard]] std::optional<lease_set> acquire_all(const std::vector<std::string>& keys,
                                                       acquire_options options,
                                                       std::stop_token stop,
                                                       std::error_code& error) noexcept;

    /// Takes over a lease that another process turned into text with lease::hand_over. It gets
    /// a larger fence, so that what the other process still has under way can be told from it, and
    /// another holder id, so that the text is worthless afterwards. Of `options`, ttl and the
    /// renewal settings count. Errors: lease_lost when it has expired or was adopted already; not_ready
    /// from a store with guarantee=strict that may have forgotten that it was: the text is as good as
    /// before, but the lease is over by the time that it may be adopted; as acquire otherwise.
    [[nodiscard]] lease adopt(std::string_view handed_over, acquire_options options = {});
    [[nodiscard]] lease adopt(std::string_view handed_over,
                              acquire_options options,
                              std::error_code& error) noexcept;

    /// Does work that is asked for several times once: the first answer is kept under `key`, and told to
    /// whoever asks again. `fingerprint` is what was asked for (the bytes of the request): the same key
    /// with another one is refused. `work` is called at most once, on the calling thread:
    /// std::string(const idempotent_call&), or std::string(). How it ended is in the result: done here,
    /// replayed, or in flight elsewhere when `options.wait` is over.
    ///
    /// At least once: a crash, or a lost lease, between the effect and the answer lets the next caller do
    /// it again, so give the key on to whatever takes one. With `options.at_most_once` it is refused then.
    /// What `work` throws comes through, and nothing is kept; a kept_failure is kept as the answer and
    /// thrown again to whoever asks again. Errors: errc::fingerprint_differs, errc::work_in_doubt; as
    /// acquire. When the work was done and its answer could not be kept: condition::lease_lost (another
    /// one may have done it, too) or what went wrong with the store; ask again with the same key.
    template <typename Work>
    [[nodiscard]] idempotent_result idempotent(std::string_view key,
                                               std::string_view fingerprint,
                                               Work&& work,
                                               idempotent_options options = {},
                                               std::stop_token stop = {}) {
        return do_once(key, fingerprint, detail::as_work(work), options, std::move(stop));
    }
    /// With an error nothing is known to be kept. What `work` throws, and a kept_failure, still come
    /// through.
    template <typename Work>
    [[nodiscard]] idempotent_result idempotent(std::string_view key,
                                               std::string_view fingerprint,
                                               Work&& work,
                                               idempotent_options options,
                                               std::stop_token stop,
                                               std::error_code& error) {
        return do_once(key, fingerprint, detail::as_work(work), options, std::move(stop), error);
    }

    /// Runs `work` for the slot of now, if nobody has and nobody is at it, on this thread, and keeps the outcome; see
    /// <dibs/once.hpp>. With missed::all for several slots, one after the other, until somebody else is found at one. `stop`
    /// ends waiting, and is passed on to the work. Errors: as acquire; the outcome of slots that were run before the error is
    /// kept in the store. What `work` throws is in the result.
    once_result once(std::string_view job,
                     const schedule& when,
                     const once_function& work,
                     once_options options = {},
                     std::stop_token stop = {});
    once_result once(std::string_view job,
                     const schedule& when,
                     const once_function& work,
                     once_options options,
                     std::stop_token stop,
                     std::error_code& error);

    /// Stands by until this process leads, for up to `options.wait` or until `stop` is requested; see <dibs/election.hpp>.
    /// Empty when somebody else still leads then. Each term has a number of its own, also among campaigns of one process.
    /// Errors: as acquire.
    [[nodiscard]] std::optional<leadership> campaign(std::string_view key,
                                                     campaign_options options = {},
                                                     std::stop_token stop = {});
    [[nodiscard]] std::optional<leadership> campaign(std::string_view key,
                                                     campaign_options options,
                                                     std::stop_token stop,
                                                     std::error_code& error) noexcept;

    /// Calls `told` with who leads now, and whenever that changes. Does not wait. Errors: invalid_argument, errc::closed; that
    /// the store cannot be reached is none.
    [[nodiscard]] observation observe(std::string_view key,
                                      observer told,
                                      observe_options options = {});

    /// All records whose key starts with `prefix`, in key order, read page by page; not one
    /// snapshot.
    [[nodiscard]] std::vector<record> list(std::string_view prefix = {});
    [[nodiscard]] std::vector<record> list(std::string_view prefix,
                                           std::error_code& error) noexcept;

    /// The record of one key; empty when the store has none.
    [[nodiscard]] std::optional<record> inspect(std::string_view key);
    [[nodiscard]] std::optional<record> inspect(std::string_view key,
                                                std::error_code& error) noexcept;

    /// An operator's step: ends the lease that has this fence (or whose block of fences contains
    /// it), whoever holds it. True: ended. The key is free at once; the holder learns it at its
    /// next renewal, as errc::lease_revoked, and may be at work until then: the fence is what keeps
    /// its late writes out. False: the fence is not that of a live lease (any more); nothing was
    /// done. Errors: as acquire; outcome_unknown: look at the key before trying again.
    bool revoke(std::string_view key, std::uint64_t fence);
    bool revoke(std::string_view key, std::uint64_t fence, std::error_code& error) noexcept;

    /// An operator's step: for `length` nobody may acquire the key. Whoever tries finds it busy;
    /// inspect() and the command tell `reason`. A lease that is held stays, and can be renewed. Replaces an earlier hold. Survives
    /// restarts. Errors: as acquire.
    void hold(std::string_view key, std::chrono::milliseconds length, std::string_view reason);
    void hold(std::string_view key,
              std::chrono::milliseconds length,
              std::string_view reason,
              std::error_code& error) noexcept;

    /// Ends a hold. Does nothing when there is none. Errors: as acquire.
    void lift_hold(std::string_view key);
    void lift_hold(std::string_view key, std::error_code& error) noexcept;

    [[nodiscard]] store_info store() const;
    [[nodiscard]] statistics stats() const noexcept;

  private:
    friend struct detail::lease_access;
    client() noexcept;
    idempotent_result do_once(std::string_view key,
                              std::string_view fingerprint,
                              const detail::idempotent_work& work,
                              const idempotent_options& options,
                              std::stop_token stop);
    idempotent_result do_once(std::string_view key,
                              std::string_view fingerprint,
                              const detail::idempotent_work& work,
                              const idempotent_options& options,
                              std::stop_token stop,
                              std::error_code& error);
    std::shared_ptr<detail::client_core> core_;
};

}  // namespace dibs
