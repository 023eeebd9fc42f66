// SPDX-License-Identifier: Apache-2.0
#pragma once
// A store behind a bad line: what is asked may get lost, come late, come twice or be refused, and
// so may what is answered. What it does with which batch is the test's plan. Thread safety: none.

#include "core/environment.hpp"
#include "store/store.hpp"

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace dibs::testing {

enum class fault {
    none,
    refuse,         ///< not executed, and the caller is told so
    deny,           ///< the same, by the store itself: it is full, or read-only
    not_ready,      ///< not executed: a strict store grants nothing yet, for a second or so
    lose_request,   ///< not executed; no answer before close
    lose_answer,    ///< executed; no answer before close
    doubt,          ///< executed; answered "unknown"
    delay_request,  ///< executed later, unless its deadline has passed by then
    delay_answer,   ///< executed, answered later
    repeat,         ///< executed twice, as when a message is repeated; the second answer counts
};

class faulty_store final : public store::store {
  public:
    struct seen_batch {
        core::lane which{};
        std::vector<core::entry> entries;
        core::instant when{};
    };
    /// Told the number of the batch, from 1.
    using fault_plan = std::function<fault(std::size_t number, const seen_batch& batch)>;

    faulty_store(core::environment env, std::unique_ptr<dibs::store::store> inner)
        : env_{env}, inner_{std::move(inner)} {}

    fault_plan plan;
    /// Asked for each look at records; an error is what it fails of.
    std::function<std::error_code()> look_plan;
    core::nanoseconds delay{std::chrono::seconds{1}};
    /// A delayed request is executed even after its deadline, as by a server that knows no client's
    /// clock.
    bool blind_to_deadlines = false;
    /// Wake-ups get lost.
    bool deaf = false;
    /// It wakes nobody, and says so.
    bool wakeless = false;
    /// It says that it takes word (core::acquire::notify); as a stand-in for that its own watch is used.
    bool notifies = false;
    /// It has room for word.
    bool has_room_for_word = true;
    /// All holders look like locks of programs that know no fence.
    bool strangers = false;
    std::vector<seen_batch> seen;

    template <typename Verb>
    [[nodiscard]] std::size_t count() const {
        std::size_t found = 0;
        for (const auto& batch : seen) {
            for (const auto& one : batch.entries) {
                found += std::holds_alternative<Verb>(one.what) ? 1 : 0;
            }
        }
        return found;
    }

    [[nodiscard]] const dibs::store::capabilities& caps() const noexcept override {
        return wakeless ? without_wakes_ : notifies ? with_notices_ : inner_->caps();
    }
    [[nodiscard]] const std::string& location() const noexcept override {
        return inner_->location();
    }

    void execute(core::lane which,
                 std::vector<core::entry> batch,
                 core::batch_completion done) override {
        seen.push_back({which, batch, env_.time.now()});
        if (notifies) {
            done = with_word_taken(batch, std::move(done));
        }
        switch (closed_ || !plan ? fault::none : plan(seen.size(), seen.back())) {
            case fault::none:
                inner_->execute(which,
                                std::move(batch),
                                strangers ? without_fences(std::move(done)) : std::move(done));
                break;
            case fault::refuse:
                refuse(batch.size(), errc::store_unreachable, "no connection", std::move(done));
                break;
            case fault::deny:
                refuse(batch.size(), errc::store_refused, "the disk is full", std::move(done));
                break;
            case fault::not_ready:
                grant_nothing_yet(batch.size(), std::move(done));
                break;
            case fault::lose_request:
                keep_silent(batch.size(), std::move(done));
                break;
            case fault::lose_answer:
                keep_silent(batch.size(), std::move(done));
                inner_->execute(which, std::move(batch), [](const core::answers&) {});
                break;
            case fault::doubt:
                inner_->execute(
                    which,
                    std::move(batch),
                    [done = std::move(done)](const core::answers& given) mutable {
                        done(core::answers(given.size(), core::in_doubt("the answer was lost")));
                    });
                break;
            case fault::delay_request:
                if (blind_to_deadlines) {
                    for (auto& one : batch) {
                        one.deadline = core::instant::max();
                    }
                }
                later([this, which, batch = std::move(batch), done = std::move(done)]() mutable {
                    inner_->execute(which, std::move(batch), std::move(done));
                });
                break;
            case fault::delay_answer:
                inner_->execute(
                    which,
                    std::move(batch),
                    [this, done = std::move(done)](core::answers given) mutable {
                        later([done = std::move(done), given = std::move(given)]() mutable {
                            done(std::move(given));
                        });
                    });
                break;
            case fault::repeat:
                inner_->execute(
                    which,
                    batch,
                    [this, which, batch, done = std::move(done)](const core::answers&) mutable {
                        inner_->execute(which, std::move(batch), std::move(done));
                    });
                break;
        }
    }

    dibs::store::watch_id watch(std::string_view key,
                                dibs::store::watch_completion ready,
                                dibs::store::wake_callback wake) override {
        ++watches;
        return inner_->watch(
            key, std::move(ready), [this, wake = std::move(wake)](auto whose) mutable {
                if (!deaf) {
                    wake(whose);
                }
            });
    }
    void unwatch(dibs::store::watch_id id) override { inner_->unwatch(id); }
    dibs::store::watch_id await_notices(std::string_view key,
                                        dibs::store::wake_callback wake) override {
        if (!notifies) {
            return inner_->await_notices(key, std::move(wake));
        }
        ++listens;
        return inner_->watch(
            key,
            [](std::error_code) {},
            [this, wake = std::move(wake)](auto whose) mutable {
                if (!deaf) {
                    wake(whose);
                }
            });
    }

    void list(std::string prefix,
              std::string after,
              std::size_t limit,
              dibs::store::page_completion done) override {
        if (const auto error = look_plan ? look_plan() : std::error_code{}) {
            env_.exec.post([error, done = std::move(done)]() mutable {
                core::page told;
                told.error = error;
                told.detail = "it cannot be looked at";
                done(std::move(told));
            });
            return;
        }
        inner_->list(std::move(prefix), std::move(after), limit, std::move(done));
    }

    void close() override {
        closed_ = true;
        inner_->close();
        delayed_.clear();
        auto silent = std::exchange(silent_, {});
        for (auto& [entries, done] : silent) {
            done(core::answers(entries, core::in_doubt("closed before an answer came")));
        }
    }

    std::size_t watches = 0;
    std::size_t listens = 0;  ///< for notices

  private:
    struct postponed {
        postponed(core::task what, core::task on_fire)
            : work{std::move(what)}, alarm{std::move(on_fire)} {}
        core::task work;
        core::timer alarm;
    };

    void refuse(std::size_t entries, errc why, const char* words, core::batch_completion done) {
        env_.exec.post([entries, why, words, done = std::move(done)]() mutable {
            done(core::answers(entries, core::refused(why, words)));
        });
    }

    void grant_nothing_yet(std::size_t entries, core::batch_completion done) {
        core::answer given;
        given.took = core::effect::yes;
        given.what = core::verdict::not_ready;
        given.retry_after = std::chrono::seconds{1};
        given.detail = "the server has begun anew";
        env_.exec.post([entries, given, done = std::move(done)]() mutable {
            done(core::answers(entries, given));
        });
    }

    static core::batch_completion without_fences(core::batch_completion done) {
        return [done = std::move(done)](core::answers given) mutable {
            for (auto& one : given) {
                for (auto& holder : one.holders) {
                    holder.fences = {};
                }
            }
            done(std::move(given));
        };
    }

    core::batch_completion with_word_taken(const std::vector<core::entry>& batch,
                                           core::batch_completion done) {
        std::vector<bool> asked;
        for (const auto& one : batch) {
            const auto* what = std::get_if<core::acquire>(&one.what);
            asked.push_back(what != nullptr && what->notify);
        }
        return
            [this, asked = std::move(asked), done = std::move(done)](core::answers given) mutable {
                for (std::size_t at = 0; at < given.size(); ++at) {
                    given[at].will_notify =
                        asked[at] && has_room_for_word && given[at].what == core::verdict::held;
                }
                done(std::move(given));
            };
    }

    void keep_silent(std::size_t entries, core::batch_completion done) {
        silent_.emplace_back(entries, std::move(done));
    }

    void later(core::task work) {
        delayed_.push_back(nullptr);
        const auto at = std::prev(delayed_.end());
        *at = std::make_unique<postponed>(std::move(work), [this, at] {
            const auto ripe = std::move(*at);
            delayed_.erase(at);
            ripe->work();
        });
        env_.time.arm((*at)->alarm, env_.time.now() + delay);
    }

    core::environment env_;
    std::unique_ptr<dibs::store::store> inner_;
    const dibs::store::capabilities without_wakes_ = [this] {
        auto made = inner_->caps();
        made.wakes = false;
        return made;
    }();
    const dibs::store::capabilities with_notices_ = [this] {
        auto made = inner_->caps();
        made.notifies = true;
        return made;
    }();
    std::list<std::unique_ptr<postponed>> delayed_;
    std::vector<std::pair<std::size_t, core::batch_completion>> silent_;
    bool closed_ = false;
};

}  // namespace dibs::testing
