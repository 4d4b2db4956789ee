// SPDX-License-Identifier: Apache-2.0
#include "model/run_rates.h"

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

RunRates run_rates(const ReportResult& result) {
  RunRates rates;
  rates.time_s = std::max(result.elapsed_s - (result.probe ? result.probe->time_s : 0), 0.0);
  if (const std::optional<EnergyWithProvenance> shown = preferred_energy(result.totals)) {
    rates.provenance = shown->provenance;
    rates.energy_j = std::max(shown->joules - probed_j(result, shown->provenance, shown->joules), 0.0);
    rates.half_width_j = shown->uncertainty_j;
  }
  // Steps, epochs and samples of a clipped run (--time) are known only for the whole run, so it has no rates.
  if (result.is_clipped) return rates;
  if (result.steps > 0) rates.steps = static_cast<double>(result.steps);
  if (result.epochs > 0) rates.epochs = static_cast<double>(result.epochs);
  for (const ReportedMetric& metric : result.metrics) {
    if (metric.name == "samples" && metric.sum > 0) rates.samples = metric.sum;
  }
  return rates;
}

}  // namespace joulemap
