// SPDX-License-Identifier: Apache-2.0
#include "store/redis/requests.hpp"

#include "core/key.hpp"
#include "store/redis/refusals.hpp"
#include "store/redis/script.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

namespace dibs::store::redis {

namespace {

/// A server whose scripts are flushed all the time is sent the text at the second try.
constexpr unsigned tries_max = 4;

/// What a look at the whole key space asks for at a time.
constexpr std::int64_t scan_count = 1000;

}  // namespace

// --- batches -------------------------------------------------------------------------------------

std::unique_ptr<batch_request> batch_request::make(std::shared_ptr<const speaker> self,
                                                   std::vector<core::entry> entries,
                                                   batch_completion done) {
    auto job = std::make_shared<batch_job>(std::move(entries), std::move(done));
    std::vector<std::uint32_t> all(job->entries.size());
    std::iota(all.begin(), all.end(), 0U);
    std::vector<std::uint32_t> sound;
    for (const auto at : all) {
        if (auto fault = redis::fault_of(job->entries[at].what)) {
            job->settle(at, std::move(*fault));
        } else {
            sound.push_back(at);
        }
    }
    return std::make_unique<batch_request>(std::move(self), std::move(job), std::move(sound));
}

batch_request::batch_request(std::shared_ptr<const speaker> self,
                             std::shared_ptr<batch_job> job,
                             std::vector<std::uint32_t> which)
    : self_(std::move(self)),
      job_(std::move(job)),
      which_(order_of(job_->entries, which)),
      deadline_(job_->deadline_of(which_)) {
    for (const auto at : which_) {
        const auto* asked = std::get_if<core::acquire>(&job_->entries[at].what);
        leaves_word_ = leaves_word_ || (asked != nullptr && asked->notify);
        bytes_to_keep_ += redis::bytes_to_keep(job_->entries[at].what);
    }
}

bool batch_request::write(std::string& out, core::instant now, outcome told) {
    std::erase_if(which_, [&](std::uint32_t at) {
        if (job_->entries[at].deadline > now) {
            return false;
        }
        job_->settle(at, core::refused(errc::timed_out, "not begun before its deadline"));
        return true;
    });
    if (which_.empty()) {
        job_->tell_if_all(told.letters);
        return false;
    }
    ++tries_;
    write_batch(out,
                tries_ == 1 ? send_as::name : send_as::text,
                self_->where,
                self_->self,
                job_->entries,
                which_);
    return true;
}

bool batch_request::answered(const reply& told, outcome after) {
    const auto& head = told.front();
    if (head.what == kind::error) {
        if (head.text.starts_with("NOSCRIPT") && tries_ < tries_max) {
            return false;
        }
        const bool of_one_key = head.text.starts_with("NOPERM");
        if (of_one_key && which_.size() > 1) {
            // The server refuses all for one. Each for itself, then.
            for (const auto at : which_) {
                after.next.push_back(
                    std::make_unique<batch_request>(self_, job_, std::vector<std::uint32_t>{at}));
            }
            return true;
        }
        const bool wrote = !surely_not_executed(head.text);
        for (const auto at : which_) {
            job_->settle(at, answer_to_error(head.text, wrote));
        }
    } else if (read_batch(told, self_->self, job_->entries, which_, job_->replies)) {
        job_->settled(which_.size());
    } else {
        for (const auto at : which_) {
            job_->settle(at, core::in_doubt("the server's answer is not one of our script"));
        }
    }
    job_->tell_if_all(after.letters);
    return true;
}

void batch_request::refused(const trouble& why, outcome told) {
    for (const auto at : which_) {
        job_->settle(at, core::refused(why.error, why.detail));
    }
    job_->tell_if_all(told.letters);
}

void batch_request::lost(const trouble& why, outcome told) {
    for (const auto at : which_) {
        job_->settle(at, core::in_doubt(why.detail));
    }
    job_->tell_if_all(told.letters);
}

// --- commands ------------------------------------------------------------------------------------

bool command_request::write(std::string& out, core::instant now, outcome told) {
    if (deadline_ <= now) {
        heard_(nullptr, {errc::timed_out, "not begun before its deadline"}, told);
        return false;
    }
    out += bytes_;
    return true;
}

bool command_request::answered(const reply& told, outcome after) {
    heard_(&told, {}, after);
    return true;
}

// --- listings ------------------------------------------------------------------------------------

namespace {

struct listing_state : std::enable_shared_from_this<listing_state> {
    std::shared_ptr<const speaker> self;
    remote::listing wanted;
    core::instant deadline{};
    /// The smallest ones: one more than are wanted, and the one that was asked for by name.
    std::set<std::string> keys;
    std::vector<std::string> asked;
    core::page page;

