// SPDX-License-Identifier: Apache-2.0
//
// An activity as far as it lies in a span of time: what a report of a part of a run is made of, and what keeps work
// before and after a command out of its energy. Pure; CLOCK_MONOTONIC nanoseconds.
//
// Names stay, whatever the span: later activities use them. Of sums as much is taken as of their stretch of time lies
// inside, which is about a second for a live recording. Kernels that were told one by one are cut where the span is.
#pragma once

#include <vector>

#include "attribution/gpu/followed_steps.h"
#include "attribution/ledger/place_paths.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"

namespace joulemap::attribution {

bool is_inside(const Activity& activity, TimeSpan span);
Activity clipped(const Activity& activity, TimeSpan span);
// The same for a process in light mode: kernels of traced steps extrapolate to the steps after them, and count as far as
// those lie inside. `steps` are the whole run's. The parts need no further extrapolation: their steps are marked as traced.
std::vector<Activity> clipped(const Activity& activity, TimeSpan span, const FollowedSteps& steps,
                              const PlacePaths& places);

}  // namespace joulemap::attribution
