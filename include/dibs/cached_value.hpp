// SPDX-License-Identifier: Apache-2.0
#pragma once
// A value that a whole fleet shares and that runs out, such as an access token: fetched by one process when it is due, and
// read by all of them.
//
//   dibs::cached_value token{client, "oauth:crm", fetch_token};   // fetch_token returns a dibs::fetched<>
//   std::string bearer = token.get();
//   if (call(bearer) == 401) { token.reject(bearer); bearer = token.get(); }
//
// One fetch at a time across all processes; the others wait for it, or are served the old value while that is valid. A
// value is due after 80 % of its life. A crash of the one who fetches is noticed at the end of its lease, and another one
// takes over. Failures are shared, too: nobody asks again before the pause of the back-off, or of the provider, is over.

#include <dibs/client.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace dibs {

/// What a fetch is given.
struct fetch_context {
    std::string_view successor;  ///< what the fetch before left to be presented now; empty: nothing
    std::uint64_t fence = 0;     ///< of the lease under which it is done
    std::stop_token stop;        ///< requested when the cached value is being destroyed
};

/// What a fetch brings.
template <typename T = std::string>
struct fetched {
    T value;
    std::chrono::milliseconds life;  ///< from the beginning of the fetch on; `forever` is allowed
    /// What the next fetch has to present, such as a rotated refresh token. Empty: that of before stays.
    std::optional<std::string> successor = std::nullopt;
};

/// To be thrown by a fetch that failed, and surely has not used up the credential (`successor`) that it was given. Any
/// other exception leaves that open, as in_doubt().
class fetch_failure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;

    /// The provider has asked not to be asked again for so long.
    fetch_failure& retry_after(std::chrono::milliseconds pause) noexcept {
        retry_after_ = pause;
        return *this;
    }
    /// Trying again is of no use, as after `invalid_grant`: somebody has to see to it.
    fetch_failure& refused() noexcept {
        refused_ = true;
        return *this;
    }

    /// The provider may have been asked, and may have answered: a credential that may be used once is not presented again
    /// (see cached_options::retry_after_doubt). Without one, it is a failure like any other.
    fetch_failure& in_doubt() noexcept {
        in_doubt_ = true;
        return *this;
    }

    [[nodiscard]] std::optional<std::chrono::milliseconds> pause() const noexcept {
        return retry_after_;
    }
    [[nodiscard]] bool is_refusal() const noexcept { return refused_; }
    [[nodiscard]] bool is_in_doubt() const noexcept { return in_doubt_; }

  private:
    std::optional<std::chrono::milliseconds> retry_after_;
    bool refused_ = false;
    bool in_doubt_ = false;
};

/// How text becomes a T and back, for values that are no text. Specialise it:
///   static std::string encode(const T&);
///   static T decode(std::string_view);
template <typename T>
struct cached_codec;

template <>
struct cached_codec<std::string> {
    static std::string encode(std::string value) { return value; }
    static std::string decode(std::string_view text) { return std::string(text); }
};

/// Settings that have a good default. Not an aggregate: see options.hpp.
class cached_options {
  public:
    /// How long the lease of a fetch lasts when its process dies. It is renewed while the fetch goes on.
    cached_options& ttl(std::chrono::milliseconds length) noexcept {
        ttl_ = length;
        return *this;
    }
    /// After which part of its life a value is due; 0.05 to 0.95. Up to 5 % earlier or later, so that processes do not
    /// fetch in step.
    cached_options& refresh_at(double part) noexcept {
        refresh_at_ = part;
        return *this;
    }
    /// For so long a process serves a value that it has read without asking the store.
    cached_options& looked_at_every(std::chrono::milliseconds window) noexcept {
        looked_at_every_ = window;
        return *this;
    }
    /// The credential of the very first fetch may be presented once only. Without effect on later ones, for which that
    /// counts as soon as a fetch has left a successor.
    cached_options& rotating(bool yes = true) noexcept {
        rotating_ = yes;
        return *this;
    }
    /// A process died in the middle of a fetch that presents a credential which may be used once: try it again? Only for
    /// providers that accept it again for a while; others revoke everything. Without it the value is refused until
    /// forget().
    cached_options& retry_after_doubt(bool yes = true) noexcept {
        retry_after_doubt_ = yes;
        return *this;
    }
    /// Keys that seal what is kept in the store: a line of 64 hexadecimal digits each, the newest first. Without any,
    /// values and credentials lie in the store as they are.
    cached_options& keys(std::string lines) {
        keys_ = std::move(lines);
        return *this;
    }

    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept { return ttl_; }
    [[nodiscard]] double refresh_at() const noexcept { return refresh_at_; }
    [[nodiscard]] std::chrono::milliseconds looked_at_every() const noexcept {
        return looked_at_every_;
    }
    [[nodiscard]] bool rotates() const noexcept { return rotating_; }
    [[nodiscard]] bool retries_after_doubt() const noexcept { return retry_after_doubt_; }
    [[nodiscard]] const std::string& keys() const noexcept { return keys_; }

  private:
    std::chrono::milliseconds ttl_ = std::chrono::seconds{30};
    double refresh_at_ = 0.8;
    std::chrono::milliseconds looked_at_every_ = std::chrono::seconds{1};
    bool rotating_ = false;
    bool retry_after_doubt_ = false;
    std::string keys_;
};

