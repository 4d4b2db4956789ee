// SPDX-License-Identifier: Apache-2.0
//
// Properties of RAPL that hold for every interface.
#pragma once

namespace joulemap::sensors {

// Intel SDM vol. 3B, "RAPL Interfaces": the energy status registers are updated about every millisecond.
inline constexpr double kRaplUpdatePeriod_s = 0.001;

}  // namespace joulemap::sensors
