// SPDX-License-Identifier: Apache-2.0
//
// Kernels that ran but were not recorded because another profiler owned the GPU's activity records: a time span that is
// neither idle nor attributable. It is modelled as one kernel of a class of its own that runs throughout on every GPU
// of the process. The class takes part in the regression and in the split of energy, but no row receives its part: it
// is unattributed. Pure; ns of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

#include "attribution/ledger/activity_sums.h"
#include "model/activity.h"
#include "model/recorded.h"

namespace joulemap::attribution {

// Larger than any class id of a process.
inline constexpr std::uint32_t kLostKernelClassId = 0xFFFF'FFFF;

// The activity that a mark of kind kernels_lost represents; the id of the mark is its duration in ns. `names`: complete
// names of its process. Empty where the process used no known GPU or the mark is invalid. Add it to ActivitySums and
// GpuWork, not to a ledger.
Activity lost_kernel_activity(const Mark& mark, const ProcessActivity& names);

}  // namespace joulemap::attribution
