// SPDX-License-Identifier: Apache-2.0
//
// `joulemap calibrate` for people: a line for each channel.
#pragma once

#include <string>

#include "model/calibrate_result.h"

namespace joulemap::report {

std::string calibrate_text(const CalibrateResult& result);

}  // namespace joulemap::report
