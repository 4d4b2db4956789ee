// SPDX-License-Identifier: Apache-2.0
//
// `joulemap experiment plan|run|resume|run-row|status|submit --json`: schema joulemap.experiment/1, one line. Pure.
#pragma once

#include <string>

#include "model/experiment_plan.h"

namespace joulemap::report {

std::string experiment_plan_json(const ExperimentPlan& plan);

}  // namespace joulemap::report
