// SPDX-License-Identifier: Apache-2.0
//
// `joulemap doctor --json`: schema joulemap.doctor/1, one line. Programs read it: keys may be added, never removed.
#pragma once

#include <string>

#include "model/sensor_status.h"

namespace joulemap::report {

std::string doctor_json(const DoctorResult& result);

}  // namespace joulemap::report
