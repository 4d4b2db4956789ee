// SPDX-License-Identifier: Apache-2.0
#include "report/text/experiment_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text/diagnostics_text.h"
#include "report/text/energy_rows.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

std::string_view row_state_word(ExperimentRowState state) {
  return state == ExperimentRowState::todo ? "to do" : name_of(state);
}

std::string experiment_heading(const ExperimentPlan& plan) {
  std::string text = fmt::format("{}: {} cells, {} repetitions, {} rows, {} (seed {})\n", printable(plan.name),
                                 plan.cells, plan.blocks, plan.rows.size(), plan.order, plan.seed);
  for (const ExperimentFactor& factor : plan.factors) {
    std::string levels;
    for (const std::string& level : factor.levels) levels += (levels.empty() ? "" : ", ") + printable(level);
    text += wrap_text(fmt::format("  {}: ", printable(factor.name)), levels);
  }
  return text;
}

std::string plan_row_line(const ExperimentPlan& plan, const ExperimentPlanRow& row, const TextStyle& style) {
  std::string line = fmt::format(" {:>5} {:>6}  {:<8}", row.number, row.block, row_state_word(row.state));
  line += row.elapsed_s ? fmt::format(" {:>8}", duration_text(*row.elapsed_s)) : std::string(9, ' ');
  const bool is_estimated = row.provenance == Provenance::estimated;
  line += row.energy_j ? fmt::format(" {:>9} J{}", format_number(*row.energy_j), is_estimated ? " est." : "")
                       : std::string(12, ' ');
  const std::size_t used_columns = line.size() + 2;
  const std::size_t available_columns = style.columns > used_columns + 20 ? style.columns - used_columns : 20;
  return line + "  " + shorten_to_columns(factor_levels_text(plan.factors, row.levels), available_columns) + "\n";
}

std::string forecast_text(const ExperimentPlan& plan) {
  if (!plan.forecast) {
    return wrap_text("  Costs: ",
                     "unknown until a row has run; joulemap experiment plan --pilot runs one row of each cell");
  }
  const ExperimentForecast& costs = *plan.forecast;
  if (costs.rows == 0) return "  Costs: no row is left to run\n";
  std::string text = fmt::format("{} rows take about {}", costs.rows, duration_text(costs.time_s));
  if (costs.energy_j) {
    text += fmt::format(", {} J ({:.3g} kWh){}", format_number(*costs.energy_j), *costs.energy_j / 3.6e6,
                        costs.provenance == Provenance::estimated ? " (estimated)" : "");
  }
  if (costs.co2_g) text += fmt::format(", {:.3g} g CO2", *costs.co2_g);
  if (costs.price)
    text += fmt::format(", {:.3g} {}", *costs.price, costs.currency.empty() ? "(price)" : costs.currency);
  return wrap_text("  Costs: ", fmt::format("{}; extrapolated from {} completed {}", text, costs.completed_rows,
                                            costs.completed_rows == 1 ? "row" : "rows"));
}

std::string plan_statistics_text(const PlanStatistics& plan) {
  std::string text =
      fmt::format("with {} {}, p-values are {:.3g} or more, however large the difference", plan.repetitions,
                  plan.paired ? (plan.repetitions == 1 ? "pair" : "pairs") : "rows per level", plan.min_p_value);
  if (plan.comparisons > 1) {
    text +=
        fmt::format("; after Bonferroni's correction for the {} comparisons of a factor and measure, {:.3g} or more",
                    plan.comparisons, plan.min_p_value * static_cast<double>(plan.comparisons));
  }
  constexpr std::string_view kSingleMeasureText = "one measure (`analyze --metric energy_j`)";
  text += plan.can_be_significant
              ? fmt::format(". This is enough for {} at alpha = {:g}; ", kSingleMeasureText, plan.alpha)
              : fmt::format(": nothing can be significant at alpha = {:g}. It takes {} repetitions for {}; ",
                            plan.alpha, plan.needed_repetitions, kSingleMeasureText);
  text += fmt::format("energy, time, metrics and domains together ({} or more measures) need {}.", plan.measures,
                      plan.repetitions_for_all_measures);
  if (plan.detectable_difference_sd) {
    text += fmt::format(" With 90 % power, the plan detects a difference of {:g} standard deviations of a row",
                        *plan.detectable_difference_sd);
    text += plan.noise ? fmt::format(": {:.3g} % at the standard deviation of {:.3g} % so far.",
                                     100 * *plan.noise * *plan.detectable_difference_sd, 100 * *plan.noise)
                       : ".";
  }
  return wrap_text("  Statistics: ", text);
}

