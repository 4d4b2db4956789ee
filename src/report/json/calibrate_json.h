// SPDX-License-Identifier: Apache-2.0
//
// `joulemap calibrate --json`: schema joulemap.calibrate/1, one line. Keys may be added, never removed.
#pragma once

#include <span>
#include <string>

#include "formats/json_writer.h"
#include "model/calibrate_result.h"

namespace joulemap::report {

std::string calibrate_json(const CalibrateResult& result);

// Writes the member "calibration", an array with one object per channel. `report --json` contains it, too.
void write_calibrations(formats::JsonWriter& json, std::span<const ChannelCalibration> calibrations);

}  // namespace joulemap::report
