// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sees what becomes of the leases that a recipe takes on its way, which its outcome alone does not tell: they may be taken,
// and given back, several times. For whoever writes a history; a recipe behaves the same with one and without.

#include "recipes/mutex.hpp"

#include <string>

namespace dibs::recipes {

class lease_witness {
  public:
    virtual ~lease_witness() = default;
    /// Each is followed by one `told`.
    virtual void asked(const std::string& key, const mutex_terms& terms) = 0;
    virtual void told(const std::string& key, const mutex_outcome& outcome) = 0;
    /// Not of one that is handed to the caller. What is returned hears how that ended.
    virtual mutex::release_completion gives_back(const core::lease_state& lease) = 0;
};

}  // namespace dibs::recipes
