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

std::string flag_codes_text(const std::vector<AnalysisFlag>& flags) {
  std::set<std::string> known;
  std::string text;
  for (const AnalysisFlag& flag : flags) {
    if (known.insert(flag.code).second) text += (text.empty() ? "" : ", ") + flag.code;
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

std::string percent_difference_text(const Comparison& one) {
  if (!one.percent) return "-";
  return fmt::format("{:+.1f} %", *one.percent);
}

std::string compared_levels_text(const AnalysisResult& result, const Comparison& one) {
  const ExperimentFactor& factor = result.factors[one.factor];
  return one.a ? fmt::format("{} - {}", factor.levels[*one.a], factor.levels[*one.b])
               : fmt::format("{} levels", factor.levels.size());
}

std::string short_test_name(const Comparison& one) {
  if (one.test == "wilcoxon-signed-rank") return "signed-rank";
  return one.test;
}

std::string comparison_conclusion(const Comparison& one) {
  if (!one.p) return "not tested";
  if (!one.is_different) return "not significant";
  if (!one.a) return "different";
  return one.difference.value_or(0) < 0 ? "lower" : "higher";
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
      const std::optional<MeasureSummary>& spread = cell.measures[i];
      row.push_back(spread ? amount_text(spread->mean, measure.unit) : "-");
      if (measure.kind == MeasureKind::energy) {
        row.push_back(spread ? interval_text(spread->low, spread->high, measure.unit) : "-");
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
  for (const MainEffect& one : result.main_effects) {
    const ExperimentFactor& factor = result.factors[one.factor];
    const std::string levels = one.a ? fmt::format("{} - {}", factor.levels[*one.a], factor.levels[*one.b])
                                     : fmt::format("{} levels", one.levels);
    const std::string interval =
        one.percent_low ? fmt::format("{:+.1f} to {:+.1f} %", *one.percent_low, *one.percent_high) : "-";
    table.rows.push_back({factor.name, result.measures[one.measure].name, levels,
                          one.percent ? fmt::format("{:+.1f} %", *one.percent) : "-", interval,
                          one.a ? fmt::format("{} of {}", one.higher, one.combinations) : "-", one.test,
                          p_value_text(one.p), p_value_text(one.p_adjusted), std::string(name_of(one.generality)),
                          one.verdict});
  }
  return table;
}

TextTable interactions_table(const AnalysisResult& result) {
  TextTable table{"Interactions: does the effect of a factor depend on another",
                  {"factor", "other", "metric", "F", "df", "p", "adjusted", "p of ranks", "verdict"},
                  {false, false, false, true, true, true, true, true, false},
                  {}};
  for (const Interaction& one : result.interactions) {
    table.rows.push_back({result.factors[one.factor].name, result.factors[one.other].name,
                          result.measures[one.measure].name, fmt::format("{:.3g}", one.f),
                          fmt::format("{}, {}", one.numerator_df, one.denominator_df), p_value_text(one.p),
                          p_value_text(one.p_adjusted), p_value_cell(one.rank_p), one.verdict});
  }
  return table;
}

TextTable comparisons_table(const AnalysisResult& result) {
  TextTable table{fmt::format("Comparisons; p adjusted by {}", result.adjustment),
                  {"within", "metric", "levels", "difference", "%", "A12", "test", "p", "adjusted", "result"},
                  {false, false, false, true, true, true, false, true, true, false},
                  {}};
  for (const Comparison& one : result.comparisons) {
    const Measure& measure = result.measures[one.measure];
    table.rows.push_back(
        {short_levels_text(result, one.fixed_levels), measure.name, compared_levels_text(result, one),
         one.difference ? amount_text(*one.difference, measure.unit) : "-", percent_difference_text(one),
         one.vargha_delaney_a12 ? fmt::format("{:.2f}", *one.vargha_delaney_a12) : "-", short_test_name(one),
         p_value_cell(one.p), p_value_cell(one.p_adjusted), comparison_conclusion(one)});
  }
  return table;
}

TextTable verdicts_table(const AnalysisResult& result) {
  TextTable table{"Verdicts", {"within", "metric", "test", "verdict"}, {false, false, false, false}, {}};
  for (const Comparison& one : result.comparisons) {
    table.rows.push_back({short_levels_text(result, one.fixed_levels), result.measures[one.measure].name,
                          short_test_name(one), one.verdict});
  }
  return table;
}

TextTable epochs_table(const AnalysisResult& result) {
  TextTable table{"First and later epochs",
                  {"cell", "epochs", "first energy", "later energy", "first time", "later time"},
                  {false, true, true, true, true, true},
                  {}};
  const auto amount = [](const std::optional<double>& value, std::string_view unit) {
    return value ? amount_text(*value, unit) : "-";
  };
  for (const AnalysisCell& cell : result.cells) {
    if (!cell.epochs) continue;
    table.rows.push_back({short_levels_text(result, cell.levels), fmt::format("{}", cell.epochs->epochs),
                          amount(cell.epochs->first_j, "J"), amount(cell.epochs->later_j, "J"),
                          amount(cell.epochs->first_s, "s"), amount(cell.epochs->later_s, "s")});
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
      std::vector<std::optional<std::size_t>> own;
      const std::vector<std::size_t>& levels = result.cells[point.cell].levels;
      for (std::size_t i = 0; i < levels.size(); ++i) {
        own.push_back(set.fixed_levels[i] ? std::nullopt : std::optional(levels[i]));
      }
      table.rows.push_back({short_levels_text(result, set.fixed_levels), short_levels_text(result, own),
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
  for (const Association& one : result.associations) {
    table.rows.push_back({one.cell ? short_levels_text(result, result.cells[*one.cell].levels) : "medians of all cells",
                          fmt::format("{}", one.n), coefficient(one.spearman), p_value_cell(one.spearman_p),
                          coefficient(one.kendall), p_value_cell(one.kendall_p)});
  }
  return table;
}

TextTable correlations_table(const AnalysisResult& result) {
  TextTable table{"Correlation of energies with time, power and metrics, over the medians of cells",
                  {"level", "energy", "with", "n", "Spearman", "p"},
                  {false, false, false, true, true, true},
                  {}};
  for (const LevelCorrelation& one : result.correlations) {
    table.rows.push_back({one.factor ? result.factors[*one.factor].levels[*one.level] : "all cells",
                          result.measures[one.x].name, one.y, fmt::format("{}", one.n),
                          fmt::format("{:+.2f}", one.spearman), p_value_text(one.p)});
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
      const std::optional<MeasureSummary>& spread = cell.measures[i];
      if (!spread) continue;
      std::vector<std::string> row = level_names_of_cell(result, cell.levels);
      row.insert(row.end(), {result.measures[i].name, result.measures[i].unit, fmt::format("{}", spread->values.size()),
                             full_precision_cell(spread->mean), full_precision_cell(spread->median),
                             full_precision_cell(spread->low), full_precision_cell(spread->high),
                             full_precision_cell(spread->standard_deviation),
                             fmt::format("{}", spread->outliers.size()), flag_codes_text(cell.flags)});
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
  for (const char* head :
       {"metric", "test", "n_a", "n_b", "p", "p_adjusted", "family", "a12", "a12_low", "a12_high", "cliff",
        "difference", "low", "high", "percent", "percent_low", "percent_high", "different", "verdict"}) {
    table.column_headers.emplace_back(head);
  }
  for (const Comparison& one : result.comparisons) {
    const ExperimentFactor& factor = result.factors[one.factor];
    std::vector<std::string> row = {factor.name, one.a ? factor.levels[*one.a] : "",
                                    one.b ? factor.levels[*one.b] : ""};
    for (std::size_t i = 0; i < one.fixed_levels.size(); ++i) {
      row.push_back(one.fixed_levels[i] ? result.factors[i].levels[*one.fixed_levels[i]] : "");
    }
    row.insert(
        row.end(),
        {result.measures[one.measure].name, one.test, fmt::format("{}", one.row_count_a),
         fmt::format("{}", one.row_count_b), full_precision_cell(one.p), full_precision_cell(one.p_adjusted),
         fmt::format("{}", one.family_size), full_precision_cell(one.vargha_delaney_a12),
         full_precision_cell(one.a12_low), full_precision_cell(one.a12_high), full_precision_cell(one.cliffs_delta),
         full_precision_cell(one.difference), full_precision_cell(one.low), full_precision_cell(one.high),
         full_precision_cell(one.percent), full_precision_cell(one.percent_low), full_precision_cell(one.percent_high),
         one.is_different ? "yes" : "no", one.verdict});
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
  const auto whole = [](std::size_t number) { return fmt::format("{}", number); };
  for (const MainEffect& one : result.main_effects) {
    const ExperimentFactor& factor = result.factors[one.factor];
    table.rows.push_back({"main effect",
                          factor.name,
                          "",
                          one.a ? factor.levels[*one.a] : "",
                          one.b ? factor.levels[*one.b] : "",
                          result.measures[one.measure].name,
                          one.test,
                          whole(one.n),
                          whole(one.combinations),
                          one.a ? whole(one.higher) : "",
                          one.a ? whole(one.lower) : "",
                          full_precision_cell(one.statistic),
                          "",
                          "",
                          full_precision_cell(one.p),
                          full_precision_cell(one.p_adjusted),
                          whole(one.family_size),
                          full_precision_cell(one.percent),
                          full_precision_cell(one.percent_low),
                          full_precision_cell(one.percent_high),
                          full_precision_cell(one.difference),
                          full_precision_cell(one.low),
                          full_precision_cell(one.high),
                          full_precision_cell(one.combinations_p),
                          full_precision_cell(one.direction_p),
                          full_precision_cell(one.rank_p),
                          std::string(name_of(one.generality)),
                          one.verdict});
  }
  for (const Interaction& one : result.interactions) {
    table.rows.push_back({"interaction",
                          result.factors[one.factor].name,
                          result.factors[one.other].name,
                          "",
                          "",
                          result.measures[one.measure].name,
                          one.test,
                          "",
                          "",
                          "",
                          "",
                          full_precision_cell(one.f),
                          full_precision_cell(one.numerator_df),
                          full_precision_cell(one.denominator_df),
                          full_precision_cell(one.p),
                          full_precision_cell(one.p_adjusted),
                          whole(one.family_size),
                          "",
                          "",
                          "",
                          "",
                          "",
                          "",
                          "",
                          "",
                          full_precision_cell(one.rank_p),
                          one.is_different ? "different" : "not shown",
                          one.verdict});
  }
  table.is_number.assign(table.column_headers.size(), false);
  return table;
}

}  // namespace joulemap::report
