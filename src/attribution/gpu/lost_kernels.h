// SPDX-License-Identifier: Apache-2.0
//
// Kernels that ran and that nobody told of, because another profiler had the GPU's records: a stretch of time that is
// neither idle nor anybody's. It is looked at as if one kernel of a class of its own had run all the while on every GPU the
// process uses. That class takes part in the regression and in sharing out each moment, but no row has its share: it is
// not attributed. Pure; CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

#include "attribution/ledger/activity_sums.h"
#include "model/activity.h"
#include "model/recorded.h"

namespace joulemap::attribution {

// No process has so many classes.
inline constexpr std::uint32_t kLostClass = 0xFFFF'FFFF;

// What a mark of kind kernels_lost stands for. `names` of its process, complete. Empty where the process used no GPU that is
// known, or the mark makes no sense. To be added to sums and work, and not to a ledger.
Activity lost_kernels(const Mark& mark, const ProcessNames& names);

}  // namespace joulemap::attribution
