// SPDX-License-Identifier: Apache-2.0
//
// The one table of sensor backends, in the order in which they are preferred when several watch the same
// domain. To add one: its folder with a probe function, and a line in backends.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sensors/sensor.h"

namespace joulemap::sensors {

std::span<const SensorBackend> sensor_backends();

// The backends of a list as --sensors takes it ("powercap,estimate"); all of them for an empty one.
// An unknown name is an error of usage that lists the known ones.
Result<std::vector<const SensorBackend*>> choose_backends(std::string_view list);

}  // namespace joulemap::sensors
