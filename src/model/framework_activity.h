// SPDX-License-Identifier: Apache-2.0
//
// FrameworkActivity: what the profilers of frameworks recorded beside a run, as scopes and shares. Plain data.
#pragma once

#include "model/activity.h"
#include "model/diagnostics.h"

namespace joulemap {

struct FrameworkActivity {
  Activity activity;
  Diagnostics diagnostics;
};

}  // namespace joulemap
