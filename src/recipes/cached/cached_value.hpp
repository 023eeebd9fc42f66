// SPDX-License-Identifier: Apache-2.0
#pragma once
// A value that many processes share and that runs out, such as an access token: fetched once when it is due, by one of
// them, and read by all.
//
// Three layers. Callers of a process share one flight (single flight). Flights of all processes meet at the lease of the
// value's key: one fetches, the others wait for what it leaves. What it leaves is the result of that key, so the answer to
// an acquire is the value itself when there is a good one, and whoever wins the lease has just read what was there:
// nobody fetches again what was fetched while it waited.
//
//   due (no value, no longer fresh, or seen to be dead)
//     └─acquire─▶ done: the value of somebody else        ─▶ served
//               ▶ held: the old value while it lasts, else wait
//               ▶ granted ─▶ fetch ─▶ finish(value, fresh until it is due again)
//                                   ─▶ finish(old value, failing: not again before its pause)
//
// A value that was refused before its time (`seen`, the fence of the value that got a 401) counts as dead for this key up
// to that fence, so fifty who saw the same one refused cause one fetch.
//
// A credential that changes with each fetch (`successor`) must be presented once. So an intent is written in the same step
// as the grant before it is presented (state `fetching`), the new pair is stored before the value is handed out, late if
// need be, and an older pair never replaces a newer one. Whoever finds an intent without its holder cannot know whether
// the credential was used: see `retry_after_doubt`.
//
// Thread safety: none; it lives on the executor. The fetch itself runs wherever the caller's `fetcher` runs it.

#include "core/environment.hpp"
#include "recipes/cached/cached_record.hpp"
#include "recipes/mutex.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace dibs::recipes {

struct cached_terms {
    std::string key;
    mutex_terms acquire;  ///< of the lease; `wait`, `mark` and `seen` are ours
    unsigned refresh_permille =
        800;  ///< of a value's life, after which it is due; 5 % earlier or later
    core::microseconds floor =
        std::chrono::seconds{1};  ///< between fetches, however short the life of a value
    core::microseconds looked_at_every = std::chrono::seconds{
        1};  ///< a value that was read is served without asking the store for so long
    core::microseconds backoff = std::chrono::seconds{1};  ///< after a failure; doubles
    core::microseconds longest_backoff = std::chrono::minutes{1};
    core::microseconds longest_pause =
        std::chrono::hours{1};  ///< of those that a provider asks for
    core::microseconds refused_for = std::chrono::minutes{10};
    bool rotates = false;  ///< the first credential, too, may be presented once
    /// An intent whose process is gone is followed by another fetch with the same credential. For providers that accept
    /// it again for a while. Otherwise the value counts as refused then. Without effect unless a credential is at stake.
    bool retry_after_doubt = false;
    bool background = true;  ///< a value that is due but valid is served while it is fetched
    core::party who;
};

struct fetch_request {
    core::fence_number fence = 0;
    lease_ptr lease;                        ///< under which it is done
    std::optional<cached_record> previous;  ///< value and successor, if any were kept
};

struct fetched {
    enum class ending : std::uint8_t {
        good,
        failed,
        refused,
        unknown,  ///< failed, after the provider may have taken the credential
    } how = ending::failed;
    std::string value;
    core::microseconds life{};             ///< from the beginning of the fetch on
    std::optional<std::string> successor;  ///< empty: that of before stays
    std::optional<core::microseconds> retry_after;
    std::string trouble;
};

enum class cached_verdict : std::uint8_t {
    value,
    failing,  ///< no value that is valid; the last fetch failed, see `retry_after`
    refused,  ///< no value that is valid, and none to be had
    busy,     ///< somebody is fetching, and the wait is over
    trouble,  ///< see `error`
};

struct cached_outcome {
    cached_verdict verdict = cached_verdict::trouble;
    std::string value;
    core::fence_number fence = 0;  ///< of the value: what `seen` takes
    std::uint64_t generation = 0;
    core::instant valid_until{};       ///< value
    core::instant good_until{};        ///< value: until then it can be served without asking again
    core::microseconds retry_after{};  ///< failing, refused
    std::vector<core::holder_info> holders;  ///< busy
    std::error_code error;
    std::string detail;
};

struct cached_wish {
    core::fence_number seen = 0;  ///< values by a fence up to this one are of no use
    core::microseconds
        min_life{};  ///< a value that lasts less is fetched anew, but served if it is all there is
    core::nanoseconds wait = std::chrono::seconds{30};
    /// A store that cannot be reached, refuses or grants nothing yet is waited for, too, until the wait is over. Otherwise
    /// it is told after `timeout` at the latest.
    bool patient = false;
};

