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
  if (result.is_clipped || result.lacks_steps) return rates;
  const CoveredStepCounts counts = result.covered.value_or(
      CoveredStepCounts{static_cast<double>(result.steps), static_cast<double>(result.evaluation_steps),
                        static_cast<double>(result.epochs)});
  const auto positive = [](double count) { return count > 0 ? std::optional(count) : std::nullopt; };
  rates.steps = positive(counts.steps);
  rates.evaluation_steps = positive(counts.evaluation_steps);
  rates.epochs = positive(counts.epochs);
  for (const ReportedMetric& metric : result.metrics) {
    if (metric.name == "samples" && metric.sum > 0) rates.samples = metric.sum;
  }
  return rates;
}

}  // namespace joulemap
