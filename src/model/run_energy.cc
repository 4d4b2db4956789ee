// SPDX-License-Identifier: Apache-2.0
#include "model/run_energy.h"

#include <algorithm>

namespace joulemap {
namespace {

// Energy of probing within `energy_j`. Its cost is known only as measured energy; an estimate is nearly proportional to
// time, so the time of probing is its share.
double probed_j(const ReportResult& result, Provenance provenance, double energy_j) {
  if (!result.probe) return 0;
  if (provenance == Provenance::measured) return result.probe->energy_j.value_or(0);
  return result.elapsed_s > 0 ? energy_j * result.probe->time_s / result.elapsed_s : 0;
}

}  // namespace

std::optional<EnergyWithProvenance> run_energy(const ReportResult& result, Provenance provenance) {
  std::optional<EnergyWithProvenance> energy = energy_by_provenance(result.totals, provenance);
  if (energy) energy->joules = std::max(energy->joules - probed_j(result, provenance, energy->joules), 0.0);
  return energy;
}

}  // namespace joulemap
