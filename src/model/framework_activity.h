// SPDX-License-Identifier: Apache-2.0
//
// FrameworkActivity: output of framework profilers that ran during a recording, as scopes and shares. Plain data.
#pragma once

#include "model/activity.h"
#include "model/diagnostics.h"

namespace joulemap {

struct FrameworkActivity {
  Activity activity;
  Diagnostics diagnostics;
};

}  // namespace joulemap
