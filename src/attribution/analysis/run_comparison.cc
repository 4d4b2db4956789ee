// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "attribution/analysis/compared_entries.h"
#include "attribution/analysis/comparison_diagnostics.h"
#include "base/quadrature.h"
#include "model/run_rates.h"

namespace joulemap::attribution {
namespace {

constexpr std::array<std::size_t, 3> kRecordingsASide = {1, 3, 5};

std::optional<double> units_of(const RunRates& rates, std::string_view per) {
  if (per == "sample") return rates.samples;
  if (per == "step") return rates.steps;
  if (per == "epoch") return rates.epochs;
  return 1;
}

// Rates of the whole run, even if the rows cover only a part of it.
RunRates whole_rates(const RunReports& reports) {
  ReportResult whole = reports.rows;
  whole.is_clipped = false;
  RunRates rates = run_rates(whole);
  if (!reports.steps.empty()) rates.steps = static_cast<double>(reports.steps.size());
  return rates;
}

// A recording, and its energy in the domains that all recordings have.
struct Measured {
  const RunReports* reports = nullptr;
  RunRates rates = {};
  double common = 1;   // fraction of the energy in domains that all recordings contain
  double sensors = 0;  // relative standard error from the sensors
  ComparedRecording recording = {};
  double row_units = 1;
  double time_s = 0;  // per unit
};

std::set<std::string> counted_domains(const ReportResult& result, Provenance provenance) {
  const std::optional<EnergyWithProvenance> sum = energy_by_provenance(total_energy(result.domains), provenance);
  return sum ? std::set<std::string>(sum->domains.begin(), sum->domains.end()) : std::set<std::string>();
}

Result<std::string> unit_to_use(const std::vector<Measured>& all, const std::string& wanted) {
  const auto have = [&](std::string_view per) {
    return std::all_of(all.begin(), all.end(),
                       [&](const Measured& one) { return units_of(one.rates, per).has_value(); });
  };
  if (!wanted.empty()) {
    if (have(wanted)) return wanted;
    return Error{ErrorCode::usage, fmt::format("not all recordings have {}s", wanted),
                 "compare whole runs with --per run"};
  }
  for (const char* per : {"sample", "step", "epoch"}) {
    if (have(per)) return std::string(per);
  }
  return std::string("run");
}

void keep_common(Measured& one, const std::set<std::string>& domains) {
  const std::vector<DomainEnergy>& rows = one.reports->rows.domains;
  const Provenance provenance = one.rates.provenance.value_or(Provenance::measured);
  const std::optional<EnergyWithProvenance> all = energy_by_provenance(total_energy(rows), provenance);
  const std::optional<EnergyWithProvenance> common = energy_by_provenance(total_energy(rows, domains), provenance);
  const double common_j = common ? common->joules : 0;
  if (all && all->joules > 0) one.common = common_j / all->joules;
  if (common_j > 0) one.sensors = common->uncertainty_j.value_or(0) / kHalfWidth90 / common_j;
}

// What the comparison excludes: time and energy of the whole run minus those of the steady steps.
SteadyStateExclusion left_out_of(const RunReports& reports) {
  const SteadyState& steady_state = *reports.steady_state;
  const double kept = static_cast<double>(steady_state.steps - steady_state.long_steps);
  SteadyStateExclusion left{.warm_up_steps = steady_state.first_step, .long_steps = steady_state.long_steps};
  left.time_s = std::max(reports.elapsed_s - kept * steady_state.time_s, 0.0);
  if (reports.energy_j) left.energy_j = std::max(*reports.energy_j - steady_state.energy_sum_j, 0.0);
  left.is_settled = steady_state.is_settled;
  return left;
}

void measure(Measured& one, std::string_view per, bool is_steady) {
  const RunReports& reports = *one.reports;
  ComparedRecording& recording = one.recording;
  if (!reports.rows.inputs.empty()) recording.input = reports.rows.inputs.front();
  recording.steps = one.rates.steps.value_or(0);
  const double units = units_of(one.rates, per).value_or(1);
  double scatter = 0;
  if (reports.steady_state && reports.steady_state->energy_j > 0)
    scatter = reports.steady_state->standard_error_j / reports.steady_state->energy_j;
  recording.within_run_error = add_in_quadrature(one.sensors, scatter);
  if (is_steady) {
    const double of_step = units / recording.steps;
    recording.units = of_step * static_cast<double>(reports.steady_state->steps - reports.steady_state->long_steps);
    recording.energy_j = one.common * reports.steady_state->energy_j / of_step;
    recording.exclusion = left_out_of(reports);
    one.row_units = of_step * reports.steps_in_rows;
    one.time_s = reports.steady_state->time_s / of_step;
  } else {
    recording.units = one.row_units = units;
    recording.energy_j = one.common * one.rates.energy_j.value_or(0) / units;
    one.time_s = one.rates.time_s / units;
  }
}

ComparedRun side_of(std::span<const Measured> side) {
  ComparedRun run{.units = 0, .time_s = 0.0};
  run.command = side.front().reports->rows.command;
  run.is_estimated = side.front().rates.is_estimated();
  const auto n = static_cast<double>(side.size());
  for (const Measured& one : side) {
    const std::vector<std::string>& inputs = one.reports->rows.inputs;
    run.inputs.insert(run.inputs.end(), inputs.begin(), inputs.end());
    run.recordings.push_back(one.recording);
    run.units += one.recording.units;
    *run.time_s += one.time_s / n;
    const std::optional<SteadyState>& steady_state = one.reports->steady_state;
    if (!steady_state || steady_state->energy_j <= 0) continue;
    run.mean_step_half_width = run.mean_step_half_width.value_or(0) +
                               kHalfWidth90 * steady_state->standard_error_j / steady_state->energy_j / n;
  }
  return run;
}

statistics::RunContrast contrast_totals(std::span<const Measured> a, std::span<const Measured> b,
                                        const statistics::VariationPrior& prior) {
  std::array<std::vector<double>, 2> energy_j;
  std::array<std::vector<double>, 2> within_j;
  for (const std::size_t side : {0, 1}) {
    for (const Measured& one : side == 0 ? a : b) {
      energy_j[side].push_back(one.recording.energy_j);
      within_j[side].push_back(one.recording.within_run_error * one.recording.energy_j);
    }
  }
  return statistics::contrast_of({energy_j[0], within_j[0]}, {energy_j[1], within_j[1]}, prior);
}

void judge_total(RunDifference& difference, const statistics::RunContrast& contrast) {
  const double widths = statistics::t_quantile(difference.interval, contrast.degrees_of_freedom);
  const auto side = [&](double mean_j, double error_j) {
    return ComparedEnergy{mean_j, mean_j - widths * error_j, mean_j + widths * error_j};
  };
  DifferenceEntry& total = difference.total;
  total.name = total.display_name = "total";
  total.a = side(contrast.mean_a, contrast.standard_error_a);
  total.b = side(contrast.mean_b, contrast.standard_error_b);
  total.difference_j = contrast.difference();
  total.low_j = *total.difference_j - widths * contrast.standard_error();
  total.high_j = *total.difference_j + widths * contrast.standard_error();
  if (contrast.mean_a > 0) total.relative_change = *total.difference_j / contrast.mean_a;
  total.verdict = *total.low_j > 0 ? Verdict::grew : *total.high_j < 0 ? Verdict::shrank : Verdict::within_noise;
}

void state_power(RunDifference& difference, const statistics::RunContrast& contrast,
                 const statistics::VariationPrior& prior) {
  difference.variation.sd = contrast.relative_sd;
  difference.variation.degrees_of_freedom = contrast.degrees_of_freedom;
  const auto smallest = [&](double freedom, std::size_t of_a, std::size_t of_b) {
    return statistics::smallest_detectable_change(contrast.relative_sd, freedom, of_a, of_b, difference.interval);
  };
  difference.smallest_detectable_change =
      smallest(contrast.degrees_of_freedom, difference.a.recordings.size(), difference.b.recordings.size());
  for (const std::size_t runs : kRecordingsASide) {
    const double freedom = prior.degrees_of_freedom + 2 * static_cast<double>(runs - 1);
    difference.detectable_changes.push_back({runs, smallest(freedom, runs, runs)});
  }
}

// Domains that every recording contains, and those that only some contain.
struct SharedDomains {
  std::set<std::string> common;
  std::set<std::string> others;
};

SharedDomains shared_domains(const std::vector<Measured>& all) {
  SharedDomains shared;
  std::set<std::string> any;
  for (const Measured& one : all) {
    const std::set<std::string> names = counted_domains(one.reports->rows, *one.rates.provenance);
    if (&one == &all.front()) shared.common = names;
    any.insert(names.begin(), names.end());
    std::erase_if(shared.common, [&](const std::string& name) { return !names.contains(name); });
  }
  std::set_difference(any.begin(), any.end(), shared.common.begin(), shared.common.end(),
                      std::inserter(shared.others, shared.others.end()));
  return shared;
}

std::vector<RecordingEntries> entries_of(std::span<const Measured> side) {
  std::vector<RecordingEntries> entries;
  for (const Measured& one : side) entries.push_back({&one.reports->rows, one.row_units});
  return entries;
}

}  // namespace

bool can_compare_steady_states(std::span<const std::optional<SteadyState>> steady_state, const ComparisonQuery& query) {
  if (query.whole_run || query.per == "run" || query.per == "epoch") return false;
  return std::all_of(steady_state.begin(), steady_state.end(),
                     [](const auto& one) { return one && one->energy_j > 0; });
}

Result<RunDifference> compare_runs(std::span<const RunReports> a, std::span<const RunReports> b,
                                   const ComparisonQuery& query) {
  std::vector<Measured> all;
  for (const RunReports& one : a) all.push_back({&one, whole_rates(one)});
  for (const RunReports& one : b) all.push_back({&one, whole_rates(one)});
  for (const Measured& one : all) {
    if (!one.rates.provenance) {
      return Error{ErrorCode::unsupported,
                   fmt::format("{} contains no energies to compare", fmt::join(one.reports->rows.inputs, " ")),
                   "run joulemap doctor to see what can be measured"};
    }
    if (one.rates.provenance != all.front().rates.provenance) {
      return Error{ErrorCode::unsupported,
                   "some recordings are measured and others are only estimated: they cannot be compared",
                   "record all of them where the same sensors are readable"};
    }
  }
  const SharedDomains shared = shared_domains(all);
  if (shared.common.empty()) {
    return Error{ErrorCode::unsupported, "the recordings have no domain in common",
                 "record on machines with the same sensors"};
  }
  const Result<std::string> per = unit_to_use(all, query.per);
  if (!per) return per.error();

  statistics::VariationPrior prior = kRunVariationPrior;
  if (query.run_sd) prior.relative_sd = *query.run_sd;
  const ReportResult& first = a.front().rows;
  RunDifference difference{.by = first.by, .per = *per, .interval = first.interval};
  difference.is_steady =
      std::all_of(all.begin(), all.end(), [](const Measured& one) { return one.reports->is_steady; });
  difference.variation = {prior.relative_sd, prior.degrees_of_freedom, query.run_sd.has_value()};
  for (Measured& one : all) {
    keep_common(one, shared.common);
    measure(one, *per, difference.is_steady);
  }
  const auto of_a = std::span<const Measured>(all).first(a.size());
  const auto of_b = std::span<const Measured>(all).subspan(a.size());
  difference.a = side_of(of_a);
  difference.b = side_of(of_b);
  difference.domains.assign(shared.common.begin(), shared.common.end());
  const statistics::RunContrast contrast = contrast_totals(of_a, of_b, prior);
  judge_total(difference, contrast);
  state_power(difference, contrast, prior);
  compare_entries(entries_of(of_a), entries_of(of_b), contrast, difference);
  difference.failure_threshold = query.failure_threshold;
  difference.failed = query.failure_threshold && difference.total.verdict == Verdict::grew &&
                      difference.total.relative_change.value_or(0) > *query.failure_threshold;
  add_recording_diagnostics(difference, a, b);
  add_host_waiting_diagnostic(difference, a, b);
  add_comparison_limit_diagnostics(difference, shared.others, query.whole_run);
  return difference;
}

}  // namespace joulemap::attribution
