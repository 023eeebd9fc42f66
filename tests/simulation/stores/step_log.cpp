// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/step_log.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace dibs::simulation {

namespace {

struct describe_refusal {
    recorder& history;
    const core::answer& given;

    void operator()(const core::acquire& asked) const { write(asked.key, asked.holder, "acquire"); }
    void operator()(const core::renew& asked) const { write(asked.key, asked.holder, "renew"); }
    void operator()(const core::release& asked) const { write(asked.key, asked.holder, "release"); }
    void operator()(const core::revoke&) const {}
    void operator()(const core::block&) const {}

    void write(const std::string& key, const core::holder_id& holder, std::string_view verb) const {
        std::string_view answer = "refused";
        switch (given.what) {
            case core::verdict::held:
                answer = "held";
                break;
            case core::verdict::not_held:
                answer = "not_held";
                break;
            case core::verdict::done:
                answer = "done";
                break;
            case core::verdict::too_late:
                answer = "too_late";
                break;
            case core::verdict::blocked:
                answer = "blocked";
                break;
            case core::verdict::not_ready:
                answer = "not_ready";
                break;
            default:
                break;
        }
        history.event("refuse")
            .time("store_ns", given.now.lease)
            .text("key", key)
            .holder("holder", holder)
            .text("verb", verb)
            .text("answer", answer);
    }
};

}  // namespace

void step_log::carried_out(const core::verb& what, const core::answer& given, origin from) {
    if (given.took == core::effect::yes) {
        order_.carried_out(what, given, from.process);
    }
    const auto now = given.now.lease;
    const auto* asked = std::get_if<core::acquire>(&what);
    const auto* renewal = std::get_if<core::renew>(&what);
    const bool adopted = renewal != nullptr && renewal->adopt &&
                         renewal->adopt->holder != renewal->holder &&
                         given.what == core::verdict::renewed;
    if (given.took != core::effect::yes) {
        return;
    }
    if (is_ghost(what, given)) {
        if (adopted) {
            adopted_ghost(*renewal, given, from);
        }
        return;
    }
    const auto* release = std::get_if<core::release>(&what);
    tell_of_result(what, given);
    if (asked != nullptr && given.what == core::verdict::granted) {
        auto told = history_.event("grant");
        told.time("store_ns", now)
            .text("key", asked->key)
            .holder("holder", asked->holder)
            .number("fence", given.fences.first)
            .time("ttl_ns", core::nanoseconds{asked->ttl})
            .time("store_expires_ns", given.expires);
        if (given.fences.last != given.fences.first) {
            told.number("fence_last", given.fences.last);
        }
        if (asked->part.capacity == 1) {
            laws_.granted(asked->key, asked->holder, given.fences, now, given.expires);
        } else {
            // Who shares it with whom is for the checker.
            told.number("weight", asked->part.weight).number("capacity", asked->part.capacity);
            laws_.granted_a_share();
        }
        note(asked->holder,
             {asked->key,
              given.fences.first,
              given.expires,
              from.process,
              asked->attached == core::attachment::attached,
              !asked->part.exclusive()});
    } else if (renewal != nullptr && given.what == core::verdict::renewed) {
        auto is = open_[renewal->holder];
        auto told = history_.event("prolong");
        told.time("store_ns", now)
            .text("key", renewal->key)
            .holder("holder", renewal->holder)
            .number("fence", adopted ? is.fence : given.fences.first)
            .time("ttl_ns", core::nanoseconds{renewal->ttl})
            .time("store_expires_ns", given.expires)
            .time("sent_sim_ns", from.sent);
        if (adopted || given.fences.last != given.fences.first) {
            told.number("fence_last", given.fences.last);
        }
        const auto& after = renewal->adopt ? renewal->adopt->holder : renewal->holder;
        if (adopted) {
            told.holder("new_holder", after);
            over_.insert(renewal->holder);
        }
        if (!is.shared) {
            laws_.prolonged(renewal->key, renewal->holder, after, given.fences, now, given.expires);
        }
        is.key = renewal->key;
        is.fence = given.fences.first;
        is.expires = given.expires;
        if (renewal->adopt) {
            open_.erase(renewal->holder);
            is.process = from.process;
            is.attached = renewal->adopt->attached == core::attachment::attached;
        }
        note(after, std::move(is));
    } else if (release != nullptr &&
               (given.what == core::verdict::released || given.what == core::verdict::finished)) {
        ended(release->holder, now, "released");
    } else if (const auto* ending = std::get_if<core::revoke>(&what)) {
        if (given.what == core::verdict::revoked) {
            revoked(*ending, now);
        }
    } else if (const auto* hold = std::get_if<core::block>(&what)) {
        blocked(hold->key, now, hold->duration);
    } else {
        std::visit(describe_refusal{history_, given}, what);
    }
}

