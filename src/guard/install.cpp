// SPDX-License-Identifier: Apache-2.0
#include "guard/install.hpp"

#include "guard/script.hpp"
#include "guard/session.hpp"
#include "guard/talk.hpp"

namespace dibs::guard {

void install(const std::string& url, const std::string& schema) {
    run_script(session(url).raw(), script(schema));
}

}  // namespace dibs::guard
