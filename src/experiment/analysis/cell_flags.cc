// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/amount_text.h"
#include "experiment/analysis/validity.h"
#include "statistics/bootstrap.h"
#include "statistics/series.h"

namespace joulemap::experiment {
namespace {

constexpr std::size_t kMinRowsForTrend = 4;  // below this n no order of values is significant
constexpr std::size_t kMinRowsForStandardDeviation = 3;
constexpr double kMaxUnflaggedVariation = 0.1;  // standard deviation / mean above which a cell is flagged
constexpr double kMinFlaggedChange =
    0.005;  // fraction of the median; smaller changes and drifts are not flagged even if
            // significant
constexpr double kSampleSumTolerance = 0.005;       // largest difference of sum of samples and integral, as a fraction
constexpr double kMaxPowerAboveIdleFraction = 0.2;  // power above idle, as a fraction of idle power, that is flagged
constexpr double kMaxPowerAboveIdle_w = 3;          // power above idle that sensor noise can explain

struct CellView {
  const ExperimentData& data;
  const ExperimentTable& table;
  const CellRows& cell;
  const ExperimentRow& row(std::size_t index) const { return data.rows[cell.done_rows[index]]; }
};

// "rows 3, 7 and 12": row numbers as in the run table.
std::string row_numbers_text(const std::vector<std::size_t>& numbers) {
  std::string text = numbers.size() == 1 ? "row " : "rows ";
  constexpr std::size_t kMost = 6;
  for (std::size_t i = 0; i < std::min(numbers.size(), kMost); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ", numbers[i]);
  }
  if (numbers.size() > kMost) text += fmt::format(" and {} more", numbers.size() - kMost);
  return text;
}

std::string describe_measure(const Measure& measure) {
  if (measure.kind == MeasureKind::energy) return "energy";
  if (measure.kind == MeasureKind::time) return "run time";
  return measure.kind == MeasureKind::domain ? "energy of " + measure.name : measure.name;
}

void flag_failed_rows(const CellView& view, std::vector<AnalysisFlag>& flags) {
  const CellRows& cell = view.cell;
  if (cell.failed_row_count > 0) {
    flags.push_back(
        {"failed_rows",
         fmt::format("{} of {} rows failed and are excluded", cell.failed_row_count, cell.planned_row_count),
         "check their stderr.txt, then run joulemap experiment resume"});
  }
  if (const std::size_t unfinished_row_count = cell.planned_row_count - cell.failed_row_count - cell.done_rows.size();
      unfinished_row_count > 0) {
    flags.push_back({"unfinished_rows",
                     fmt::format("{} of {} rows have not run yet", unfinished_row_count, cell.planned_row_count), ""});
  }
  std::map<std::string, std::pair<std::uint64_t, std::string>> diagnostics_by_code;
  for (std::size_t i = 0; i < cell.done_rows.size(); ++i) {
    for (const Diagnostic& diagnostic : view.row(i).diagnostics.list()) {
      auto& [count, message] = diagnostics_by_code[diagnostic.code];
      ++count;
      if (message.empty()) message = diagnostic.message;
    }
  }
  for (const auto& [code, count_and_message] : diagnostics_by_code) {
    flags.push_back(
        {code,
         fmt::format("{} of {} rows: {}", count_and_message.first, cell.done_rows.size(), count_and_message.second),
         ""});
  }
}

void flag_implausible_energies(const CellView& view, std::vector<AnalysisFlag>& flags) {
  std::vector<std::size_t> missing_rows;
  std::map<std::string, std::vector<std::size_t>> rows_with_zero_energy;
  std::map<std::string, std::vector<std::size_t>> rows_with_negative_energy;
  for (std::size_t i = 0; i < view.cell.done_rows.size(); ++i) {
    const ExperimentRow& row = view.row(i);
    if (!comparable_energy_j(view.table.energy_basis, row)) missing_rows.push_back(row.number);
    for (const DomainEnergy& domain : row.domains) {
      if (domain.joules && *domain.joules == 0) rows_with_zero_energy[domain.name].push_back(row.number);
      if (domain.joules && *domain.joules < 0) rows_with_negative_energy[domain.name].push_back(row.number);
    }
  }
  if (!missing_rows.empty()) {
    const std::string provenance_text =
        view.table.energy_basis.provenance == Provenance::measured ? "measured" : "estimated";
    flags.push_back({"missing_energy",
                     fmt::format("{}: no {} energy to compare", row_numbers_text(missing_rows), provenance_text), ""});
  }
  for (const auto& [name, rows] : rows_with_zero_energy) {
    flags.push_back({"zero_energy",
                     fmt::format("{}: energy of {} is 0 J, which is impossible", row_numbers_text(rows), name),
                     "run joulemap doctor: the sensor may be frozen"});
  }
  for (const auto& [name, rows] : rows_with_negative_energy) {
    flags.push_back({"negative_energy", fmt::format("{}: energy of {} is negative", row_numbers_text(rows), name), ""});
  }
}

void flag_disturbed_time(const CellView& view, std::string_view code, std::string_view disturbance,
                         std::optional<double> ExperimentRow::*share, std::vector<AnalysisFlag>& flags) {
  std::vector<std::size_t> rows;
  double max_share = 0;
  for (std::size_t i = 0; i < view.cell.done_rows.size(); ++i) {
    const ExperimentRow& row = view.row(i);
    if (!(row.*share) || *(row.*share) <= kMaxUndisturbedTimeShare) continue;
    rows.push_back(row.number);
    max_share = std::max(max_share, *(row.*share));
  }
  if (rows.empty()) return;
  flags.push_back(
      {std::string(code),
       fmt::format("{}: {}, up to {:.0f} % of the time", row_numbers_text(rows), disturbance, max_share * 100), ""});
}

void flag_sample_sum_mismatch(const CellView& view, std::vector<AnalysisFlag>& flags) {
  double min_deviation = 0;
  double max_deviation = 0;
  std::size_t differing_row_count = 0;
  std::string name;
  for (std::size_t i = 0; i < view.cell.done_rows.size(); ++i) {
    for (const DomainEnergy& domain : view.row(i).domains) {
      for (const CrossCheck& check : domain.checks) {
        if (check.channel != "sum of samples" || !domain.joules || *domain.joules <= 0) continue;
        const double relative_deviation = check.joules / *domain.joules - 1;
        min_deviation = std::min(min_deviation, relative_deviation);
        max_deviation = std::max(max_deviation, relative_deviation);
        name = domain.name;
        if (std::abs(relative_deviation) > kSampleSumTolerance) ++differing_row_count;
      }
    }
  }
  if (differing_row_count == 0) return;
  flags.push_back({"sum_of_samples",
                   fmt::format("{}: the published sum of samples assumes 1 s between samples and differs by {:+.1f} to "
                               "{:+.1f} % from the integral over the run; {} of {} rows by more than {} %",
                               name, min_deviation * 100, max_deviation * 100, differing_row_count,
                               view.cell.done_rows.size(), kSampleSumTolerance * 100),
                   "this analysis uses the integral"});
}

// Compares the power at the start of each row with the idle power: the row's baseline, else the first row of the cell.
// Uses one provenance for all rows: measured if any row has it.
void flag_power_above_idle(const CellView& view, std::vector<AnalysisFlag>& flags) {
  const bool is_measured = std::any_of(view.cell.done_rows.begin(), view.cell.done_rows.end(),
                                       [&](std::size_t row) { return view.data.rows[row].first.measured.has_value(); });
  const Provenance provenance = is_measured ? Provenance::measured : Provenance::estimated;
  std::optional<double> idle_w;
  std::vector<double> later_start_powers_w;
  for (std::size_t i = 0; i < view.cell.done_rows.size(); ++i) {
    const std::optional<double> first_w = power_by_provenance(view.row(i).first, provenance);
    if (!first_w) continue;
    const std::optional<double> row_baseline_w = power_by_provenance(view.row(i).baseline, provenance);
    if (row_baseline_w || idle_w) later_start_powers_w.push_back(*first_w);
    if (!idle_w) idle_w = row_baseline_w ? row_baseline_w : first_w;
  }
  if (!idle_w || later_start_powers_w.size() < 2) return;
  const double usual_w = statistics::median_of(later_start_powers_w);
  if (!is_above_idle(usual_w, *idle_w)) return;
  flags.push_back(
      {"cool_down",
       fmt::format("power does not return to idle between rows: rows start at {:.1f} W (median), {} {:.1f} W", usual_w,
                   power_by_provenance(view.row(0).baseline, provenance) ? "idle power is" : "the first started at",
                   *idle_w),
       "wait until power and temperature are near the baseline instead of a fixed time"});
}

std::string percent_change_text(double old_value, double new_value) {
  return old_value != 0 ? fmt::format(", {:+.1f} %", (new_value / old_value - 1) * 100) : "";
}

// Flags a change point and a drift. Energy and time usually change together; each measure gets its own flag.
void flag_trend(const Measure& measure, const MeasureSummary& summary, double alpha, std::vector<AnalysisFlag>& flags) {
  const std::vector<double>& values = summary.values;
  if (values.size() < kMinRowsForTrend) return;
  const double size = std::abs(summary.median);
  const auto change = statistics::find_change_point(values);
  if (change && change->test.p <= alpha &&
      std::abs(change->median_after - change->median_before) > kMinFlaggedChange * size) {
    const bool is_warm_up = change->first_after_change * 2 <= values.size();
    flags.push_back(
        {is_warm_up ? "warm_up" : "change_point",
         fmt::format("{} changes at repetition {} of {}: from {} to {}{} (medians, p = {})", describe_measure(measure),
                     change->first_after_change + 1, values.size(), amount_text(change->median_before, measure.unit),
                     amount_text(change->median_after, measure.unit),
                     percent_change_text(change->median_before, change->median_after), p_value_text(change->test.p)),
         is_warm_up ? "the mean is not representative: warm up first, or exclude the first rows and report it"
                    : "conditions changed during the experiment: compare only rows with the same conditions"});
  }
  const statistics::Trend trend = statistics::mann_kendall_trend(values);
  const double overall_change = trend.slope * static_cast<double>(values.size() - 1);
  if (trend.test.p <= alpha && std::abs(overall_change) > kMinFlaggedChange * size) {
    flags.push_back(
        {"drift",
         fmt::format("{} drifts with the order of rows: {} to {} over {} rows (tau = {:+.2f}, p = {})",
                     describe_measure(measure), amount_text(values.front(), measure.unit),
                     amount_text(values.back(), measure.unit), values.size(), trend.tau, p_value_text(trend.test.p)),
         "interleave the cells (order = \"blocked-random\")"});
  }
}

void flag_large_spread(const CellView& view, const Measure& measure, const MeasureSummary& summary,
                       std::size_t measure_index, std::vector<AnalysisFlag>& flags) {
  const std::vector<double>& values = summary.values;
  if (values.size() < kMinRowsForStandardDeviation) return;
  const bool is_constant = std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
  if (is_constant) {
    const bool are_values_zero = values[0] == 0;
    flags.push_back({are_values_zero ? "all_zero" : "constant",
                     fmt::format("{} is {} in all {} rows", describe_measure(measure),
                                 are_values_zero ? "0" : "the same", values.size()),
                     "a constant value is often not a measurement"});
    return;
  }
  if (summary.mean != 0 && measure.kind != MeasureKind::metric &&
      summary.standard_deviation.value_or(0) > kMaxUnflaggedVariation * std::abs(summary.mean)) {
    flags.push_back({"large_spread",
                     fmt::format("{}: the standard deviation is {:.0f} % of the mean", describe_measure(measure),
                                 *summary.standard_deviation / std::abs(summary.mean) * 100),
                     "inspect the individual rows before the mean"});
  }
  if (summary.outliers.empty()) return;
  std::vector<std::size_t> rows_with_value;  // numbers of the rows that have a value
  for (const std::size_t row : view.cell.done_rows) {
    if (view.table.values_by_row[row][measure_index]) rows_with_value.push_back(view.data.rows[row].number);
  }
  std::vector<std::size_t> numbers;
  for (const std::size_t index : summary.outliers) numbers.push_back(rows_with_value[index]);
  flags.push_back({"outlier",
                   fmt::format("{}: {}; not excluded", describe_measure(measure),
                               row_numbers_text(numbers) + (numbers.size() == 1 ? " is an outlier" : " are outliers")),
                   ""});
}

}  // namespace

bool is_above_idle(double power_w, double idle_w) {
  return power_w >= idle_w * (1 + kMaxPowerAboveIdleFraction) && power_w >= idle_w + kMaxPowerAboveIdle_w;
}

std::vector<AnalysisFlag> compute_cell_flags(const ExperimentData& data, const ExperimentTable& table,
                                             const CellRows& cell,
                                             const std::vector<std::optional<MeasureSummary>>& measure_summaries,
                                             double alpha) {
  const CellView view{data, table, cell};
  std::vector<AnalysisFlag> flags;
  flag_failed_rows(view, flags);
  flag_implausible_energies(view, flags);
  flag_disturbed_time(view, "throttled", "clocks were throttled by temperature or power",
                      &ExperimentRow::throttled_share, flags);
  flag_disturbed_time(view, "stolen_time", "a hypervisor took CPU time", &ExperimentRow::cpu_steal_share, flags);
  flag_power_above_idle(view, flags);
  flag_sample_sum_mismatch(view, flags);
  for (std::size_t i = 0; i < measure_summaries.size(); ++i) {
    if (!measure_summaries[i]) continue;
    const std::size_t cell_flag_count = flags.size();
    flag_large_spread(view, table.measures[i], *measure_summaries[i], i, flags);
    flag_trend(table.measures[i], *measure_summaries[i], alpha, flags);
    for (std::size_t k = cell_flag_count; k < flags.size(); ++k) flags[k].measure = i;
  }
  return flags;
}

}  // namespace joulemap::experiment
