// SPDX-License-Identifier: Apache-2.0
#include "cli/analyze_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "report/plot/experiment_plots.h"
#include "report/plot/svg_cells.h"

namespace joulemap::cli {
namespace {

constexpr std::size_t kMaxPlottedRuns = 12;

std::string join_with_commas(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Error plot_usage_error(std::string message, std::string remedy) {
  return {ErrorCode::usage, std::move(message), std::move(remedy)};
}

using LevelByFactor = std::vector<std::optional<std::size_t>>;  // by factor

// Adds "framework=pytorch" to the wanted levels.
Status parse_factor_level(const AnalysisResult& result, std::string_view part, LevelByFactor& wanted_levels) {
  const std::size_t equals_position = part.find('=');
  const std::string_view name = part.substr(0, equals_position);
  const auto factor = std::ranges::find(result.factors, name, &ExperimentFactor::name);
  if (equals_position == std::string_view::npos || factor == result.factors.end()) {
    std::vector<std::string> names;
    for (const ExperimentFactor& candidate_factor : result.factors) names.push_back(candidate_factor.name + "=LEVEL");
    return plot_usage_error(fmt::format("--cell {} is not of the form FACTOR=LEVEL", joulemap::quoted(part)),
                            "--cell " + join_with_commas(names));
  }
  const auto level = std::ranges::find(factor->levels, part.substr(equals_position + 1));
  if (level == factor->levels.end()) {
    return plot_usage_error(
        fmt::format("{} has no level {}", factor->name, joulemap::quoted(part.substr(equals_position + 1))),
        "levels: " + join_with_commas(factor->levels));
  }
  wanted_levels[static_cast<std::size_t>(factor - result.factors.begin())] =
      static_cast<std::size_t>(level - factor->levels.begin());
  return Done{};
}

Error missing_plot_data_error(std::string_view plot, std::string_view missing_data, std::string remedy) {
  return {ErrorCode::not_found, fmt::format("--plot {}: the experiment has no {}", plot, missing_data),
          std::move(remedy)};
}

Result<std::string> draw_run_timelines(const ExperimentData& data, const AnalysisResult& result,
                                       const std::vector<std::string>& cells) {
  std::vector<std::size_t> plotted_cells;
  for (const std::string& text : cells) {
    const Result<std::size_t> cell = find_described_cell(result, text);
    if (!cell) return cell.error();
    if (report::find_row_with_power_series(data, result.cells[*cell]) == nullptr) {
      return missing_plot_data_error("timeline", fmt::format("power over time in the cell {}", joulemap::quoted(text)),
                                     "run or import the experiment again with this version");
    }
    plotted_cells.push_back(*cell);
  }
  for (std::size_t i = 0; cells.empty() && i < result.cells.size() && plotted_cells.size() < 2; ++i) {
    if (report::find_row_with_power_series(data, result.cells[i]) != nullptr) plotted_cells.push_back(i);
  }
  std::string svg = report::run_timelines_svg(data, result, plotted_cells);
  if (!svg.empty()) return svg;
  return missing_plot_data_error("timeline", "power over time", "run or import the experiment again with this version");
}

// The plot of the first measure of this kind.
using MeasurePlotFunction = std::string (*)(const AnalysisResult&, std::size_t);
std::string plot_energy_or_time(const AnalysisResult& result, MeasurePlotFunction plot) {
  std::optional<std::size_t> measure = report::find_measure_of_kind(result, MeasureKind::energy);
  if (!measure) measure = report::find_measure_of_kind(result, MeasureKind::time);
  return measure ? plot(result, *measure) : "";
}

}  // namespace

std::vector<std::string> analysis_plot_names() {
  return {"timeline", "tradeoff", "bars", "violins", "bubbles", "epochs"};
}

Result<std::size_t> find_described_cell(const AnalysisResult& result, std::string_view text) {
  LevelByFactor wanted_levels(result.factors.size());
  for (const std::string_view part : split(text, ',')) {
    if (Status parse_status = parse_factor_level(result, part, wanted_levels); !parse_status)
      return std::move(parse_status).error();
  }
  std::vector<std::size_t> matching_cells;
  for (std::size_t i = 0; i < result.cells.size(); ++i) {
    bool matches = true;
    for (std::size_t factor = 0; factor < wanted_levels.size(); ++factor)
      matches = matches && (!wanted_levels[factor] || *wanted_levels[factor] == result.cells[i].levels[factor]);
    if (matches) matching_cells.push_back(i);
  }
  if (matching_cells.size() == 1) return matching_cells[0];
  if (matching_cells.empty())
    return plot_usage_error(fmt::format("no cell matches --cell {}", joulemap::quoted(text)), "");
  std::vector<std::string> missing_factors;
  for (std::size_t i = 0; i < wanted_levels.size(); ++i) {
    if (!wanted_levels[i] && result.factors[i].levels.size() > 1)
      missing_factors.push_back(result.factors[i].name + "=LEVEL");
  }
  return plot_usage_error(fmt::format("{} cells match --cell {}", matching_cells.size(), joulemap::quoted(text)),
                          fmt::format("add {}", join_with_commas(missing_factors)));
}

Result<std::string> analysis_plot_svg(std::string_view plot, const ExperimentData& data, const AnalysisResult& result,
                                      const std::vector<std::string>& cells) {
  if (plot == "timeline") return draw_run_timelines(data, result, cells);
  std::string svg;
  std::string_view missing_data = "energy";
  if (plot == "tradeoff") {
    svg = report::tradeoff_svg(result);
    missing_data = "cells with energy and a compared metric";
  } else if (plot == "bars") {
    svg = plot_energy_or_time(result, &report::cell_bars_svg);
  } else if (plot == "violins") {
    svg = plot_energy_or_time(result, &report::cell_violins_svg);
  } else if (plot == "bubbles") {
    svg = report::bubbles_svg(result);
  } else {
    svg = report::epoch_series_svg(data, result, kMaxPlottedRuns);
    missing_data = "epochs with energy";
  }
  if (!svg.empty()) return svg;
  return missing_plot_data_error(plot, missing_data, "see docs/how-to/experiments.md for metrics and epochs");
}

}  // namespace joulemap::cli