void step_log::tell_of_result(const core::verb& what, const core::answer& given) {
    if (!laws_.on_result) {
        return;
    }
    const auto* asked = std::get_if<core::acquire>(&what);
    const auto* release = std::get_if<core::release>(&what);
    if (asked != nullptr && asked->mark && given.what == core::verdict::granted) {
        laws_.on_result(asked->key, asked->mark->value);
    } else if (release != nullptr && release->result && given.what == core::verdict::finished) {
        laws_.on_result(release->key, release->result->value);
    }
}

void step_log::revoked(const core::revoke& asked, core::store_instant now) {
    // The block of a grant begins with its fence.
    const open_grant* found = nullptr;
    core::holder_id holder;
    for (const auto& [who, is] : open_) {
        if (is.key == asked.key && is.fence <= asked.fence &&
            (found == nullptr || found->fence < is.fence)) {
            found = &is;
            holder = who;
        }
    }
    if (found != nullptr) {
        ended(holder, now, "revoked");
    }
}

void step_log::blocked(const std::string& key,
                       core::store_instant now,
                       core::microseconds duration) {
    const bool lifted = duration == core::microseconds::zero();
    // What was lifted is over by any clock, also by one that begins anew.
    history_.event("block")
        .time("store_ns", now)
        .text("key", key)
        .time("store_expires_ns", lifted ? core::store_instant{} : now + duration);
    if (lifted) {
        holds_.erase(key);
    } else {
        holds_.insert(key);
    }
}

/// A grant that an older copy brought back passes into new hands: to everybody but the store it is a
/// new one.
void step_log::adopted_ghost(const core::renew& asked, const core::answer& given, origin from) {
    const auto& holder = asked.adopt->holder;
    const auto now = given.now.lease;
    history_.event("grant")
        .time("store_ns", now)
        .text("key", asked.key)
        .holder("holder", holder)
        .number("fence", given.fences.first)
        .time("ttl_ns", core::nanoseconds{asked.ttl})
        .time("store_expires_ns", given.expires);
    laws_.granted(asked.key, holder, given.fences, now, given.expires);
    ghosts_.erase(asked.holder);
    note(holder,
         {asked.key,
          given.fences.first,
          given.expires,
          from.process,
          asked.adopt->attached == core::attachment::attached});
}

void step_log::note(const core::holder_id& holder, open_grant is) {
    open_[holder] = std::move(is);
    over_.erase(holder);
    ghosts_.erase(holder);
}

/// Whether the store still knows a hold is not looked at: from here on the history counts on none.
void step_log::forget_holds(core::store_instant now) {
    while (!holds_.empty()) {
        blocked(std::string{*holds_.begin()}, now, {});
    }
}

void step_log::ended(const core::holder_id& holder, core::store_instant now, std::string_view why) {
    const auto at = open_.find(holder);
    if (at == open_.end()) {
        return;
    }
    history_.event("end")
        .time("store_ns", now)
        .text("key", at->second.key)
        .holder("holder", holder)
        .number("fence", at->second.fence)
        .text("why", why);
    laws_.ended(at->second.key, holder);
    over_.insert(holder);
    open_.erase(at);
}

