// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the events of one key to operations of a model, and back to an excerpt.

#include "checker/search/models.hpp"
#include "checker/search/search.hpp"
#include "checker/search/shrink.hpp"
#include "checker/subject.hpp"

#include <map>
#include <vector>

namespace dibs_checker {

/// An operation and the events that it stems from.
template <class Model>
struct traced {
    operation<Model> op;
    position begin = nowhere;
    position end = nowhere;
};

[[nodiscard]] std::map<text_id, std::vector<traced<fenced_register>>> registers_in(
    const history& of);

/// Keys with shared grants are left out: this model has one holder.
[[nodiscard]] std::map<text_id, std::vector<traced<fenced_mutex>>> mutexes_in(const subject& of);

/// Takes away what can be spared without making the rest fail for another reason.
void shrink(shrinker<fenced_register>& what);
void shrink(shrinker<fenced_mutex>& what);

}  // namespace dibs_checker