struct get_options {
    /// How long to wait for a fetch, here or elsewhere.
    std::chrono::milliseconds wait = std::chrono::seconds{30};
    /// A value that lasts less is fetched anew. If there is no better one to be had, it is served all the same.
    std::chrono::milliseconds min_life = std::chrono::milliseconds::zero();
};

namespace detail {

struct shared_value;

/// cached_value without its type.
class cached_text {
  public:
    using fetcher = std::function<fetched<std::string>(const fetch_context&)>;

    cached_text(client& through, std::string_view key, fetcher fetch, cached_options options);
    cached_text(const cached_text&) = delete;
    cached_text& operator=(const cached_text&) = delete;
    ~cached_text();

    [[nodiscard]] std::string get(get_options options, std::stop_token stop);
    [[nodiscard]] std::optional<std::string> get(get_options options,
                                                 std::stop_token stop,
                                                 std::error_code& error) noexcept;
    void reject(std::string_view value);
    void forget(std::chrono::milliseconds wait);

  private:
    std::unique_ptr<shared_value> state_;
};

}  // namespace detail

/// A value of type T under a key of a store, for all processes that name the same key there.
///
/// The key must tell all that the value depends on: tenant, client, audience, set of scopes. No secret belongs into it.
///
/// Errors of get: errc::value_unavailable (no valid value, and the last fetch failed; the message tells when the next one
/// may be made), errc::value_refused (no valid value, and none to be had until somebody sees to it), errc::timed_out (it is
/// being fetched, and the wait is over), errc::permission_denied (sealed with a key that is not among ours),
/// errc::store_damaged (the key is used for something else), errors of the store as of client::acquire. With one of
/// outcome_unknown a value and its credential were fetched and could not be stored.
///
/// Thread safety: get and reject from any thread at the same time. The client must outlive it. The destructor asks a fetch
/// under way to stop, and waits for it; and until a credential that it has brought is stored, as long as that may succeed
/// (while the lease lasts, and some), since no other process has it.
template <typename T = std::string>
class cached_value {
  public:
    /// `fetch` is called on a thread of the cached value, one call at a time: fetched<T>(const fetch_context&), or
    /// fetched<T>(). Throws dibs::error: invalid_argument for key and options.
    template <typename Fetch>
    cached_value(client& through, std::string_view key, Fetch fetch, cached_options options = {})
        : text_(through, key, as_text(std::move(fetch)), std::move(options)) {}

    /// A valid value. Costs no round trip while a fresh one was read within `looked_at_every`, and one otherwise.
    [[nodiscard]] T get(get_options options = {}, std::stop_token stop = {}) {
        return as_value(text_.get(options, std::move(stop)));
    }
    /// Empty with an error.
    [[nodiscard]] std::optional<T> get(get_options options,
                                       std::stop_token stop,
                                       std::error_code& error) {
        if (auto text = text_.get(options, std::move(stop), error)) {
            return as_value(std::move(*text));
        }
        return std::nullopt;
    }

    /// Whoever should have accepted the value has refused it (401): the next get fetches a newer one, once in the whole
    /// fleet, however many say this of the same value. Does nothing when a newer one was read already.
    void reject(const T& value) { text_.reject(cached_codec<T>::encode(value)); }

    /// Forgets value, credential and failures for all processes: after a new login. Throws as get; errc::timed_out when it is
    /// being fetched for longer than `wait`.
    void forget(std::chrono::milliseconds wait = std::chrono::seconds{30}) { text_.forget(wait); }

  private:
    static T as_value(std::string text) {
        if constexpr (std::is_same_v<T, std::string>) {
            return text;
        } else {
            return cached_codec<T>::decode(text);
        }
    }
    template <typename Fetch>
    static detail::cached_text::fetcher as_text(Fetch fetch) {
        return [fetch = std::move(fetch)](const fetch_context& with) {
            const auto call = [&] {
                if constexpr (std::invocable<const Fetch&, const fetch_context&>) {
                    return fetch(with);
                } else {
                    return fetch();
                }
            };
            auto brought = call();
            return fetched<std::string>{cached_codec<T>::encode(std::move(brought.value)),
                                        brought.life,
                                        std::move(brought.successor)};
        };
    }

    detail::cached_text text_;
};

namespace detail {

template <typename Fetch>
struct type_of_fetch;
template <typename Fetch>
requires std::invocable<const Fetch&, const fetch_context&>
struct type_of_fetch<Fetch> {
    using type = decltype(std::invoke_result_t<const Fetch&, const fetch_context&>::value);
};
template <typename Fetch>
requires(!std::invocable<const Fetch&, const fetch_context&> &&
         std::invocable<const Fetch&>) struct type_of_fetch<Fetch> {
    using type = decltype(std::invoke_result_t<const Fetch&>::value);
};

}  // namespace detail

template <typename Fetch>
cached_value(client&, std::string_view, Fetch)
    -> cached_value<typename detail::type_of_fetch<Fetch>::type>;
template <typename Fetch>
cached_value(client&, std::string_view, Fetch, cached_options)
    -> cached_value<typename detail::type_of_fetch<Fetch>::type>;

}  // namespace dibs