    void fail(const trouble& why, request::outcome told) {
        page = {};
        page.error = why.error;
        page.detail = why.detail;
        tell(told);
    }
    void tell(request::outcome told) {
        told.letters.push_back([done = std::move(wanted.done), page = std::move(page)]() mutable {
            done(std::move(page));
        });
    }
    /// The reply, when it is one of no error; else the listing is over.
    bool sound(const reply* told, const trouble& why, request::outcome after) {
        if (told == nullptr) {
            fail(why, after);
            return false;
        }
        if (told->front().what == kind::error) {
            const auto refusal = answer_to_error(told->front().text, false);
            fail({refusal.error, refusal.detail}, after);
            return false;
        }
        return true;
    }
    void note(std::string_view name) {
        auto key = self->where.key_of_rest(name);
        if (!key) {
            key = self->where.key_of_lock(name);
        }
        if (!key || !key->starts_with(wanted.prefix) || *key <= wanted.after) {
            return;
        }
        keys.insert(std::move(*key));
        if (keys.size() > wanted.limit + 2) {
            keys.erase(std::prev(keys.end()));
        }
    }

    template <typename Hearing>
    std::unique_ptr<request> command(std::string bytes, Hearing heard) {
        return std::make_unique<command_request>(
            std::move(bytes),
            deadline,
            [state = shared_from_this(), heard](
                const reply* told, const trouble& why, request::outcome after) {
                if (state->sound(told, why, after)) {
                    heard(*state, *told, after);
                }
            });
    }

    std::unique_ptr<request> scan(std::string_view cursor) {
        std::string bytes;
        write_command(bytes,
                      {"EVAL",
                       scan_script_text(),
                       "0",
                       cursor,
                       self->where.pattern(wanted.prefix),
                       self->where.lock(wanted.prefix),
                       std::to_string(scan_count)});
        return command(std::move(bytes),
                       [](listing_state& state, const reply& told, request::outcome after) {
                           state.heard_scan(told, after);
                       });
    }
    void heard_scan(const reply& told, request::outcome after) {
        if (told.size() < 2 || told[0].children + 1 != told.size()) {
            fail({errc::store_refused, "the server's answer to SCAN is none"}, after);
            return;
        }
        for (std::size_t at = 2; at < told.size(); ++at) {
            note(told[at].text);
        }
        if (told[1].text != "0") {
            after.next.push_back(scan(told[1].text));
            return;
        }
        // Keys that nobody holds any more, and that somebody still waits for.
        std::string bytes;
        write_command(bytes, {"PUBSUB", "CHANNELS", self->where.pattern_of_rests(wanted.prefix)});
        after.next.push_back(
            command(std::move(bytes),
                    [](listing_state& state, const reply& channels, request::outcome following) {
                        for (std::size_t at = 1; at < channels.size(); ++at) {
                            state.note(channels[at].text);
                        }
                        state.look_on(following);
                    }));
    }

    void look_on(request::outcome after) {
        asked.clear();
        while (asked.size() < max_batch_entries && !keys.empty() &&
               page.records.size() + asked.size() < wanted.limit) {
            asked.push_back(std::move(keys.extract(keys.begin()).value()));
        }
        if (asked.empty()) {
            page.more = !keys.empty();
            tell(after);
            return;
        }
        ask(send_as::name, after);
    }
    void ask(send_as how, request::outcome after) {
        std::string bytes;
        write_looks(bytes, how, self->where, self->self, asked);
        after.next.push_back(std::make_unique<command_request>(
            std::move(bytes),
            deadline,
            [state = shared_from_this(), how](
                const reply* told, const trouble& why, request::outcome following) {
                const bool forgotten = told != nullptr && told->front().what == kind::error &&
                                       told->front().text.starts_with("NOSCRIPT");
                if (forgotten && how == send_as::name) {
                    state->ask(send_as::text, following);
                } else if (state->sound(told, why, following)) {
                    state->heard_looks(*told, following);
                }
            }));
    }
    /// What cannot be read is left out of a listing. Whoever asks for that one key is told why, since no record means that
    /// the key is free.
    [[nodiscard]] const node* fault_of_the_one_asked_for(const reply& told) const {
        constexpr std::size_t parts_at = 3;  // after the array, the time, and the array of this key
        const bool one = wanted.limit == 1 && asked.size() == 1 && asked.front() == wanted.prefix;
        return one && told.size() > parts_at + 1 && told[parts_at - 1].children > 1 &&
                       told[parts_at].text == "e"
                   ? &told[parts_at + 1]
                   : nullptr;
    }
    void heard_looks(const reply& told, request::outcome after) {
        if (const auto* fault = fault_of_the_one_asked_for(told)) {
            const auto refusal = answer_to_error(fault->text, false);
            fail({refusal.error, refusal.detail}, after);
            return;
        }
        if (!read_looks(told, self->self, asked, page.records)) {
            fail({errc::store_refused, "the server's answer is not one of our script"}, after);
            return;
        }
        look_on(after);
    }
};

}  // namespace

std::unique_ptr<request> begin_listing(std::shared_ptr<const speaker> self,
                                       remote::listing wanted,
                                       core::instant deadline) {
    const auto state = std::make_shared<listing_state>();
    // Of other programs' locks there is nothing but the lock. Whoever asks for one by name sees it.
    if (core::fault_of_key(wanted.prefix).empty() && names::fault_of(wanted.prefix).empty() &&
        wanted.prefix > wanted.after) {
        state->keys.insert(wanted.prefix);
    }
    state->self = std::move(self);
    state->wanted = std::move(wanted);
    state->deadline = deadline;
    return state->scan("0");
}

}  // namespace dibs::store::redis
