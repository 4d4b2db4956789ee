// SPDX-License-Identifier: Apache-2.0
//
// The table of sensor backends, in order of preference when several measure the same domain. To add a backend: create
// its folder with a probe function, and add a line to backends.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sensors/sensor.h"

namespace joulemap::sensors {

std::span<const SensorBackend> sensor_backends();

// The backends of a comma-separated list as in --sensors ("powercap,estimate"); all of them for an empty list. An
// unknown name is a usage error that lists the known ones.
Result<std::vector<const SensorBackend*>> choose_backends(std::string_view sensor_list);

}  // namespace joulemap::sensors
