// SPDX-License-Identifier: Apache-2.0
//
// Examines every sensor of the machine; `joulemap doctor` prints the result. Readable counters are also observed for a
// moment, because some (mainly in virtual machines) exist but never change.
#pragma once

#include "base/result.h"
#include "model/sensor_status.h"
#include "sampling/open_sensors.h"

namespace joulemap::session {

// Uses root, sensors, program and uses_file_capabilities of `options`. Fails for an unknown sensor name.
Result<DoctorResult> examine_sensors(const sampling::SensorOptions& options);

}  // namespace joulemap::session