class cached_value {
  public:
    class call;
    using call_ptr = std::shared_ptr<call>;
    using completion = core::unique_function<void(cached_outcome)>;
    using fetcher = std::function<void(fetch_request, core::unique_function<void(fetched)>)>;
    /// Milliseconds since 1970, to be written down for people.
    using calendar = std::function<std::int64_t()>;

    /// `fetch` is called on the executor, for one fetch at a time, and must not block; its completion may be called there
    /// alone. `seal` may be null, and must outlive this.
    cached_value(core::environment env,
                 store::store& through,
                 core::batcher& batches,
                 mutex& keys,
                 cached_terms terms,
                 sealer* seal,
                 fetcher fetch,
                 calendar now);
    ~cached_value();
    cached_value(const cached_value&) = delete;
    cached_value& operator=(const cached_value&) = delete;

    /// `done` is called once, never inside this call.
    call_ptr get(cached_wish wish, completion done);
    void cancel(const call_ptr& which, errc why = errc::cancelled);

    /// Forgets value, credential and failures, here and in the store, once nobody is fetching: the verdict is `value` then,
    /// and `busy` or `trouble` otherwise.
    void forget(core::nanoseconds wait, completion done);

    /// Ends all calls. A fetch under way is stored all the same, as long as the executor runs. `landed` is called once a
    /// credential that the fetch has brought is stored, or lost: `trouble` tells why, then. Requires: no fetch goes on.
    void close(core::unique_function<void(std::string trouble)> landed);

  private:
    struct reading;  // what was last read or written
    struct flight;   // on its way to a value
    using flight_ptr = std::shared_ptr<flight>;

    [[nodiscard]] bool valid(const cached_wish& wish) const;
    [[nodiscard]] bool lasts(const cached_wish& wish) const;
    [[nodiscard]] bool too_early() const;
    [[nodiscard]] bool needs_no_asking(const cached_wish& wish) const;
    [[nodiscard]] bool rests() const;

    void fly();
    void ask(const flight_ptr& which, bool with_intent);
    void answered(const flight_ptr& which, bool with_intent, mutex_outcome outcome);
    [[nodiscard]] bool read(const core::boxed<core::kept_result>& found, core::instant sent);
    void read_under_lease(const flight_ptr& which, bool with_intent);
    void granted(const flight_ptr& which, bool with_intent);
    void give_back(const flight_ptr& which, const core::kept_result& found);
    void begin_fetch(const flight_ptr& which);
    void ended(const flight_ptr& which, fetched brought);
    void fell_short(const flight_ptr& which, fetched brought);
    void failed(const flight_ptr& which,
                cached_state how,
                core::microseconds pause,
                std::string why);
    void keep(const flight_ptr& which);
    void keep_late(const flight_ptr& which);
    void keep_under_another_lease(const flight_ptr& which);
    void kept(const flight_ptr& which);
    void know(const flight& which);
    void not_kept(const flight_ptr& which, std::error_code error, std::string detail);

    void land(const flight_ptr& which);
    [[nodiscard]] bool carries_credential() const;
    void serve_by_what_is_known(bool just_fetched);
    void serve(const std::function<bool(const cached_wish&)>& whom);
    void fail(mutex_trouble told);
    void tell_trouble(const call_ptr& which, const mutex_trouble& what);
    void fail_all(std::error_code error, const std::string& detail);
    void on_alarm();
    void arm();
    void end(const call_ptr& which, cached_outcome outcome);
    void tell_value(const call_ptr& which);
    void tell_busy(const call_ptr& which);

    void take_for_unseen(core::fence_number from);
    void doubt_what_was_seen(core::fence_number known, core::fence_number of_value);

    [[nodiscard]] cached_record present() const;
    [[nodiscard]] core::microseconds pause_after(unsigned failures);
    [[nodiscard]] bool at_stake(const cached_record& record) const noexcept;
    [[nodiscard]] core::result_to_keep to_keep(const cached_record& record,
                                               core::microseconds fresh);
    [[nodiscard]] core::microseconds spread(core::microseconds span, unsigned permille);

    core::environment env_;
    store::store& store_;
    core::batcher& batcher_;
    mutex& keys_;
    const cached_terms terms_;
    sealer* seal_;
    fetcher fetch_;
    calendar now_;
    std::unique_ptr<reading> known_;
    flight_ptr flight_;
    std::list<call_ptr> calls_;
    bool looked_ = false;          ///< the store has answered once: what it has is known
    mutex_trouble trouble_;        ///< of the last flight, which the store did not let land
    core::instant flies_again_{};  ///< after such a one, when everybody who waits is patient
    core::timer alarm_;
    bool closed_ = false;
    std::string credential_lost_;
    core::unique_function<void(std::string)> landed_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dibs::recipes
