// SPDX-License-Identifier: Apache-2.0
#include "report/text/analysis_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/amount_text.h"

namespace joulemap::report {
namespace {

std::string full_precision_cell(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

std::string p_value_cell(const std::optional<double>& p) { return p ? p_value_text(*p) : "-"; }

std::string interval_text(double low, double high, std::string_view unit) {
  return amount_text(low, unit) + " to " + amount_text(high, unit);
}

// Without `measure` the flags of all measures, otherwise those of one measure and of the whole cell.
std::string flag_codes_text(const std::vector<AnalysisFlag>& flags, std::optional<std::size_t> measure = std::nullopt) {
  std::set<std::string> listed_codes;
  std::string text;
  for (const AnalysisFlag& flag : flags) {
    if (measure && flag.measure && *flag.measure != *measure) continue;
    if (listed_codes.insert(flag.code).second) text += (text.empty() ? "" : ", ") + flag.code;
  }
  return text;
}

std::vector<std::string> factor_names(const AnalysisResult& result) {
  std::vector<std::string> names;
  for (const ExperimentFactor& factor : result.factors) names.push_back(factor.name);
  return names;
}

std::vector<std::string> level_names_of_cell(const AnalysisResult& result, const std::vector<std::size_t>& levels) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < levels.size(); ++i) names.push_back(result.factors[i].levels[levels[i]]);
  return names;
}

std::string percent_difference_text(const Comparison& comparison) {
  if (!comparison.percent) return "-";
  return fmt::format("{:+.1f} %", *comparison.percent);
}

std::string compared_levels_text(const AnalysisResult& result, const Comparison& comparison) {
  const ExperimentFactor& factor = result.factors[comparison.factor];
  return comparison.a ? fmt::format("{} - {}", factor.levels[*comparison.a], factor.levels[*comparison.b])
                      : fmt::format("{} levels", factor.levels.size());
}

std::string short_test_name(const Comparison& comparison) {
  if (comparison.test == "wilcoxon-signed-rank") return "signed-rank";
  return comparison.test;
}

std::string comparison_conclusion(const Comparison& comparison) {
  if (!comparison.p) return "not tested";
  if (!comparison.is_different) return "not significant";
  if (!comparison.a) return "different";
  return comparison.difference.value_or(0) < 0 ? "lower" : "higher";
}

}  // namespace

std::string short_levels_text(const AnalysisResult& result, const std::vector<std::optional<std::size_t>>& levels) {
  std::string text;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i]) text += (text.empty() ? "" : ", ") + result.factors[i].levels[*levels[i]];
  }
  return text;
}

std::string short_levels_text(const AnalysisResult& result, const std::vector<std::size_t>& levels) {
  return short_levels_text(result, std::vector<std::optional<std::size_t>>(levels.begin(), levels.end()));
}

