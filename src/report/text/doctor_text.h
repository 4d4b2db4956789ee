// SPDX-License-Identifier: Apache-2.0
//
// `joulemap doctor` for people: a verdict, then every sensor with its state, the reason, and the exact remedy.
#pragma once

#include <string>

#include "model/sensor_status.h"

namespace joulemap::report {

std::string doctor_text(const DoctorResult& result);

}  // namespace joulemap::report
