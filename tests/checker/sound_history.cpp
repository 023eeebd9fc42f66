// SPDX-License-Identifier: Apache-2.0
// A small world in which everything goes right: one store, targets behind fences, processes with
// clocks of their own that are paused and killed, answers that get lost.
#include "support.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <utility>

namespace dibs_checker::testing {
namespace {

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t ttl = 1'000 * ms;
constexpr std::int64_t store_ahead = 5'000 * ms;
constexpr int key_count = 8;
constexpr int process_count = 12;

/// One event as text, field by field.
class line {
  public:
    line(std::uint64_t seq, std::int64_t sim, const std::string& op) {
        text_ << R"({"seq":)" << seq << R"(,"sim_ns":)" << sim << R"(,"op":")" << op << '"';
    }
    line& number(const char* name, std::int64_t value) {
        text_ << ",\"" << name << "\":" << value;
        return *this;
    }
    line& word(const char* name, const std::string& value) {
        text_ << ",\"" << name << "\":\"" << value << '"';
        return *this;
    }
    line& raw(const char* name, const std::string& value) {
        text_ << ",\"" << name << "\":" << value;
        return *this;
    }
    [[nodiscard]] std::string text() const { return text_.str() + "}\n"; }

  private:
    std::ostringstream text_;
};

struct process {
    std::string name;
    std::int64_t clock_begin = 0;
    std::int64_t clock_ppm = 0;
    bool dead = false;
    std::int64_t paused_until = 0;

