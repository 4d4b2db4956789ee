// SPDX-License-Identifier: Apache-2.0
//
// Clips an activity to a time span: for reports of a part of a run, and to keep work before and after a command out of
// its energy. Pure; CLOCK_MONOTONIC nanoseconds.
//
// Names are kept whatever the span, because later activities use them. Sums are scaled by the part of their interval
// that lies inside; that interval is about one second in a live recording. Individually recorded kernels are cut at the
// span.
#pragma once

#include <vector>

#include "attribution/gpu/traced_steps.h"
#include "attribution/ledger/scope_paths.h"
#include "attribution/ledger/time_curve.h"
#include "model/activity.h"

namespace joulemap::attribution {

bool is_within_span(const Activity& activity, TimeSpan span);
Activity clip_activity(const Activity& activity, TimeSpan span);
// The same for a process in light mode: kernels of traced steps extrapolate to the untraced steps after them, and count
// as far as these lie inside. `steps`: the steps of the whole run. The returned parts need no further extrapolation:
// their steps are marked as traced.
std::vector<Activity> clip_activity(const Activity& activity, TimeSpan span, const TracedSteps& steps,
                                    const ScopePaths& scopes);

}  // namespace joulemap::attribution
