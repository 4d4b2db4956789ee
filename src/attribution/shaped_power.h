// SPDX-License-Identifier: Apache-2.0
//
// Power over time for people to look at, in equal slices that keep a domain's energy. A counter that is dear to read is read
// every few seconds: what it says lies between its steps, and where the device kept a history of its power, that tells
// when within them it was drawn. The counter says how much, the history only when. Pure; watts.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "attribution/recorded_energy.h"

namespace joulemap::attribution {

std::vector<std::optional<double>> shaped_power(const RecordedEnergy::Result::DomainCurve& curve, std::size_t slices);

}  // namespace joulemap::attribution
