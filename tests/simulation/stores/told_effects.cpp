// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/told_effects.hpp"

#include <algorithm>
#include <string>
#include <variant>

namespace dibs::simulation {

namespace {

core::holder_id holder_of(const core::verb& what) {
    return std::visit(
        [](const auto& asked) {
            if constexpr (requires { asked.holder; }) {
                return asked.holder;
            } else {
                return core::holder_id{};
            }
        },
        what);
}

bool is_same(const core::verb& one, const core::verb& other) {
    return one.index() == other.index() && core::key_of(one) == core::key_of(other) &&
           holder_of(one) == holder_of(other);
}

bool changes(core::verdict what) {
    return what == core::verdict::granted || what == core::verdict::renewed ||
           what == core::verdict::released || what == core::verdict::finished ||
           what == core::verdict::revoked || what == core::verdict::block_set;
}

}  // namespace

void told_effects::told(const std::vector<core::entry>& batch,
                        const std::vector<core::answer>& given) {
    for (std::size_t at = 0; at < batch.size(); ++at) {
        const auto& what = batch[at].what;
        const auto& answer = given.at(at);
        const auto any = [&](auto fits) {
            return std::any_of(done_.begin(), done_.end(), [&](const auto& one) {
                return is_same(one.first, what) && fits(one.second);
            });
        };
        if (answer.took == core::effect::no &&
            any([](const core::answer& really) { return changes(really.what); })) {
            laws_.breached("a step on " + core::key_of(what) +
                           " took effect and was told as surely not carried out");
        }
        if (answer.took == core::effect::yes &&
            !any([&](const core::answer& really) { return really.what == answer.what; })) {
            laws_.breached("a step on " + core::key_of(what) + " was answered by what is not so");
        }
    }
    done_.clear();
}

}  // namespace dibs::simulation
