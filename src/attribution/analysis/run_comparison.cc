// SPDX-License-Identifier: Apache-2.0
#include "attribution/analysis/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "attribution/analysis/compared_entries.h"
#include "attribution/analysis/comparison_diagnostics.h"
#include "attribution/ledger/ledger.h"
#include "base/quadrature.h"
#include "model/background_row.h"
#include "model/run_rates.h"
#include "statistics/normal.h"

namespace joulemap::attribution {
namespace {

constexpr std::array<std::size_t, 3> kAdvisedRecordingCounts = {1, 3, 5};
// Relative standard error that two estimates by one power model of one machine do not share: programs differ in the
// power of their instructions. An assumption; the model's scale, which is less certain, cancels in their ratio.
constexpr double kIndependentEstimateError = 0.1;
// The same where other processes used the machine much more during one recording than during another: threads that wait
// for each other spin longer, and caches are shared, so that the same work takes up to several times the CPU time.
constexpr double kLoadedEstimateRelativeError = 0.5;
constexpr double kMaxLoadDifference = 0.2;  // of the fractions of the energy that other processes used

std::optional<double> unit_count(const RunRates& rates, std::string_view unit_name) {
  if (unit_name == "sample") return rates.samples;
  if (unit_name == "step") return rates.steps;
  if (unit_name == "epoch") return rates.epochs;
  return 1;
}

// Rates of the whole run, even if the rows cover only a part of it.
RunRates compute_whole_run_rates(const RunReports& reports) {
  ReportResult whole_run_report = reports.rows;
  whole_run_report.is_clipped = false;
  RunRates rates = compute_run_rates(whole_run_report);
  // Fractions of steps at the edges count, and steps that the recording lost leave the number unknown.
  const bool has_fractions = rates.steps && *rates.steps != std::round(*rates.steps);
  if (has_fractions || reports.rows.lacks_steps) return rates;
  const auto steps = std::ranges::count(reports.steps, false, &StepEnergy::is_evaluation);
  if (steps > 0) rates.steps = static_cast<double>(steps);
  return rates;
}

// A recording, and its energy in the domains that all recordings have.
struct RecordingWithRates {
  const RunReports* reports = nullptr;
  RunRates rates = {};
  double common_domain_fraction = 1;  // fraction of the energy in domains that all recordings contain
  // Energy of the command alone in the time of the rows. None: other processes are included.
  std::optional<double> command_j = {};
  double command_energy_fraction = 1;  // its fraction of the energy of the machine
  double sensor_relative_error = 0;    // relative standard error from the sensors
  ComparedRecording recording = {};
  double units_in_rows = 1;
  double time_s = 0;  // per unit
};

std::set<std::string> find_counted_domains(const ReportResult& result, Provenance provenance) {
  const std::optional<EnergyWithProvenance> sum = energy_by_provenance(total_energy(result.domains), provenance);
  return sum ? std::set<std::string>(sum->domains.begin(), sum->domains.end()) : std::set<std::string>();
}

Result<std::string> choose_comparison_unit(const std::vector<RecordingWithRates>& recordings,
                                           const std::string& requested_unit) {
  const auto has_unit = [&](std::string_view unit_name) {
    return std::all_of(recordings.begin(), recordings.end(), [&](const RecordingWithRates& recording_with_rates) {
      return unit_count(recording_with_rates.rates, unit_name).has_value();
    });
  };
  if (!requested_unit.empty()) {
    if (has_unit(requested_unit)) return requested_unit;
    return Error{ErrorCode::usage, fmt::format("not all recordings have {}s", requested_unit),
                 "compare whole runs with --per run"};
  }
  for (const char* unit_name : {"sample", "step", "epoch"}) {
    if (has_unit(unit_name)) return std::string(unit_name);
  }
  return std::string("run");
}

void set_common_domain_fraction(RecordingWithRates& recording_with_rates, const std::set<std::string>& domains) {
  const std::vector<DomainEnergy>& rows = recording_with_rates.reports->rows.domains;
  const Provenance provenance = recording_with_rates.rates.provenance.value_or(Provenance::measured);
  const std::optional<EnergyWithProvenance> domain_total = energy_by_provenance(total_energy(rows), provenance);
  const std::optional<EnergyWithProvenance> common_total =
      energy_by_provenance(total_energy(rows, domains), provenance);
  const double common_energy_j = common_total ? common_total->joules : 0;
  if (domain_total && domain_total->joules > 0)
    recording_with_rates.common_domain_fraction = common_energy_j / domain_total->joules;
  if (common_energy_j > 0)
    recording_with_rates.sensor_relative_error =
        common_total->uncertainty_j.value_or(0) / statistics::kNormalHalfWidth90 / common_energy_j;
}

// Whether the energy of steps is the sum of the command's rows, which includes outlier steps. Rows of a probed recording
// also cover what follows its steps; there, the command has its fraction of the energy of the steps.
bool sums_command_rows(const RecordingWithRates& recording_with_rates) {
  return recording_with_rates.command_j && !recording_with_rates.reports->rows.probe;
}

// What the comparison excludes: time and energy of the whole run minus those of the compared steps.
SteadyStateExclusion compute_steady_state_exclusion(const RecordingWithRates& recording_with_rates) {
  const RunReports& reports = *recording_with_rates.reports;
  const SteadyState& steady_state = *reports.steady_state;
  SteadyStateExclusion excluded_part{.warm_up_steps = steady_state.first_step};
  double compared_s = steady_state.end_s - steady_state.begin_s;
  double compared_energy_j = recording_with_rates.command_j.value_or(0);
  if (!sums_command_rows(recording_with_rates)) {
    excluded_part.outlier_steps = steady_state.outlier_steps;
    compared_s = steady_state.time_s * static_cast<double>(steady_state.steps - steady_state.outlier_steps);
    compared_energy_j = recording_with_rates.command_energy_fraction * steady_state.energy_sum_j;
  }
  const double other_processes_j = recording_with_rates.command_j ? reports.whole_background_j : 0;
  excluded_part.time_s = std::max(reports.elapsed_s - compared_s, 0.0);
  if (reports.energy_j)
    excluded_part.energy_j = std::max(*reports.energy_j - other_processes_j - compared_energy_j, 0.0);
  excluded_part.is_settled = steady_state.is_settled;
  return excluded_part;
}

void compute_per_unit_values(RecordingWithRates& recording_with_rates, std::string_view unit_name, bool is_steady) {
  const RunReports& reports = *recording_with_rates.reports;
  ComparedRecording& recording = recording_with_rates.recording;
  if (!reports.rows.inputs.empty()) recording.input = reports.rows.inputs.front();
  recording.steps = recording_with_rates.rates.steps.value_or(0);
  const double units = unit_count(recording_with_rates.rates, unit_name).value_or(1);
  double relative_standard_error = 0;
  if (reports.steady_state && reports.steady_state->energy_j > 0)
    relative_standard_error = reports.steady_state->standard_error_j / reports.steady_state->energy_j;
  recording.within_run_relative_error =
      add_in_quadrature(recording_with_rates.sensor_relative_error, relative_standard_error);
  if (is_steady) {
    const SteadyState& steady_state = *reports.steady_state;
    const double units_per_step = units / recording.steps;
    recording_with_rates.units_in_rows = units_per_step * reports.steps_in_rows;
    recording.exclusion = compute_steady_state_exclusion(recording_with_rates);
    recording.units = units_per_step * static_cast<double>(steady_state.steps - recording.exclusion->outlier_steps);
    if (sums_command_rows(recording_with_rates)) {
      recording.energy_j = recording_with_rates.common_domain_fraction * *recording_with_rates.command_j /
                           recording_with_rates.units_in_rows;
      recording_with_rates.time_s = (steady_state.end_s - steady_state.begin_s) / recording.units;
    } else {
      recording.energy_j = recording_with_rates.common_domain_fraction * recording_with_rates.command_energy_fraction *
                           steady_state.energy_j / units_per_step;
      recording_with_rates.time_s = steady_state.time_s / units_per_step;
    }
  } else {
    recording.units = recording_with_rates.units_in_rows = units;
    recording.energy_j = recording_with_rates.common_domain_fraction *
                         recording_with_rates.command_j.value_or(recording_with_rates.rates.energy_j.value_or(0)) /
                         units;
    recording_with_rates.time_s = recording_with_rates.rates.time_s / units;
  }
}

ComparedRun make_compared_run(std::span<const RecordingWithRates> side) {
  ComparedRun run{.units = 0, .time_s = 0.0};
  run.command = side.front().reports->rows.command;
  run.is_estimated = side.front().rates.is_estimated();
  const auto n = static_cast<double>(side.size());
  for (const RecordingWithRates& recording_with_rates : side) {
    const std::vector<std::string>& inputs = recording_with_rates.reports->rows.inputs;
    run.inputs.insert(run.inputs.end(), inputs.begin(), inputs.end());
    run.recordings.push_back(recording_with_rates.recording);
    run.units += recording_with_rates.recording.units;
    *run.time_s += recording_with_rates.time_s / n;
    const std::optional<SteadyState>& steady_state = recording_with_rates.reports->steady_state;
    if (!steady_state || steady_state->energy_j <= 0) continue;
    run.mean_step_half_width = run.mean_step_half_width.value_or(0) + statistics::kNormalHalfWidth90 *
                                                                          steady_state->standard_error_j /
                                                                          steady_state->energy_j / n;
  }
  return run;
}

statistics::RunContrast estimate_total_contrast(std::span<const RecordingWithRates> a,
                                                std::span<const RecordingWithRates> b,
                                                const statistics::VariationPrior& prior) {
  std::array<std::vector<double>, 2> energy_j;
  std::array<std::vector<double>, 2> within_run_errors_j;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    for (const RecordingWithRates& recording_with_rates : side == 0 ? a : b) {
      energy_j[side].push_back(recording_with_rates.recording.energy_j);
      within_run_errors_j[side].push_back(recording_with_rates.recording.within_run_relative_error *
                                          recording_with_rates.recording.energy_j);
    }
  }
  return statistics::contrast_runs({energy_j[0], within_run_errors_j[0]}, {energy_j[1], within_run_errors_j[1]}, prior);
}

void fill_in_total_difference(RunDifference& difference, const statistics::RunContrast& contrast) {
  const double half_width_factor = statistics::two_sided_t_quantile(difference.interval, contrast.degrees_of_freedom);
  const auto side = [&](double mean_j, double error_j) {
    return ComparedEnergy{mean_j, mean_j - half_width_factor * error_j, mean_j + half_width_factor * error_j};
  };
  DifferenceEntry& total = difference.total;
  total.name = total.display_name = "total";
  total.a = side(contrast.mean_a, contrast.standard_error_a);
  total.b = side(contrast.mean_b, contrast.standard_error_b);
  total.difference_j = contrast.difference();
  total.low_j = *total.difference_j - half_width_factor * contrast.standard_error();
  total.high_j = *total.difference_j + half_width_factor * contrast.standard_error();
  if (contrast.mean_a > 0) total.relative_change = *total.difference_j / contrast.mean_a;
  total.verdict = *total.low_j > 0    ? ChangeVerdict::grew
                  : *total.high_j < 0 ? ChangeVerdict::shrank
                                      : ChangeVerdict::within_noise;
}

// Any growth from 0 J exceeds every relative threshold.
bool grew_by_more_than(const DifferenceEntry& total, double relative_threshold) {
  return total.verdict == ChangeVerdict::grew &&
         (!total.relative_change || *total.relative_change > relative_threshold);
}

void set_detectable_changes(RunDifference& difference, const statistics::RunContrast& contrast,
                            const statistics::VariationPrior& prior) {
  difference.variation.sd = contrast.relative_sd;
  difference.variation.degrees_of_freedom = contrast.degrees_of_freedom;
  const auto detectable_change = [&](double t_degrees_of_freedom, std::size_t recordings_a, std::size_t recordings_b) {
    return statistics::smallest_detectable_change(contrast.relative_sd, t_degrees_of_freedom, recordings_a,
                                                  recordings_b, difference.interval);
  };
  difference.smallest_detectable_change =
      detectable_change(contrast.degrees_of_freedom, difference.a.recordings.size(), difference.b.recordings.size());
  for (const std::size_t runs : kAdvisedRecordingCounts) {
    const double t_degrees_of_freedom = prior.degrees_of_freedom + 2 * static_cast<double>(runs - 1);
    difference.detectable_changes.push_back({runs, detectable_change(t_degrees_of_freedom, runs, runs)});
  }
}

// Domains that every recording contains, and those that only some contain.
struct CommonAndPartialDomains {
  std::set<std::string> common_domains;
  std::set<std::string> partial_domains;
};

CommonAndPartialDomains find_common_and_partial_domains(const std::vector<RecordingWithRates>& recordings) {
  CommonAndPartialDomains common_and_partial_domains;
  std::set<std::string> domain_union;
  for (const RecordingWithRates& recording_with_rates : recordings) {
    const std::set<std::string> names =
        find_counted_domains(recording_with_rates.reports->rows, *recording_with_rates.rates.provenance);
    if (&recording_with_rates == &recordings.front()) common_and_partial_domains.common_domains = names;
    domain_union.insert(names.begin(), names.end());
    std::erase_if(common_and_partial_domains.common_domains,
                  [&](const std::string& name) { return !names.contains(name); });
  }
  std::set_difference(
      domain_union.begin(), domain_union.end(), common_and_partial_domains.common_domains.begin(),
      common_and_partial_domains.common_domains.end(),
      std::inserter(common_and_partial_domains.partial_domains, common_and_partial_domains.partial_domains.end()));
  return common_and_partial_domains;
}

// Whether all energies are estimates by one power model, of one machine. Its CPU time is known, its power is not.
bool are_estimates_of_one_host(const std::vector<RecordingWithRates>& recordings) {
  return std::ranges::all_of(recordings, [&](const RecordingWithRates& recording_with_rates) {
    const std::vector<std::string>& hosts = recording_with_rates.reports->rows.hosts;
    return recording_with_rates.rates.is_estimated() && hosts.size() == 1 &&
           hosts == recordings.front().reports->rows.hosts;
  });
}

// Leaves out other processes, whose CPU time differs from run to run, and the modules that --probe replayed.
void exclude_other_processes(RecordingWithRates& recording_with_rates) {
  const ReportResult& rows = recording_with_rates.reports->rows;
  const double machine_j = preferred_energy(rows.totals).value_or(EnergyWithProvenance{}).joules;
  const double background_j = recording_with_rates.reports->background_j;
  recording_with_rates.command_j =
      std::max(machine_j - background_j - recording_with_rates.reports->replayed_modules_j, 0.0);
  const double meanwhile_j = probing_time_fraction(rows) * background_j;  // of others, while modules were replayed
  const double machine_without_probing_j = *recording_with_rates.command_j + background_j - meanwhile_j;
  if (machine_without_probing_j > 0)
    recording_with_rates.command_energy_fraction =
        std::clamp(*recording_with_rates.command_j / machine_without_probing_j, 0.0, 1.0);
}

// Whether other processes used the machine much more during some recordings than during others.
bool has_unequal_load(std::span<const RecordingWithRates> recordings) {
  const auto [min_fraction_recording, max_fraction_recording] =
      std::ranges::minmax(recordings, {}, &RecordingWithRates::command_energy_fraction);
  return max_fraction_recording.command_energy_fraction - min_fraction_recording.command_energy_fraction >
         kMaxLoadDifference;
}

// Limits the interval of an estimated row to the error that two estimates of it by one power model do not share. The
// CPU time of the row is known; its power, which is not, is that of the same code in both.
void limit_to_independent_error(ReportRow& row, double independent_relative_error) {
  if (!row.energy_j || !row.low_j || !row.high_j) return;
  const double half_width_j = std::min(0.5 * (*row.high_j - *row.low_j),
                                       statistics::kNormalHalfWidth90 * independent_relative_error * *row.energy_j);
  row.low_j = *row.energy_j - half_width_j;
  row.high_j = *row.energy_j + half_width_j;
}

// Entries of one side, and copies of the reports that they refer to, if rows are left out.
struct ComparedSideEntries {
  std::vector<ReportResult> filtered_reports;
  std::vector<RecordingEntries> entries;
};

// `independent_relative_error`: set if the energies are estimates without other processes.
ComparedSideEntries make_side_entries(std::span<const RecordingWithRates> side,
                                      std::optional<double> independent_relative_error) {
  ComparedSideEntries side_entries;
  side_entries.filtered_reports.reserve(side.size());
  for (const RecordingWithRates& recording_with_rates : side) {
    const ReportResult* rows = &recording_with_rates.reports->rows;
    if (independent_relative_error) {
      side_entries.filtered_reports.push_back(*rows);
      ReportResult& own_rows = side_entries.filtered_reports.back();
      std::erase_if(own_rows.rows, is_background_row);
      if (own_rows.by != row_level_name(RowLevel::domain)) {  // domains contain other processes
        for (ReportRow& row : own_rows.rows) limit_to_independent_error(row, *independent_relative_error);
      }
      rows = &side_entries.filtered_reports.back();
    }
    side_entries.entries.push_back({rows, recording_with_rates.units_in_rows});
  }
  return side_entries;
}

}  // namespace

