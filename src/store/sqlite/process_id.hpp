// SPDX-License-Identifier: Apache-2.0
#pragma once
// One open store object of one process, as others see it: 128 random bits. Names its files in the
// folder of holders; never reused, so that a pid that comes again means nothing.

#include "core/holder_id.hpp"

namespace dibs::store::sqlite {

using process_id = core::holder_id;

}  // namespace dibs::store::sqlite
