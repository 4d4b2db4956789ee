// SPDX-License-Identifier: Apache-2.0
//
// RunRates: what a run cost by the units that people think in: per step, per epoch, per sample, and energy times
// delay. The same numbers wherever they are told: terminal, tables, citation, comparison, page, exports. Probing is no
// part of them; starting up is. Pure; joules and seconds.
#pragma once

#include <optional>

#include "model/report_result.h"

namespace joulemap {

struct RunRates {
  std::optional<double> energy_j;      // all counted domains of one provenance: measured before estimated
  std::optional<double> half_width_j;  // of the report's interval; half widths of domains added up (one cause may be
                                       // behind all)
  std::optional<Provenance> provenance;
  double time_s = 0;
  std::optional<double> steps;
  std::optional<double> epochs;
  std::optional<double> samples;  // the sum of the metric "samples"

  std::optional<double> mean_w() const { return over(energy_j, time_s); }
  std::optional<double> steps_per_s() const { return over(steps, time_s); }
  std::optional<double> samples_per_s() const { return over(samples, time_s); }
  bool is_estimated() const { return provenance == Provenance::estimated; }
  std::optional<double> energy_delay_js() const { return energy_j ? std::optional(*energy_j * time_s) : std::nullopt; }
  // What one of them took.
  std::optional<double> energy_of(const std::optional<double>& units) const {
    return over(energy_j, units.value_or(0));
  }
  double relative_half_width() const { return energy_j && *energy_j > 0 ? half_width_j.value_or(0) / *energy_j : 0; }

 private:
  static std::optional<double> over(const std::optional<double>& value, double by) {
    return value && by > 0 ? std::optional(*value / by) : std::nullopt;
  }
};

RunRates run_rates(const ReportResult& result);

}  // namespace joulemap
