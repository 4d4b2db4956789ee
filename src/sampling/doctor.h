// SPDX-License-Identifier: Apache-2.0
//
// Looks at every sensor of the machine and says what it can do: what `joulemap doctor` prints. Counters that can be
// read are also watched for a moment, because some (in virtual machines above all) are there and never move.
#pragma once

#include <string>

#include "base/result.h"
#include "base/system_root.h"
#include "model/sensor_status.h"

namespace joulemap::sampling {

// `sensors` as --sensors takes them; an unknown name is the only failure.
Result<DoctorResult> examine(const SystemRoot& root, const std::string& sensors, const std::string& program);

}  // namespace joulemap::sampling
