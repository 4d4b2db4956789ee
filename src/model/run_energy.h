// SPDX-License-Identifier: Apache-2.0
//
// The energy of a run without probing, by provenance. Pure; joules.
#pragma once

#include <optional>

#include "model/report_result.h"

namespace joulemap {

// Sum over the counted domains of this provenance, without probing; none when no counted domain has such a value.
std::optional<EnergyWithProvenance> run_energy(const ReportResult& result, Provenance provenance);

}  // namespace joulemap