void step_log::process_ended(std::uint64_t process, core::store_instant now) {
    order_.process_ended(process);
    std::vector<core::holder_id> theirs;
    for (const auto& [holder, is] : open_) {
        if (is.process == process && is.attached && now < is.expires) {
            theirs.push_back(holder);
        }
    }
    for (const auto& one : theirs) {
        ended(one, now, "died");
    }
}

void step_log::all_ended(core::store_instant now) {
    order_.forget();
    forget_holds(now);
    // Those that have expired, too: by a clock that begins anew they would live again.
    while (!open_.empty()) {
        ended(core::holder_id{open_.begin()->first}, now, "died");
    }
}

/// An older copy may know a grant that has ended since. Nobody gave it again, and whatever becomes
/// of it is no step of its holder's: the history has no word for it. Once it is over, its holder can
/// be granted the key anew by a call that is still under way.
bool step_log::is_ghost(const core::verb& what, const core::answer& given) const {
    const auto asked_by = [](const auto& asked) {
        if constexpr (requires { asked.holder; }) {
            return asked.holder;
        } else {
            return core::holder_id{};
        }
    };
    if (ghosts_.empty()) {
        return false;
    }
    const auto at = ghosts_.find(std::visit(asked_by, what));
    return at != ghosts_.end() &&
           (given.what != core::verdict::granted || given.fences.first == at->second);
}

namespace {

/// The same grant, as far as it is alive there; null: it is not.
const core::grant* live_in(const core::record& kept, const core::grant& one, core::store_now now) {
    const auto same =
        std::find_if(kept.grants.begin(), kept.grants.end(), [&](const core::grant& other) {
            return other.holder == one.holder && other.fences.first == one.fences.first &&
                   other.live(now);
        });
    return same == kept.grants.end() ? nullptr : &*same;
}

}  // namespace

void step_log::replaced(const std::map<std::string, core::record>& before,
                        const std::map<std::string, core::record>& after,
                        core::store_now now) {
    order_.forget();
    forget_holds(now.lease);
    const core::record nothing;
    for (const auto& [key, kept] : before) {
        const auto at = after.find(key);
        compare(key, kept, at == after.end() ? nothing : at->second, now);
    }
    for (const auto& [key, kept] : after) {
        const auto at = before.find(key);
        for (const auto& one : kept.grants) {
            if (!one.live(now)) {
                continue;
            }
            if (over_.contains(one.holder)) {
                ghosts_[one.holder] = one.fences.first;
            } else if (at == before.end() || live_in(at->second, one, now) == nullptr) {
                copied(key, one, now);  // it had expired, and the copy knows an earlier renewal
            }
        }
    }
}

void step_log::compare(const std::string& key,
                       const core::record& before,
                       const core::record& after,
                       core::store_now now) {
    for (const auto& one : before.grants) {
        if (!one.live(now) || over_.contains(one.holder)) {
            continue;
        }
        const auto* same = live_in(after, one, now);
        if (same == nullptr) {
            ended(one.holder, now.lease, "lost");
        } else if (same->expires != one.expires) {
            copied(key, *same, now);
        }
    }
}

void step_log::copied(const std::string& key, const core::grant& one, core::store_now now) {
    history_.event("prolong")
        .time("store_ns", now.lease)
        .text("key", key)
        .holder("holder", one.holder)
        .number("fence", one.fences.first)
        .time("ttl_ns", core::nanoseconds{one.expires - now.lease})
        .time("store_expires_ns", one.expires)
        .text("why", "copy");
}

void step_log::woken(const std::string& key, std::uint64_t process, core::store_instant now) {
    order_.woken(key, process, now);
}

void step_log::clock(core::store_instant now) {
    history_.event("clock").time("store_ns", now);
}

}  // namespace dibs::simulation