TextTable cells_table(const AnalysisResult& result) {
  TextTable table;
  table.caption = "Cells: means with intervals";
  table.column_headers = factor_names(result);
  table.is_number.assign(table.column_headers.size(), false);
  table.column_headers.emplace_back("n");
  table.is_number.push_back(true);
  for (const Measure& measure : result.measures) {
    table.column_headers.push_back(measure.name);
    table.is_number.push_back(true);
    if (measure.kind != MeasureKind::energy) continue;
    table.column_headers.push_back(fmt::format("{:.0f} %", 100 * (1 - result.alpha)));
    table.is_number.push_back(true);
  }
  table.column_headers.emplace_back("flags");
  table.is_number.push_back(false);
  for (const AnalysisCell& cell : result.cells) {
    std::vector<std::string> row = level_names_of_cell(result, cell.levels);
    row.push_back(fmt::format("{}", cell.n));
    for (std::size_t i = 0; i < result.measures.size(); ++i) {
      const Measure& measure = result.measures[i];
      const std::optional<MeasureSummary>& summary = cell.measures[i];
      row.push_back(summary ? amount_text(summary->mean, measure.unit) : "-");
      if (measure.kind == MeasureKind::energy) {
        row.push_back(summary && summary->low ? interval_text(*summary->low, *summary->high, measure.unit) : "-");
      }
    }
    row.push_back(flag_codes_text(cell.flags));
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable main_effects_table(const AnalysisResult& result) {
  TextTable table{
      fmt::format("Effects over all combinations; p adjusted by {}", result.adjustment),
      {"factor", "metric", "levels", "%", "interval", "higher", "test", "p", "adjusted", "result", "verdict"},
      {false, false, false, true, true, true, false, true, true, false, false},
      {}};
  for (const MainEffect& effect : result.main_effects) {
    const ExperimentFactor& factor = result.factors[effect.factor];
    const std::string levels = effect.a ? fmt::format("{} - {}", factor.levels[*effect.a], factor.levels[*effect.b])
                                        : fmt::format("{} levels", effect.levels);
    const std::string interval =
        effect.percent_low ? fmt::format("{:+.1f} to {:+.1f} %", *effect.percent_low, *effect.percent_high) : "-";
    table.rows.push_back({factor.name, result.measures[effect.measure].name, levels,
                          effect.percent ? fmt::format("{:+.1f} %", *effect.percent) : "-", interval,
                          effect.a ? fmt::format("{} of {}", effect.higher, effect.combinations) : "-", effect.test,
                          p_value_text(effect.p), p_value_text(effect.p_adjusted),
                          std::string(name_of(effect.generality)), effect.verdict});
  }
  return table;
}

TextTable interactions_table(const AnalysisResult& result) {
  TextTable table{"Interactions: does the effect of a factor depend on another",
                  {"factor", "other", "metric", "F", "df", "p", "adjusted", "p of ranks", "verdict"},
                  {false, false, false, true, true, true, true, true, false},
                  {}};
  for (const Interaction& interaction : result.interactions) {
    table.rows.push_back({result.factors[interaction.factor].name, result.factors[interaction.other].name,
                          result.measures[interaction.measure].name, fmt::format("{:.3g}", interaction.f),
                          fmt::format("{}, {}", interaction.numerator_df, interaction.denominator_df),
                          p_value_text(interaction.p), p_value_text(interaction.p_adjusted),
                          p_value_cell(interaction.rank_p), interaction.verdict});
  }
  return table;
}

TextTable comparisons_table(const AnalysisResult& result) {
  TextTable table{fmt::format("Comparisons; p adjusted by {}", result.adjustment),
                  {"within", "metric", "levels", "difference", "%", "A12", "test", "p", "adjusted", "result"},
                  {false, false, false, true, true, true, false, true, true, false},
                  {}};
  for (const Comparison& comparison : result.comparisons) {
    const Measure& measure = result.measures[comparison.measure];
    table.rows.push_back({short_levels_text(result, comparison.fixed_levels), measure.name,
                          compared_levels_text(result, comparison),
                          comparison.difference ? amount_text(*comparison.difference, measure.unit) : "-",
                          percent_difference_text(comparison),
                          comparison.vargha_delaney_a12 ? fmt::format("{:.2f}", *comparison.vargha_delaney_a12) : "-",
                          short_test_name(comparison), p_value_cell(comparison.p), p_value_cell(comparison.p_adjusted),
                          comparison_conclusion(comparison)});
  }
  return table;
}

TextTable verdicts_table(const AnalysisResult& result) {
  TextTable table{"Verdicts", {"within", "metric", "test", "verdict"}, {false, false, false, false}, {}};
  for (const Comparison& comparison : result.comparisons) {
    table.rows.push_back({short_levels_text(result, comparison.fixed_levels), result.measures[comparison.measure].name,
                          short_test_name(comparison), comparison.verdict});
  }
  return table;
}

TextTable epochs_table(const AnalysisResult& result) {
  TextTable table{"First and later epochs",
                  {"cell", "epochs", "first energy", "later energy", "first time", "later time"},
                  {false, true, true, true, true, true},
                  {}};
  const auto amount_cell = [](const std::optional<double>& value, std::string_view unit) {
    return value ? amount_text(*value, unit) : "-";
  };
  for (const AnalysisCell& cell : result.cells) {
    if (!cell.epochs) continue;
    table.rows.push_back({short_levels_text(result, cell.levels), fmt::format("{}", cell.epochs->epochs),
                          amount_cell(cell.epochs->first_j, "J"), amount_cell(cell.epochs->later_j, "J"),
                          amount_cell(cell.epochs->first_s, "s"), amount_cell(cell.epochs->later_s, "s")});
  }
  return table;
}

TextTable pareto_table(const AnalysisResult& result) {
  TextTable table{"Pareto front, with the probability that a cell is on it",
                  {"within", "cell", "on the front", "probability"},
                  {false, false, false, true},
                  {}};
  for (const ParetoSet& set : result.pareto) {
    for (const ParetoPoint& point : set.points) {
      std::vector<std::optional<std::size_t>> varied_levels;
      const std::vector<std::size_t>& levels = result.cells[point.cell].levels;
      for (std::size_t i = 0; i < levels.size(); ++i) {
        varied_levels.push_back(set.fixed_levels[i] ? std::nullopt : std::optional(levels[i]));
      }
      table.rows.push_back({short_levels_text(result, set.fixed_levels), short_levels_text(result, varied_levels),
                            point.is_on_front ? "yes" : "no", fmt::format("{:.2f}", point.probability)});
    }
  }
  return table;
}

TextTable associations_table(const AnalysisResult& result) {
  TextTable table{
      "Energy and time", {"cell", "n", "Spearman", "p", "Kendall", "p"}, {false, true, true, true, true, true}, {}};
  const auto coefficient = [](const std::optional<double>& value) {
    return value ? fmt::format("{:+.2f}", *value) : "-";
  };
  for (const Association& association : result.associations) {
    table.rows.push_back(
        {association.cell ? short_levels_text(result, result.cells[*association.cell].levels) : "medians of all cells",
         fmt::format("{}", association.n), coefficient(association.spearman), p_value_cell(association.spearman_p),
         coefficient(association.kendall), p_value_cell(association.kendall_p)});
  }
  return table;
}

TextTable correlations_table(const AnalysisResult& result) {
  TextTable table{"Correlation of energies with time, power and metrics, over the medians of cells",
                  {"level", "energy", "with", "n", "Spearman", "p"},
                  {false, false, false, true, true, true},
                  {}};
  for (const LevelCorrelation& correlation : result.correlations) {
    table.rows.push_back(
        {correlation.factor ? result.factors[*correlation.factor].levels[*correlation.level] : "all cells",
         result.measures[correlation.x].name, correlation.y, fmt::format("{}", correlation.n),
         fmt::format("{:+.2f}", correlation.spearman), p_value_text(correlation.p)});
  }
  return table;
}

TextTable analysis_flags_table(const AnalysisResult& result) {
  TextTable table{"Flags", {"where", "flag", "message", "remedy"}, {false, false, false, false}, {}};
  for (const AnalysisFlag& flag : result.flags) {
    table.rows.push_back({"the experiment", flag.code, flag.message, flag.remedy});
  }
  for (const AnalysisCell& cell : result.cells) {
    for (const AnalysisFlag& flag : cell.flags) {
      table.rows.push_back({short_levels_text(result, cell.levels), flag.code, flag.message, flag.remedy});
    }
  }
  return table;
}

TextTable full_precision_cells_table(const AnalysisResult& result) {
  TextTable table;
  table.column_headers = factor_names(result);
  for (const char* head : {"metric", "unit", "n", "mean", "median", "low", "high", "sd", "outliers", "flags"}) {
    table.column_headers.emplace_back(head);
  }
  for (const AnalysisCell& cell : result.cells) {
    for (std::size_t i = 0; i < result.measures.size(); ++i) {
      const std::optional<MeasureSummary>& summary = cell.measures[i];
      if (!summary) continue;
      std::vector<std::string> row = level_names_of_cell(result, cell.levels);
      row.insert(row.end(), {result.measures[i].name, result.measures[i].unit,
                             fmt::format("{}", summary->values.size()), full_precision_cell(summary->mean),
                             full_precision_cell(summary->median), full_precision_cell(summary->low),
                             full_precision_cell(summary->high), full_precision_cell(summary->standard_deviation),
                             fmt::format("{}", summary->outliers.size()), flag_codes_text(cell.flags, i)});
      table.rows.push_back(std::move(row));
    }
  }
  table.is_number.assign(table.column_headers.size(), false);
  return table;
}

TextTable full_precision_comparisons_table(const AnalysisResult& result) {
  TextTable table;
  table.column_headers = {"factor", "a", "b"};
  for (const ExperimentFactor& factor : result.factors) table.column_headers.push_back("within_" + factor.name);
  for (const char* head : {"metric",  "test",        "n_a",          "n_b",        "p",          "p_adjusted", "family",
                           "a12",     "a12_low",     "a12_high",     "cliff",      "difference", "low",        "high",
                           "percent", "percent_low", "percent_high", "confidence", "different",  "verdict"}) {
    table.column_headers.emplace_back(head);
  }
  for (const Comparison& comparison : result.comparisons) {
    const ExperimentFactor& factor = result.factors[comparison.factor];
    std::vector<std::string> row = {factor.name, comparison.a ? factor.levels[*comparison.a] : "",
                                    comparison.b ? factor.levels[*comparison.b] : ""};
    for (std::size_t i = 0; i < comparison.fixed_levels.size(); ++i) {
      row.push_back(comparison.fixed_levels[i] ? result.factors[i].levels[*comparison.fixed_levels[i]] : "");
    }
    row.insert(row.end(), {result.measures[comparison.measure].name,
                           comparison.test,
                           fmt::format("{}", comparison.row_count_a),
                           fmt::format("{}", comparison.row_count_b),
                           full_precision_cell(comparison.p),
                           full_precision_cell(comparison.p_adjusted),
                           fmt::format("{}", comparison.family_size),
                           full_precision_cell(comparison.vargha_delaney_a12),
                           full_precision_cell(comparison.a12_low),
                           full_precision_cell(comparison.a12_high),
                           full_precision_cell(comparison.cliffs_delta),
                           full_precision_cell(comparison.difference),
                           full_precision_cell(comparison.low),
                           full_precision_cell(comparison.high),
                           full_precision_cell(comparison.percent),
                           full_precision_cell(comparison.percent_low),
                           full_precision_cell(comparison.percent_high),
                           full_precision_cell(comparison.confidence),
                           comparison.is_different ? "yes" : "no",
                           comparison.verdict});
    table.rows.push_back(std::move(row));
  }
  table.is_number.assign(table.column_headers.size(), false);
  return table;
}

TextTable full_precision_effects_table(const AnalysisResult& result) {
  TextTable table;
  for (const char* head :
       {"kind", "factor",       "other",          "a",           "b",           "metric",       "test",
        "n",    "combinations", "higher",         "lower",       "statistic",   "numerator_df", "denominator_df",
        "p",    "p_adjusted",   "family",         "percent",     "percent_low", "percent_high", "difference",
        "low",  "high",         "combinations_p", "direction_p", "rank_p",      "result",       "verdict"}) {
    table.column_headers.emplace_back(head);
  }
  const auto integer_cell = [](std::size_t number) { return fmt::format("{}", number); };
  for (const MainEffect& effect : result.main_effects) {
    const ExperimentFactor& factor = result.factors[effect.factor];
    table.rows.push_back({"main effect",
                          factor.name,
                          "",
                          effect.a ? factor.levels[*effect.a] : "",
                          effect.b ? factor.levels[*effect.b] : "",
                          result.measures[effect.measure].name,
                          effect.test,
                          integer_cell(effect.n),
                          integer_cell(effect.combinations),
                          effect.a ? integer_cell(effect.higher) : "",
                          effect.a ? integer_cell(effect.lower) : "",
                          full_precision_cell(effect.statistic),
                          "",
                          "",
                          full_precision_cell(effect.p),
                          full_precision_cell(effect.p_adjusted),
                          integer_cell(effect.family_size),
                          full_precision_cell(effect.percent),
                          full_precision_cell(effect.percent_low),
                          full_precision_cell(effect.percent_high),
                          full_precision_cell(effect.difference),
                          full_precision_cell(effect.low),
                          full_precision_cell(effect.high),
                          full_precision_cell(effect.combinations_p),
                          full_precision_cell(effect.direction_p),
                          full_precision_cell(effect.rank_p),
                          std::string(name_of(effect.generality)),
                          effect.verdict});
  }
  for (const Interaction& interaction : result.interactions) {
    table.rows.push_back({"interaction",
                          result.factors[interaction.factor].name,
                          result.factors[interaction.other].name,
                          "",
                          "",
                          result.measures[interaction.measure].name,
                          interaction.test,
                          "",
                          "",
                          "",
                          "",
                          full_precision_cell(interaction.f),
                          full_precision_cell(interaction.numerator_df),
                          full_precision_cell(interaction.denominator_df),
                          full_precision_cell(interaction.p),
                          full_precision_cell(interaction.p_adjusted),
                          integer_cell(interaction.family_size),
                          "",
                          "",
                          "",
                          "",
                          "",
                          "",
                          "",
                          "",
                          full_precision_cell(interaction.rank_p),
                          interaction.is_different ? "different" : "not shown",
                          interaction.verdict});
  }
  table.is_number.assign(table.column_headers.size(), false);
  return table;
}

}  // namespace joulemap::report
