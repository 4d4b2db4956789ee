// SPDX-License-Identifier: Apache-2.0
//
// The cause of a recorded wait of an idle GPU, from the scope that the wait is charged to. Pure.
#pragma once

#include "attribution/ledger/activity_sums.h"
#include "model/activity.h"
#include "model/idle_cause.h"
#include "model/time_points.h"

namespace joulemap::attribution {

// `span`: the interval that the wait was recorded for. `names`: of the process that waited.
IdleCause idle_cause_of_wait(ProcessActivity& names, const WaitTally& wait, TimeSpan span);

}  // namespace joulemap::attribution
