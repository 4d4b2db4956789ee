// SPDX-License-Identifier: Apache-2.0
#include "report/text/stat_summary.h"

#include <algorithm>

#include "base/quadrature.h"
#include "statistics/mean_interval.h"

namespace joulemap::report {
namespace {

// Domains of all runs, in order of first appearance.
std::vector<std::string> domain_names_of_runs(std::span<const StatRun> runs) {
  std::vector<std::string> names;
  for (const StatRun& run : runs) {
    for (const DomainEnergy& domain : run.domains) {
      if (std::find(names.begin(), names.end(), domain.name) == names.end()) names.push_back(domain.name);
    }
  }
  return names;
}

// Provenance to use for the domain: measured if any run measured it, else estimated.
Provenance provenance_of_domain(const std::string& name, std::span<const StatRun> runs) {
  for (const StatRun& run : runs) {
    for (const DomainEnergy& domain : run.domains) {
      if (domain.name == name && domain.provenance == Provenance::measured) return Provenance::measured;
    }
  }
  return Provenance::estimated;
}

StatSummary summarize_domain(const std::string& name, std::span<const StatRun> runs, double confidence) {
  std::vector<double> joules;
  double uncertainty_sum_j = 0;
  const Provenance provenance = provenance_of_domain(name, runs);
  for (const StatRun& run : runs) {
    for (const DomainEnergy& domain : run.domains) {
      if (domain.name != name || !domain.joules || domain.provenance != provenance) continue;
      joules.push_back(*domain.joules);
      uncertainty_sum_j += domain.uncertainty_j.value_or(0);
    }
  }
  StatSummary summary{name, joules.size(), {}, {}, {}};
  const auto interval = statistics::mean_interval(joules, confidence);
  if (!interval) return summary;
  const double mean_uncertainty_j = uncertainty_sum_j / static_cast<double>(joules.size());
  double half_width_j = interval->half_width.value_or(mean_uncertainty_j);
  if (interval->half_width && provenance == Provenance::estimated)
    half_width_j = add_in_quadrature(half_width_j, mean_uncertainty_j);
  summary.mean_j = interval->mean;
  summary.low_j = std::max(interval->mean - half_width_j, 0.0);
  summary.high_j = interval->mean + half_width_j;
  return summary;
}

}  // namespace

std::vector<StatSummary> summarize_runs(std::span<const StatRun> runs, double confidence) {
  std::vector<StatSummary> summaries;
  for (const std::string& name : domain_names_of_runs(runs))
    summaries.push_back(summarize_domain(name, runs, confidence));
  return summaries;
}

}  // namespace joulemap::report
