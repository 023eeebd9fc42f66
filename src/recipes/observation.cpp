// SPDX-License-Identifier: Apache-2.0
#include "recipes/observation.hpp"

#include <algorithm>
#include <utility>

namespace dibs::recipes {

observation::observation(core::environment env,
                         store::store& through,
                         std::string key,
                         core::nanoseconds every,
                         told tell)
    : env_(env),
      store_(through),
      key_(std::move(key)),
      every_(every),
      tell_(std::move(tell)),
      alarm_([this] { look(); }) {}

std::shared_ptr<observation> observation::start(core::environment env,
                                                store::store& through,
                                                std::string key,
                                                core::nanoseconds every,
                                                told tell) {
    auto made = std::make_shared<observation>(env, through, std::move(key), every, std::move(tell));
    made->me_ = made;
    made->look();
    return made;
}

void observation::stop() {
    stopped_ = true;
    env_.time.disarm(alarm_);
}

void observation::look() {
    store_.list(key_, {}, 1, [me = me_](core::page page) {
        if (const auto self = me.lock(); self && !self->stopped_) {
            self->found(page);
        }
    });
}

void observation::found(const core::page& page) {
    if (!page.error) {
        leader_seen now;
        if (!page.records.empty() && page.records.front().key == key_) {
            const auto& record = page.records.front();
            now.term = record.fence;
            if (!record.holders.empty()) {
                now.who = record.holders.front();
                now.term = now.who->fences.first;
            }
        }
        const bool older = last_ && now.term < last_->term;
        const bool news = !last_ || now.who.has_value() != last_->who.has_value() ||
                          (now.who && now.term > last_->term);
        if (news && !(older && now.who)) {
            // A store forgets what is free.
            now.term = std::max(now.term, last_ ? last_->term : 0);
            last_ = std::move(now);
            const auto shown = *last_;
            tell_(shown);
        }
    }
    if (!stopped_) {
        env_.time.arm(alarm_, env_.time.now() + every_);
    }
}

}  // namespace dibs::recipes