    [[nodiscard]] std::int64_t local(std::int64_t sim) const {
        return clock_begin + sim + sim / 1'000'000 * clock_ppm;
    }
};

struct stored {
    std::string holder;  ///< empty: free
    std::int64_t fence = 1'000;
    std::int64_t expires = 0;  ///< in true time
    std::vector<std::function<void()>> wakes;
};

struct target {
    std::int64_t largest = -1;
    std::string value = "null";
    std::int64_t count = 0;
    std::vector<std::string> members;
};

struct lease {
    std::shared_ptr<process> who;
    int key = 0;
    std::string holder;
    std::int64_t fence = 0;
    std::int64_t deadline = 0;  ///< by the process's clock
    int left = 0;               ///< works to do
};

class world {
  public:
    world(std::uint64_t seed, std::size_t events) : random_(seed), wanted_(events) {
        emit(event("plan")
                 .number("format", 1)
                 .number("wake_bound_ns", 100 * ms)
                 .number("poll_bound_ns", 3'000 * ms)
                 .number("progress_bound_ns", 20'000 * ms)
                 .word("note", "sound"));
        for (int index = 0; index < process_count; ++index) {
            new_process();
        }
    }

    std::string run() {
        while (!todo_.empty()) {
            const auto next = todo_.begin();
            now_ = next->first;
            const auto what = std::move(next->second);
            todo_.erase(next);
            what();
            if (!healed_ && written_ >= wanted_ * 2 / 3 && paused_ == 0) {
                healed_ = true;
                emit(event("heal"));
            }
        }
        emit(event("over"));
        return std::move(text_);
    }

  private:
    // --- helpers ---------------------------------------------------------------------------------

    std::int64_t below(std::int64_t end) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
    }
    bool one_in(std::int64_t many) { return below(many) == 0; }
    std::int64_t delay() { return 50 * us + below(2 * ms); }

    void after(std::int64_t wait, std::function<void()> what) {
        todo_.emplace(now_ + wait, std::move(what));
    }
    /// Runs it when the process is awake, never when it is dead.
    void in(const std::shared_ptr<process>& who, std::int64_t wait, std::function<void()> what) {
        after(wait, [this, who, what = std::move(what)]() mutable {
            if (who->dead) {
                return;
            }
            if (who->paused_until > now_) {
                in(who, who->paused_until - now_, std::move(what));
                return;
            }
            what();
        });
    }

    line event(const std::string& op) { return {seq_++, now_, op}; }
    void emit(const line& what) {
        text_ += what.text();
        ++written_;
    }
    line call(const std::string& op, const char* ph, std::int64_t number, const process& who) {
        auto made = event(op);
        made.word("ph", ph).number("call", number).word("proc", who.name);
        made.number("local_ns", who.local(now_));
        return made;
    }
    static std::string key_name(int key) { return "key" + std::to_string(key); }
    /// Register, counter and set of one key stand behind the same fence.
    static std::string target_name(const std::string& op, int key) {
        const char* kind = op == "increment" || op == "count" ? "counter"
                           : op == "add" || op == "members"   ? "set"
                                                              : "row";
        return kind + std::to_string(key);
    }

    void new_process() {
        auto who = std::make_shared<process>();
        who->name = "p" + std::to_string(next_name_++);
        who->clock_begin = below(1'000'000 * ms);
        who->clock_ppm = below(10'001) - 5'000;
        in(who, below(50 * ms), [this, who] { round(who); });
    }

    // --- the way of a lease ----------------------------------------------------------------------

    void round(const std::shared_ptr<process>& who) {
        if (written_ >= wanted_) {
            emit(event("clock").word("proc", who->name).number("local_ns", who->local(now_)));
            return;
        }
        auto mine = std::make_shared<lease>();
        mine->who = who;
        mine->key = static_cast<int>(below(key_count));
        mine->holder = "h" + std::to_string(next_holder_++);
        mine->left = 1 + static_cast<int>(below(5));
        const auto number = calls_++;
        emit(call("acquire", "inv", number, *who)
                 .word("key", key_name(mine->key))
                 .number("ttl_ns", ttl)
                 .raw("waits", "true"));
        ask(mine, number);
    }

    void ask(const std::shared_ptr<lease>& mine, std::int64_t number) {
        const auto& who = *mine->who;
        emit(event("try").word("proc", who.name).word("key", key_name(mine->key)));
        const auto sent = who.local(now_);
        after(delay(), [this, mine, number, sent] {
            auto& key = store_[mine->key];
            if (!key.holder.empty() && now_ < key.expires) {
                wait(mine, number, key);
                return;
            }
            key.holder = mine->holder;
            mine->fence = ++key.fence;
            grant("grant", *mine, key);
            if (one_in(40)) {
                lose_answer(mine, number);
                return;
            }
            in(mine->who, delay(), [this, mine, number, sent] { granted(mine, number, sent); });
        });
    }

    void grant(const char* op, const lease& mine, stored& key) {
        key.expires = now_ + ttl;
        emit(event(op)
                 .number("store_ns", now_ + store_ahead)
                 .word("key", key_name(mine.key))
                 .word("holder", mine.holder)
                 .number("fence", mine.fence)
                 .number("ttl_ns", ttl)
                 .number("store_expires_ns", key.expires + store_ahead));
    }

    void wait(const std::shared_ptr<lease>& mine, std::int64_t number, stored& key) {
        // Whichever comes first, the notification or the timer.
        auto asked = std::make_shared<bool>(false);
        const auto again = [this, mine, number, asked] {
            if (!*asked) {
                *asked = true;
                ask(mine, number);
            }
        };
        key.wakes.push_back([this, mine, asked, again] {
            in(mine->who, delay(), [this, mine, asked, again] {
                if (*asked) {
                    return;
                }
                emit(event("wake").word("proc", mine->who->name).word("key", key_name(mine->key)));
                in(mine->who, below(ms), again);
            });
        });
        in(mine->who, key.expires - now_ + below(20 * ms), again);
    }

    void granted(const std::shared_ptr<lease>& mine, std::int64_t number, std::int64_t sent) {
        mine->deadline = sent + ttl - ttl / 100 - 2 * ms;
        emit(call("acquire", "ok", number, *mine->who)
                 .word("key", key_name(mine->key))
                 .number("fence", mine->fence)
                 .number("sent_local_ns", sent)
                 .number("deadline_local_ns", mine->deadline));
        write(mine, "claim");
        in(mine->who, 5 * ms, [this, mine] { work(mine); });
    }

    /// The grant is there and its answer is not: the caller gives up, and undoes it.
    void lose_answer(const std::shared_ptr<lease>& mine, std::int64_t number) {
        in(mine->who, 20 * ms, [this, mine, number] {
            emit(call("acquire", "info", number, *mine->who).word("key", key_name(mine->key)));
            after(delay(), [this, mine] {
                end(*mine);
                in(mine->who, delay(), [this, mine] {
                    emit(event("settled")
                             .word("proc", mine->who->name)
                             .word("key", key_name(mine->key))
                             .word("holder", mine->holder));
                    round(mine->who);
                });
            });
        });
    }

    [[nodiscard]] bool holds(const lease& mine) const {
        return mine.who->local(now_) < mine.deadline;
    }

    void work(const std::shared_ptr<lease>& mine) {
        const bool held = holds(*mine);
        emit(event("held")
                 .word("proc", mine->who->name)
                 .number("local_ns", mine->who->local(now_))
                 .word("key", key_name(mine->key))
                 .number("fence", mine->fence)
                 .raw("held", held ? "true" : "false"));
        if (!held) {
            // Too late, as a process finds out that was paused: the target has to refuse it if
            // somebody else has been there.
            write(mine, "write");
            in(mine->who, 10 * ms, [this, mine] { round(mine->who); });
            return;
        }
        if (written_ < wanted_ * 2 / 3 && one_in(60)) {
            fail(mine);
        } else if (one_in(4)) {
            renew(mine);
        } else {
            constexpr std::array<const char*, 6> works{
                "write", "read", "increment", "count", "add", "members"};
            write(mine, works[static_cast<std::size_t>(below(6))]);
        }
        if (--mine->left > 0) {
            in(mine->who, 5 * ms + below(150 * ms), [this, mine] { work(mine); });
        } else {
            in(mine->who, 5 * ms, [this, mine] { release(mine); });
        }
    }

    void fail(const std::shared_ptr<lease>& mine) {
        if (one_in(3)) {
            mine->who->dead = true;
            emit(event("clock")
                     .word("proc", mine->who->name)
                     .number("local_ns", mine->who->local(now_)));
            emit(
                event("fault").word("ph", "at").word("name", "kill").word("proc", mine->who->name));
            new_process();
            return;
        }
        const auto number = ++faults_;
        const auto length = 100 * ms + below(2'000 * ms);
        mine->who->paused_until = now_ + length;
        ++paused_;
        emit(event("fault")
                 .word("ph", "begin")
                 .word("name", "pause")
                 .number("id", number)
                 .word("proc", mine->who->name));
        after(length, [this, mine, number] {
            --paused_;
            emit(event("fault")
                     .word("ph", "end")
                     .word("name", "pause")
                     .number("id", number)
                     .word("proc", mine->who->name));
        });
    }

    void renew(const std::shared_ptr<lease>& mine) {
        const auto number = calls_++;
        const auto sent = mine->who->local(now_);
        const auto sent_sim = now_;
        emit(call("renew", "inv", number, *mine->who)
                 .word("key", key_name(mine->key))
                 .number("fence", mine->fence)
                 .number("ttl_ns", ttl)
                 .number("sent_local_ns", sent));
        after(delay(), [this, mine, number, sent, sent_sim] {
            auto& key = store_[mine->key];
            const bool live = key.holder == mine->holder && now_ < key.expires;
            if (live) {
                key.expires = now_ + ttl;
                emit(event("prolong")
                         .number("store_ns", now_ + store_ahead)
                         .word("key", key_name(mine->key))
                         .word("holder", mine->holder)
                         .number("fence", mine->fence)
                         .number("ttl_ns", ttl)
                         .number("store_expires_ns", key.expires + store_ahead)
                         .number("sent_sim_ns", sent_sim));
            } else {
                refuse(*mine, "renew");
            }
            const bool lost = one_in(10);
            in(mine->who, delay(), [this, mine, number, sent, live, lost] {
                if (lost) {
                    emit(
                        call("renew", "info", number, *mine->who).word("key", key_name(mine->key)));
                    return;
                }
                auto end = call("renew", live ? "ok" : "fail", number, *mine->who);
                end.word("key", key_name(mine->key));
                if (!live) {
                    mine->deadline = mine->who->local(now_);
                    end.word("error", "not_held");
                } else if (holds(*mine)) {
                    mine->deadline = std::max(mine->deadline, sent + ttl - ttl / 100 - 2 * ms);
                    end.number("deadline_local_ns", mine->deadline);
                }
                emit(end);
            });
        });
    }

    void refuse(const lease& mine, const char* verb) {
        emit(event("refuse")
                 .number("store_ns", now_ + store_ahead)
                 .word("key", key_name(mine.key))
                 .word("holder", mine.holder)
                 .word("verb", verb)
                 .word("answer", "not_held"));
    }

    /// Whether there was something to end.
    bool end(const lease& mine) {
        auto& key = store_[mine.key];
        if (key.holder != mine.holder || now_ >= key.expires) {
            refuse(mine, "release");
            return false;
        }
        key.holder.clear();
        emit(event("end")
                 .number("store_ns", now_ + store_ahead)
                 .word("key", key_name(mine.key))
                 .word("holder", mine.holder)
                 .number("fence", mine.fence)
                 .word("why", "released"));
        for (const auto& wake : std::exchange(key.wakes, {})) {
            wake();
        }
        return true;
    }

    void release(const std::shared_ptr<lease>& mine) {
        const auto number = calls_++;
        emit(call("release", "inv", number, *mine->who)
                 .word("key", key_name(mine->key))
                 .number("fence", mine->fence));
        mine->deadline = 0;
        after(delay(), [this, mine, number] {
            const bool ended = end(*mine);
            in(mine->who, delay(), [this, mine, number, ended] {
                auto told = call("release", ended ? "ok" : "fail", number, *mine->who);
                told.word("key", key_name(mine->key));
                if (!ended) {
                    told.word("error", "not_held");
                }
                emit(told);
                in(mine->who, 5 * ms + below(50 * ms), [this, mine] { round(mine->who); });
            });
        });
    }

    // --- the targets -----------------------------------------------------------------------------

    void write(const std::shared_ptr<lease>& mine, const std::string& op) {
        const auto number = calls_++;
        const auto value = std::to_string(number);
        const bool fenced = op != "read" && op != "count" && op != "members";
        const auto key = target_name(op, mine->key);
        auto asked = call(op, "inv", number, *mine->who);
        asked.word("key", key);
        if (fenced) {
            asked.number("fence", mine->fence);
        }
        if (op == "write" || op == "add") {
            asked.raw("value", op == "add" ? std::to_string(number % 20) : value);
        }
        emit(asked);
        after(delay(), [this, mine, op, number, value, fenced, key] {
            auto& row = rows_[mine->key];
            const bool stale = fenced && mine->fence < row.largest;
            std::string answer;
            if (!stale && fenced) {
                row.largest = mine->fence;
            }
            if (op == "write" && !stale) {
                row.value = value;
            } else if (op == "increment" && !stale) {
                ++row.count;
            } else if (op == "add" && !stale) {
                // Few different ones, so that the lines stay short.
                const auto member = std::to_string(number % 20);
                if (std::find(row.members.begin(), row.members.end(), member) ==
                    row.members.end()) {
                    row.members.push_back(member);
                }
            } else if (op == "read") {
                answer = row.value;
            } else if (op == "count") {
                answer = std::to_string(row.count);
            } else if (op == "members") {
                answer = "[";
                for (const auto& member : row.members) {
                    answer += (answer.size() > 1 ? "," : "") + member;
                }
                answer += "]";
            }
            const bool lost = one_in(15) && fenced;
            in(mine->who, delay(), [this, mine, op, number, key, stale, answer, lost] {
                auto told = call(op, lost ? "info" : stale ? "fail" : "ok", number, *mine->who);
                told.word("key", key);
                if (!lost && stale) {
                    told.word("error", "stale");
                } else if (!answer.empty()) {
                    told.raw(op == "members" ? "values" : "value", answer);
                }
                emit(told);
            });
        });
    }

    std::mt19937_64 random_;
    std::size_t wanted_;
    std::size_t written_ = 0;
    std::string text_;
    std::uint64_t seq_ = 0;
    std::int64_t now_ = 0;
    std::multimap<std::int64_t, std::function<void()>> todo_;
    std::int64_t calls_ = 1;
    std::int64_t faults_ = 0;
    int paused_ = 0;
    bool healed_ = false;
    int next_name_ = 0;
    int next_holder_ = 0;
    std::map<int, stored> store_;
    std::map<int, target> rows_;
};

}  // namespace

std::string sound_history(std::uint64_t seed, std::size_t events) {
    return world{seed, events}.run();
}

}  // namespace dibs_checker::testing
