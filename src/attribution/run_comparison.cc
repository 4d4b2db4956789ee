// SPDX-License-Identifier: Apache-2.0
#include "attribution/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/quadrature.h"
#include "model/activity.h"
#include "model/run_rates.h"
#include "statistics/mean_interval.h"

namespace joulemap::attribution {
namespace {

constexpr std::size_t kStretches = 10;
constexpr double kWarmUp = 0.1;       // of the steps: they compile, allocate and find out, and are no noise
constexpr double kUnitsAlike = 0.05;  // numbers of steps that differ by more weigh starting up differently

// The half width at 90 % of the mean of a run's steps, as a share: of means over stretches, because neighbours are
// alike.
std::optional<double> scatter_of(const ReportResult& steps) {
  std::vector<double> energies_j;
  for (const ReportRow& row : steps.rows) {
    if (row.energy_j && row.name != kProbeMode) energies_j.push_back(*row.energy_j);
  }
  if (!energies_j.empty()) energies_j.pop_back();  // the last one lasts until the command ends
  const auto warm = static_cast<std::size_t>(std::ceil(kWarmUp * static_cast<double>(energies_j.size())));
  energies_j.erase(energies_j.begin(), energies_j.begin() + static_cast<std::ptrdiff_t>(warm));
  if (energies_j.size() < 2 * kStretches) return std::nullopt;
  std::vector<double> means_j(kStretches);
  for (std::size_t i = 0; i < kStretches; ++i) {
    const std::size_t from = i * energies_j.size() / kStretches;
    const std::size_t to = (i + 1) * energies_j.size() / kStretches;
    for (std::size_t k = from; k < to; ++k) means_j[i] += energies_j[k] / static_cast<double>(to - from);
  }
  const auto interval = statistics::mean_interval(means_j, 0.9);
  if (!interval || !interval->half_width || interval->mean <= 0) return std::nullopt;
  return *interval->half_width / interval->mean;
}

std::optional<double> units_of(const RunRates& rates, std::string_view per) {
  if (per == "sample") return rates.samples;
  if (per == "step") return rates.steps;
  if (per == "epoch") return rates.epochs;
  return 1;
}

Result<std::string> unit_to_use(const RunRates& a, const RunRates& b, const std::string& wanted) {
  if (!wanted.empty()) {
    if (units_of(a, wanted) && units_of(b, wanted)) return wanted;
    return Error{ErrorCode::usage, fmt::format("not both recordings tell {}s", wanted),
                 "--per run compares whole runs"};
  }
  for (const char* per : {"sample", "step", "epoch"}) {
    if (units_of(a, per) && units_of(b, per)) return std::string(per);
  }
  return std::string("run");
}

ComparedEnergy of_row(const ReportRow& row, double units, double scatter) {
  ComparedEnergy energy{*row.energy_j / units, {}, {}};
  if (!row.low_j || !row.high_j) return energy;
  energy.low_j = energy.energy_j - in_quadrature((*row.energy_j - *row.low_j) / units, scatter * energy.energy_j);
  energy.high_j = energy.energy_j + in_quadrature((*row.high_j - *row.energy_j) / units, scatter * energy.energy_j);
  return energy;
}

bool is_sure(const std::optional<ComparedEnergy>& energy) { return !energy || (energy->low_j && energy->high_j); }

// Distances to the ends of both intervals, in quadrature.
void judge(DifferenceEntry& entry) {
  const ComparedEnergy none{0, 0, 0};
  const ComparedEnergy& a = entry.a ? *entry.a : none;
  const ComparedEnergy& b = entry.b ? *entry.b : none;
  entry.difference_j = b.energy_j - a.energy_j;
  if (entry.a && a.energy_j > 0) entry.relative = *entry.difference_j / a.energy_j;
  if (is_sure(entry.a) && is_sure(entry.b)) {
    entry.low_j = *entry.difference_j - in_quadrature(b.energy_j - *b.low_j, *a.high_j - a.energy_j);
    entry.high_j = *entry.difference_j + in_quadrature(*b.high_j - b.energy_j, a.energy_j - *a.low_j);
  }
  if (!entry.a || !entry.b) {
    entry.verdict = entry.b ? Verdict::appeared : Verdict::gone;
  } else if (!entry.low_j) {
    entry.verdict = Verdict::unknown;
  } else if (*entry.low_j > 0) {
    entry.verdict = Verdict::grew;
  } else {
    entry.verdict = *entry.high_j < 0 ? Verdict::shrank : Verdict::within_noise;
  }
}

std::set<std::string> counted_domains(const ReportResult& result, Provenance provenance) {
  std::set<std::string> names;
  for (const DomainEnergy& domain : result.domains) {
    if (domain.counted && domain.joules && domain.provenance == provenance) names.insert(domain.name);
  }
  return names;
}

// Energy of the domains that both runs have, without probing.
ComparedEnergy total_of(const ReportResult& result, const std::set<std::string>& domains, const RunRates& rates,
                        double units, double scatter) {
  double energy_j = 0;
  double all_j = 0;
  double half_width_j = 0;
  for (const DomainEnergy& domain : result.domains) {
    if (!domain.counted || !domain.joules || domain.provenance != rates.provenance) continue;
    all_j += *domain.joules;
    if (!domains.contains(domain.name)) continue;
    energy_j += *domain.joules;
    half_width_j += domain.uncertainty_j.value_or(0);
  }
  if (all_j > 0 && rates.energy_j) energy_j *= *rates.energy_j / all_j;  // probing is spread over them alike
  ReportRow row;
  row.energy_j = energy_j;
  row.low_j = energy_j - half_width_j;
  row.high_j = energy_j + half_width_j;
  return of_row(row, units, scatter);
}

using Key = std::pair<std::string, std::vector<std::string>>;

std::vector<DifferenceEntry> entries_of(const ReportResult& a, const ReportResult& b, const RunDifference& difference) {
  std::map<Key, DifferenceEntry> entries;
  const auto add = [&](const ReportResult& result, const ComparedRun& run,
                       std::optional<ComparedEnergy> DifferenceEntry::*side) {
    for (const ReportRow& row : result.rows) {
      if (!row.energy_j || row.path == std::vector<std::string>{std::string(kProbeMode)}) continue;
      DifferenceEntry& entry = entries[{row.device, row.path}];
      entry.path = row.path;
      entry.name = row.name;
      entry.display_name = row.display_name;
      entry.device = row.device;
      entry.*side = of_row(row, run.units, run.scatter.value_or(0));
    }
  };
  add(a, difference.a, &DifferenceEntry::a);
  add(b, difference.b, &DifferenceEntry::b);
  std::vector<DifferenceEntry> out;
  for (auto& [key, entry] : entries) {
    judge(entry);
    out.push_back(std::move(entry));
  }
  std::stable_sort(out.begin(), out.end(), [](const DifferenceEntry& x, const DifferenceEntry& y) {
    return std::abs(x.difference_j.value_or(0)) > std::abs(y.difference_j.value_or(0));
  });
  return out;
}

ComparedRun run_of(const RunReports& reports, const RunRates& rates, std::string_view per) {
  ComparedRun run;
  run.inputs = reports.rows.inputs;
  run.command = reports.rows.command;
  run.units = units_of(rates, per).value_or(1);
  run.time_s = rates.time_s / run.units;
  run.scatter = scatter_of(reports.steps);
  run.is_estimated = rates.provenance == Provenance::estimated;
  return run;
}

void note_what_hinders(RunDifference& difference, const std::set<std::string>& left_out) {
  const double more = difference.b.units / difference.a.units;
  if (difference.per != "run" && std::abs(more - 1) > kUnitsAlike) {
    difference.diagnostics.add(
        {"units_differ", 1,
         fmt::format("A has {:.0f} {}s and B {:.0f}: starting up, which is in the sums, weighs differently",
                     difference.a.units, difference.per, difference.b.units),
         "record as many of both"});
  }
  if (!left_out.empty()) {
    difference.diagnostics.add(
        {"domains_differ", left_out.size(),
         fmt::format("only one of them measured {}: left out of the total", fmt::join(left_out, ", ")),
         "joulemap doctor on the machine of the other tells why"});
  }
  if (!difference.a.scatter || !difference.b.scatter) {
    difference.diagnostics.add(
        {"scatter_unknown", 1,
         "too few steps to see how much they differ by themselves: noise is that of measuring alone",
         "compare longer runs, or several"});
  }
}

}  // namespace

Result<RunDifference> compare_runs(const RunReports& a, const RunReports& b, const ComparisonQuery& query) {
  const RunRates rates_a = run_rates(a.rows);
  const RunRates rates_b = run_rates(b.rows);
  if (!rates_a.provenance || !rates_b.provenance) {
    return Error{ErrorCode::unsupported, fmt::format("{} has no energies to compare", !rates_a.provenance ? "A" : "B"),
                 "joulemap doctor tells what can be measured"};
  }
  if (rates_a.provenance != rates_b.provenance) {
    return Error{ErrorCode::unsupported, "one of them was measured and the other only estimated: they do not compare",
                 "record both where the same sensors can be read"};
  }
  const Result<std::string> per = unit_to_use(rates_a, rates_b, query.per);
  if (!per) return per.error();
  RunDifference difference{.by = a.rows.by, .per = *per, .interval = a.rows.interval};
  difference.a = run_of(a, rates_a, *per);
  difference.b = run_of(b, rates_b, *per);

  const std::set<std::string> of_a = counted_domains(a.rows, *rates_a.provenance);
  const std::set<std::string> of_b = counted_domains(b.rows, *rates_b.provenance);
  std::set<std::string> both;
  std::set<std::string> left_out;
  std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::inserter(both, both.end()));
  std::set_symmetric_difference(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                                std::inserter(left_out, left_out.end()));
  if (both.empty()) {
    return Error{ErrorCode::unsupported, "they have no domain in common",
                 "record both on machines with the same sensors"};
  }
  difference.domains.assign(both.begin(), both.end());
  difference.total.name = difference.total.display_name = "total";
  difference.total.a = total_of(a.rows, both, rates_a, difference.a.units, difference.a.scatter.value_or(0));
  difference.total.b = total_of(b.rows, both, rates_b, difference.b.units, difference.b.scatter.value_or(0));
  judge(difference.total);
  difference.entries = entries_of(a.rows, b.rows, difference);
  difference.fail_over = query.fail_over;
  difference.failed = query.fail_over && difference.total.verdict == Verdict::grew &&
                      difference.total.relative.value_or(0) > *query.fail_over;
  for (const auto& [letter, run] : {std::pair("A", &a), std::pair("B", &b)}) {
    for (Diagnostic told : run->rows.diagnostics.list()) {
      told.message = fmt::format("{}: {}", letter, told.message);
      difference.diagnostics.add(std::move(told));
    }
  }
  note_what_hinders(difference, left_out);
  return difference;
}

}  // namespace joulemap::attribution
