// SPDX-License-Identifier: Apache-2.0
#include "checker/subject.hpp"

namespace dibs_checker {

subject::subject(const history& of, limits how_far)
    : all(of), clocks(of), beliefs(beliefs_in(of, clocks)), bounds(how_far) {
    first_excuse_.fill(nowhere);
    for (position at = static_cast<position>(of.events.size()); at-- > 0;) {
        const auto excused = of.events[at][field::excuses];
        if (of.events[at].what != op::fault || excused == 0) {
            continue;
        }
        for (std::size_t number = 1; number <= check_count; ++number) {
            if ((excused & excuse_bit(static_cast<check_id>(number))) != 0) {
                first_excuse_[number] = at;
            }
        }
    }
}

}  // namespace dibs_checker
