// SPDX-License-Identifier: Apache-2.0
#include "recipes/several_keys.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <system_error>
#include <utility>

namespace dibs::recipes {

using core::instant;
using core::milliseconds;
using core::nanoseconds;

namespace {

/// The last key gets a try also when those before it have taken all the time.
constexpr nanoseconds shortest_try = milliseconds{10};

/// Whether whoever waits goes on: a disk is cleared, a server comes back. What a try in doubt may have
/// been granted is given back by then, or soon after.
bool may_pass(const std::error_code& why) noexcept {
    return !why || why == condition::retryable || why == condition::outcome_unknown;
}

instant later(instant from, nanoseconds by) noexcept {
    return by >= instant::max() - from ? instant::max() : from + by;
}

}  // namespace

std::shared_ptr<several_keys> several_keys::start(core::environment env,
                                                  mutex& keys,
                                                  std::vector<std::string> names,
                                                  mutex_terms terms,
                                                  completion done,
                                                  std::shared_ptr<lease_witness> witness) {
    auto made = std::make_shared<several_keys>(
        env, keys, std::move(names), std::move(terms), std::move(done), std::move(witness));
    made->ask_for_all();
    return made;
}

several_keys::several_keys(core::environment env,
                           mutex& keys,
                           std::vector<std::string> names,
                           mutex_terms terms,
                           completion done,
                           std::shared_ptr<lease_witness> witness)
    : env_(env),
      mutex_(keys),
      names_(std::move(names)),
      terms_(std::move(terms)),
      done_(std::move(done)),
      witness_(std::move(witness)) {
    std::sort(names_.begin(), names_.end());
    const auto now = env_.time.now();
    wait_until_ = later(now, terms_.wait);
    end_ = later(now, std::max(terms_.wait, terms_.timeout));
}

void several_keys::ask_for_all() {
    tries_.resize(names_.size());
    calls_.resize(names_.size());
    under_way_ = names_.size();
    auto terms = terms_;
    terms.wait = nanoseconds::zero();
    terms.patient_until = wait_until_;
    for (std::size_t place = 0; place < names_.size(); ++place) {
        if (witness_) {
            witness_->asked(names_[place], terms);
        }
        calls_[place] = mutex_.acquire(
            names_[place], terms, [self = shared_from_this(), place](mutex_outcome&& ended) {
                self->tried(place, std::move(ended));
            });
    }
}

void several_keys::tried(std::size_t place, mutex_outcome&& ended) {
    calls_[place].reset();
    if (witness_) {
        witness_->told(names_[place], ended);
    }
    tries_[place] = std::move(ended);
    if (--under_way_ == 0) {
        all_were_tried();
    }
}

void several_keys::all_were_tried() {
    auto tries = std::exchange(tries_, {});
    const auto refused = std::find_if(
        tries.begin(), tries.end(), [](const auto& one) { return one.lease == nullptr; });
    for (auto one = tries.begin(); one != refused; ++one) {
        leases_.push_back(std::move(one->lease));
    }
    std::vector<lease_ptr> behind;
    for (auto one = refused; one != tries.end(); ++one) {
        if (one->lease) {
            behind.push_back(std::move(one->lease));
        }
    }
    give_back(std::move(behind));
    if (refused == tries.end()) {
        all_held() ? succeed() : begin_anew();
    } else if (cancelled_ || !may_pass(refused->error) || env_.time.now() >= wait_until_) {
        fail(names_[static_cast<std::size_t>(refused - tries.begin())], std::move(*refused));
    } else {
        ask_for_next();
    }
}

void several_keys::ask_for_next() {
    const auto now = env_.time.now();
    auto terms = terms_;
    if (wait_until_ != instant::max()) {
        terms.wait = std::max(wait_until_ - now, nanoseconds::zero());
    }
    if (end_ != instant::max()) {
        terms.timeout =
            std::clamp(end_ - now, shortest_try, std::max(terms_.timeout, shortest_try));
    }
    const auto place = leases_.size();
    if (witness_) {
        witness_->asked(names_[place], terms);
    }
    calls_[place] = mutex_.acquire(
        names_[place], std::move(terms), [self = shared_from_this()](mutex_outcome&& ended) {
            self->answered(std::move(ended));
        });
}

void several_keys::answered(mutex_outcome&& ended) {
    calls_[leases_.size()].reset();
    if (witness_) {
        witness_->told(names_[leases_.size()], ended);
    }
    if (!ended.lease) {
        fail(names_[leases_.size()], std::move(ended));
        return;
    }
    leases_.push_back(std::move(ended.lease));
    if (!all_held()) {
        begin_anew();
    } else if (leases_.size() < names_.size()) {
        ask_for_next();
    } else {
        succeed();
    }
}

void several_keys::succeed() {
    several_outcome told;
    told.leases = std::move(leases_);
    std::exchange(done_, completion{})(std::move(told));
}

bool several_keys::all_held() const {
    const auto now = env_.time.now();
    return std::all_of(
        leases_.begin(), leases_.end(), [&](const auto& one) { return one->held(now); });
}

/// One of those taken first was lost while this waited for another one.
void several_keys::begin_anew() {
    const auto now = env_.time.now();
    if (now < wait_until_) {
        give_back(std::exchange(leases_, {}));
        ask_for_next();
        return;
    }
    const auto lost = std::find_if(
        leases_.begin(), leases_.end(), [&](const auto& one) { return !one->held(now); });
    mutex_outcome why;
    why.error = errc::timed_out;
    why.detail = "its lease was lost while another key was waited for";
    fail(names_[static_cast<std::size_t>(lost - leases_.begin())], std::move(why));
}

void several_keys::fail(const std::string& key, mutex_outcome&& why) {
    several_outcome told;
    told.key = key;
    told.last = std::move(why);
    give_back(std::exchange(leases_, {}));
    std::exchange(done_, completion{})(std::move(told));
}

/// The last one first: whoever waits for the first one holds none of the others.
void several_keys::give_back(std::vector<lease_ptr> taken) {
    for (auto one = taken.rbegin(); one != taken.rend(); ++one) {
        mutex::release_completion told = [](release_reply) {};
        if (witness_) {
            told = witness_->gives_back(**one);
        }
        mutex_.release(*one, std::move(told));
    }
}

void several_keys::cancel() {
    cancelled_ = true;
    const auto under_way = calls_;
    for (const auto& one : under_way) {
        if (one) {
            mutex_.cancel(one);
        }
    }
}

}  // namespace dibs::recipes
