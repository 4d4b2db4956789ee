// SPDX-License-Identifier: Apache-2.0
#include "model/run_energy.h"

#include <algorithm>

namespace joulemap {
namespace {

// Removes the energy of probing. Its cost is known only as measured energy. An estimate, and with it its error, is
// nearly proportional to time: both are reduced by the share of probing in the time.
void subtract_probing_energy(EnergyWithProvenance& energy, const ProbeCost& probe, double elapsed_s) {
  if (energy.provenance == Provenance::measured) {
    energy.joules = std::max(energy.joules - probe.energy_j.value_or(0), 0.0);
    return;
  }
  if (elapsed_s <= 0) return;
  const double remaining_share = std::max(1 - probe.time_s / elapsed_s, 0.0);
  energy.joules *= remaining_share;
  if (energy.uncertainty_j) *energy.uncertainty_j *= remaining_share;
}

}  // namespace

std::optional<EnergyWithProvenance> energy_without_probing(const ReportResult& result, Provenance provenance) {
  std::optional<EnergyWithProvenance> energy = energy_by_provenance(result.totals, provenance);
  if (energy && result.probe) subtract_probing_energy(*energy, *result.probe, result.elapsed_s);
  return energy;
}

std::vector<std::string> list_domains_not_included(const ReportResult& result) {
  std::vector<std::string> names = result.totals.domains_without_value;
  for (const DomainEnergy& domain : result.domains) {
    if (is_outside_totals(domain)) names.push_back(domain.name);
  }
  return names;
}

}  // namespace joulemap