std::string row_counts_text(const ExperimentPlan& plan) {
  std::string text = fmt::format("{} of {} rows done", plan.count(ExperimentRowState::done), plan.rows.size());
  for (const ExperimentRowState state :
       {ExperimentRowState::running, ExperimentRowState::failed, ExperimentRowState::todo}) {
    if (plan.count(state) > 0) text += fmt::format(", {} {}", plan.count(state), row_state_word(state));
  }
  return text;
}

}  // namespace

std::string factor_levels_text(std::span<const ExperimentFactor> factors, std::span<const std::size_t> levels) {
  std::string text;
  for (std::size_t i = 0; i < factors.size() && i < levels.size(); ++i) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", printable(factors[i].name),
                        printable(factors[i].levels.at(levels[i])));
  }
  return text;
}

std::string experiment_plan_text(const ExperimentPlan& plan, std::size_t max_rows, const TextStyle& style) {
  std::string text = experiment_heading(plan) + "\n";
  text += style.dimmed(fmt::format(" {:>5} {:>6}  {:<8} {:>8} {:>11}  {}", "row", "block", "state", "time", "energy",
                                   "levels")) +
          "\n";
  const std::size_t shown_row_count = max_rows == 0 ? plan.rows.size() : std::min(max_rows, plan.rows.size());
  for (std::size_t i = 0; i < shown_row_count; ++i) text += plan_row_line(plan, plan.rows[i], style);
  if (shown_row_count < plan.rows.size()) {
    text += fmt::format("       and {} more rows (--top 0 shows all)\n", plan.rows.size() - shown_row_count);
  }
  text += "\n" + forecast_text(plan) + plan_statistics_text(plan.statistics);
  return text + diagnostics_text(plan.diagnostics);
}

std::string experiment_status_text(const ExperimentPlan& plan, const TextStyle& style) {
  std::string text = fmt::format("{}: {}\n", printable(plan.name), row_counts_text(plan));
  for (const ExperimentPlanRow& row : plan.rows) {
    if (row.state != ExperimentRowState::failed && row.state != ExperimentRowState::running) continue;
    text += plan_row_line(plan, row, style);
    if (!row.error.empty()) text += wrap_text("        ", printable(row.error), style.columns);
  }
  for (const ExperimentJob& job : plan.jobs) {
    text += fmt::format("  job {}: {}{}{}\n", job.id, job.state, job.node.empty() ? "" : " on " + job.node,
                        job.blocks.empty() ? "" : ", block " + job.blocks);
  }
  if (plan.count(ExperimentRowState::done) < plan.rows.size()) text += forecast_text(plan);
  if (plan.count(ExperimentRowState::failed) > 0) {
    text += wrap_text("  -> ", fmt::format("joulemap experiment resume {} re-runs failed rows; stderr.txt in the "
                                           "row's folder contains the error",
                                           plan.folder));
  }
  return text + diagnostics_text(plan.diagnostics);
}

std::string experiment_progress_text(const ExperimentProgressLine& line) {
  std::string text = line.row_label.empty() ? line.activity : fmt::format("{}: {}", line.row_label, line.activity);
  if (line.elapsed_s >= 1) text += " " + duration_text(line.elapsed_s);
  if (line.remaining_s) text += fmt::format(", about {} left", duration_text(*line.remaining_s));
  return text;
}

std::string row_result_text(const std::string& row_label, const ExperimentRow& row) {
  std::string text = fmt::format("{}: {}", row_label, row_state_word(row.state));
  if (row.state == ExperimentRowState::failed && row.exit_code)
    text += fmt::format(" with exit code {}", *row.exit_code);
  const bool has_other_cause = !row.error.empty() && row.error.find("exit code") == std::string::npos;
  if (has_other_cause) text += fmt::format(" ({})", printable(row.error));
  if (row.elapsed_s) text += ", " + duration_text(*row.elapsed_s);
  if (const std::optional<EnergyWithProvenance> complete_energy = energy_if_complete(total_energy(row.domains))) {
    const bool is_estimated = complete_energy->provenance == Provenance::estimated;
    text += fmt::format(", {} J{}", format_number(complete_energy->joules), is_estimated ? " estimated" : "");
  }
  return text;
}

}  // namespace joulemap::report
