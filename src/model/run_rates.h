// SPDX-License-Identifier: Apache-2.0
//
// RunRates: the energy of a run per step, epoch and sample, and its energy-delay product. All reports use these
// numbers. Probing is excluded; start-up is included. Pure; joules and seconds.
#pragma once

#include <optional>

#include "model/report_result.h"

namespace joulemap {

struct RunRates {
  std::optional<double> energy_j;      // sum over counted domains: the measured sum, else the estimated
  std::optional<double> half_width_j;  // of the interval of energy_j, at the report's confidence level
  std::optional<Provenance> provenance;
  double time_s = 0;
  std::optional<double> steps;  // without evaluation steps
  std::optional<double> evaluation_steps;
  std::optional<double> epochs;
  std::optional<double> samples;  // sum of the metric "samples"

  std::optional<double> mean_w() const { return quotient(energy_j, time_s); }
  std::optional<double> steps_per_s() const { return quotient(steps, time_s); }
  std::optional<double> samples_per_s() const { return quotient(samples, time_s); }
  bool is_estimated() const { return provenance == Provenance::estimated; }
  std::optional<double> energy_delay_js() const { return energy_j ? std::optional(*energy_j * time_s) : std::nullopt; }
  // energy_j / units; none when either is unknown.
  std::optional<double> energy_per_unit(const std::optional<double>& units) const {
    return quotient(energy_j, units.value_or(0));
  }
  double relative_half_width() const { return energy_j && *energy_j > 0 ? half_width_j.value_or(0) / *energy_j : 0; }

 private:
  static std::optional<double> quotient(const std::optional<double>& value, double divisor) {
    return value && divisor > 0 ? std::optional(*value / divisor) : std::nullopt;
  }
};

RunRates compute_run_rates(const ReportResult& result);

}  // namespace joulemap
