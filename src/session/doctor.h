// SPDX-License-Identifier: Apache-2.0
//
// Looks at every sensor of the machine and says what it can do: what `joulemap doctor` prints. Counters that can be
// read are also watched for a moment, because some (in virtual machines above all) are there and never move.
#pragma once

#include "base/result.h"
#include "model/sensor_status.h"
#include "sampling/open_sensors.h"

namespace joulemap::session {

// Of `options`: root, sensors, program, uses_borrowed_rights. Fails for an unknown name of a sensor.
Result<DoctorResult> examine(const sampling::SensorOptions& options);

}  // namespace joulemap::session
