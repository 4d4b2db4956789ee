// SPDX-License-Identifier: Apache-2.0
//
// `joulemap doctor` for people: whether energy can be measured, then state, reason and remedy of each sensor.
#pragma once

#include <string>

#include "model/sensor_status.h"

namespace joulemap::report {

std::string doctor_text(const DoctorResult& result);

}  // namespace joulemap::report