bool can_compare_steady_states(std::span<const std::optional<SteadyState>> steady_state, const ComparisonQuery& query) {
  if (query.whole_run || query.per == "run" || query.per == "epoch") return false;
  return std::all_of(steady_state.begin(), steady_state.end(),
                     [](const auto& run_steady_state) { return run_steady_state && run_steady_state->energy_j > 0; });
}

Result<RunDifference> compare_runs(std::span<const RunReports> a, std::span<const RunReports> b,
                                   const ComparisonQuery& query) {
  std::vector<RecordingWithRates> recordings;
  for (const RunReports& run_reports : a) recordings.push_back({&run_reports, compute_whole_run_rates(run_reports)});
  for (const RunReports& run_reports : b) recordings.push_back({&run_reports, compute_whole_run_rates(run_reports)});
  for (const RecordingWithRates& recording_with_rates : recordings) {
    if (!recording_with_rates.rates.provenance) {
      return Error{
          ErrorCode::unsupported,
          fmt::format("{} contains no energies to compare", fmt::join(recording_with_rates.reports->rows.inputs, " ")),
          "run joulemap doctor to see what can be measured"};
    }
    if (recording_with_rates.rates.provenance != recordings.front().rates.provenance) {
      return Error{ErrorCode::unsupported,
                   "some recordings are measured and others are only estimated: they cannot be compared",
                   "record all of them where the same sensors are readable"};
    }
  }
  const CommonAndPartialDomains common_and_partial_domains = find_common_and_partial_domains(recordings);
  if (common_and_partial_domains.common_domains.empty()) {
    return Error{ErrorCode::unsupported, "the recordings have no domain in common",
                 "record on machines with the same sensors"};
  }
  const Result<std::string> unit_name = choose_comparison_unit(recordings, query.per);
  if (!unit_name) return unit_name.error();

  statistics::VariationPrior prior = kRunVariationPrior;
  if (query.run_sd) prior.relative_sd = *query.run_sd;
  const ReportResult& first_report = a.front().rows;
  RunDifference difference{.by = first_report.by, .per = *unit_name, .interval = first_report.interval};
  difference.is_steady = std::all_of(
      recordings.begin(), recordings.end(),
      [](const RecordingWithRates& recording_with_rates) { return recording_with_rates.reports->is_steady; });
  difference.variation = {prior.relative_sd, prior.degrees_of_freedom, query.run_sd.has_value()};
  const bool compares_command = are_estimates_of_one_host(recordings);
  for (RecordingWithRates& recording_with_rates : recordings) {
    set_common_domain_fraction(recording_with_rates, common_and_partial_domains.common_domains);
    if (compares_command) exclude_other_processes(recording_with_rates);
  }
  std::optional<double> independent_error;
  if (compares_command)
    independent_error = has_unequal_load(recordings) ? kLoadedEstimateRelativeError : kIndependentEstimateError;
  for (RecordingWithRates& recording_with_rates : recordings) {
    recording_with_rates.sensor_relative_error =
        std::min(recording_with_rates.sensor_relative_error,
                 independent_error.value_or(recording_with_rates.sensor_relative_error));
    compute_per_unit_values(recording_with_rates, *unit_name, difference.is_steady);
  }
  const auto recordings_a = std::span<const RecordingWithRates>(recordings).first(a.size());
  const auto recordings_b = std::span<const RecordingWithRates>(recordings).subspan(a.size());
  difference.a = make_compared_run(recordings_a);
  difference.b = make_compared_run(recordings_b);
  difference.domains.assign(common_and_partial_domains.common_domains.begin(),
                            common_and_partial_domains.common_domains.end());
  const statistics::RunContrast contrast = estimate_total_contrast(recordings_a, recordings_b, prior);
  fill_in_total_difference(difference, contrast);
  set_detectable_changes(difference, contrast, prior);
  compare_entries(make_side_entries(recordings_a, independent_error).entries,
                  make_side_entries(recordings_b, independent_error).entries, contrast, difference);
  difference.failure_threshold = query.failure_threshold;
  difference.failed = query.failure_threshold && grew_by_more_than(difference.total, *query.failure_threshold);
  add_recording_diagnostics(difference, a, b);
  if (compares_command) add_estimate_diagnostic(difference);
  if (compares_command && has_unequal_load(recordings)) add_unequal_load_diagnostic(difference);
  add_host_waiting_diagnostic(difference, a, b);
  add_comparison_limit_diagnostics(difference, common_and_partial_domains.partial_domains, query.whole_run);
  return difference;
}

}  // namespace joulemap::attribution
