// SPDX-License-Identifier: Apache-2.0
//
// Checks the state of the machine before a run of an experiment. Every check runs and is recorded. A failed check
// stops the experiment if the list `require` of [checks] names it, and only warns if `warn` does. Pure except for
// reading sysfs below `root`.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/system_root.h"
#include "experiment/plan/experiment_spec.h"
#include "experiment/run/idle_monitor.h"
#include "experiment/run/row_json.h"
#include "model/sensor_status.h"

namespace joulemap::experiment {

// `idle` is the last idle measurement before the row. If it is nullopt, GPU processes and throttling are unknown, the
// load is the load average, and the temperature is that of the CPUs. `sensors`: sensor states from the meter.
std::vector<CheckOutcome> check_machine(const SystemRoot& root, const ChecksSpec& spec,
                                        const std::optional<IdleState>& idle, std::span<const SensorStatus> sensors);

// The first required check that did not pass; null if the row may start.
const CheckOutcome* first_failed_requirement(std::span<const CheckOutcome> checks);

}  // namespace joulemap::experiment
