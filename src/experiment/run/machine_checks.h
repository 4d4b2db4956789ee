// SPDX-License-Identifier: Apache-2.0
//
// Whether the machine is in a state in which a row tells something: the checks that `require` and `warn` of [checks] name.
// All of them are made and recorded, named or not; naming decides what follows. Pure but for reading sysfs below `root`.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/system_root.h"
#include "experiment/plan/experiment_spec.h"
#include "experiment/run/idle_watch.h"
#include "experiment/run/row_json.h"
#include "model/sensor_status.h"

namespace joulemap::experiment {

// `idle` is the last look before the row, nothing where none was taken: load, other processes and GPUs' throttling are
// then not known. `sensors` as the meter found them.
std::vector<CheckOutcome> check_machine(const SystemRoot& root, const ChecksSpec& spec,
                                        const std::optional<IdleState>& idle, std::span<const SensorStatus> sensors);

// The first that is required and not passed; nothing when the row may begin.
const CheckOutcome* first_failure(std::span<const CheckOutcome> checks);

}  // namespace joulemap::experiment
