// SPDX-License-Identifier: Apache-2.0
//
// `joulemap calibrate` for people: one line per channel, and a second table for GPUs that were loaded.
#pragma once

#include <string>

#include "model/calibrate_result.h"

namespace joulemap::report {

std::string calibrate_text(const CalibrateResult& result);

}  // namespace joulemap::report
