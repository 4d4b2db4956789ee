// SPDX-License-Identifier: Apache-2.0
#include "model/run_rates.h"

#include <algorithm>

#include "model/run_energy.h"

namespace joulemap {
RunRates compute_run_rates(const ReportResult& result) {
  RunRates rates;
  rates.time_s = std::max(result.elapsed_s - (result.probe ? result.probe->time_s : 0), 0.0);
  if (const std::optional<EnergyWithProvenance> run_energy = preferred_energy(result.totals)) {
    rates.provenance = run_energy->provenance;
    const std::optional<EnergyWithProvenance> energy_net_of_probing =
        energy_without_probing(result, run_energy->provenance);
    rates.energy_j = energy_net_of_probing->joules;
    rates.half_width_j = energy_net_of_probing->uncertainty_j;
  }
  // Steps, epochs and samples of a clipped run (--time) are known only for the whole run, so it has no rates.
  if (result.is_clipped) return rates;
  if (result.steps > 0) rates.steps = static_cast<double>(result.steps);
  if (result.evaluation_steps > 0) rates.evaluation_steps = static_cast<double>(result.evaluation_steps);
  if (result.epochs > 0) rates.epochs = static_cast<double>(result.epochs);
  for (const ReportedMetric& metric : result.metrics) {
    if (metric.name == "samples" && metric.sum > 0) rates.samples = metric.sum;
  }
  return rates;
}

}  // namespace joulemap
