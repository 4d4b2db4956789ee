// SPDX-License-Identifier: Apache-2.0
#include "report/text/analysis_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "report/text/analysis_tables.h"
#include "report/text/analysis_text.h"
#include "report/text/text_table.h"
#include "report/text/wrapped_text.h"
#include "statistics/bootstrap.h"
#include "statistics/series.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMaxShownFlags = 4;
constexpr std::size_t kMaxShownPairs = 12;
constexpr std::size_t kMaxShownPairsWithEffects = 6;
constexpr std::size_t kMaxShownVerdicts = 5;
constexpr std::size_t kMaxShownVerdictsWithEffects = 3;
constexpr std::size_t kMaxShownEffects = 4;
constexpr std::size_t kMaxShownInteractions = 2;

// The tests between two levels for energy and time. An experiment without blocks has a paired and an unpaired test for
// each difference: only the unpaired ones, which fit its design.
std::vector<const Comparison*> select_shown_comparisons(const AnalysisResult& result) {
  std::vector<const Comparison*> shown_comparisons;
  for (const Comparison& comparison : result.comparisons) {
    const MeasureKind kind = result.measures[comparison.measure].kind;
    if (kind != MeasureKind::energy && kind != MeasureKind::time) continue;
    if (!comparison.a || !comparison.b || (!result.is_blocked && comparison.pairing == Pairing::paired)) continue;
    shown_comparisons.push_back(&comparison);
  }
  return shown_comparisons;
}

// Results of the comparisons between two levels, over all levels of the other factors.
struct LevelPairCounts {
  std::size_t significantly_higher_count =
      0;  // number of comparisons in which level a is significantly higher than level b
  std::size_t significantly_lower_count = 0;
  std::size_t not_significant_count = 0;
  std::vector<double> percent_differences;
};

TextTable level_pairs_table(const AnalysisResult& result, const std::vector<const Comparison*>& comparisons) {
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>, LevelPairCounts> pairs;
  for (const Comparison* const comparison : comparisons) {
    LevelPairCounts& counts = pairs[{comparison->factor, *comparison->a, *comparison->b, comparison->measure}];
    if (comparison->percent) counts.percent_differences.push_back(*comparison->percent);
    if (!comparison->is_different) {
      ++counts.not_significant_count;
    } else if (comparison->difference.value_or(0) > 0) {
      ++counts.significantly_higher_count;
    } else {
      ++counts.significantly_lower_count;
    }
  }
  TextTable table{"",
                  {"a", "b", "measure", "a more", "a less", "not shown", "median"},
                  {false, false, false, true, true, true, true},
                  {}};
  for (const auto& [key, counts] : pairs) {
    if (table.rows.size() == (result.main_effects.empty() ? kMaxShownPairs : kMaxShownPairsWithEffects)) break;
    const auto& [factor, a, b, measure] = key;
    const std::vector<std::string>& levels = result.factors[factor].levels;
    table.rows.push_back(
        {levels[a], levels[b], result.measures[measure].name, std::to_string(counts.significantly_higher_count),
         std::to_string(counts.significantly_lower_count), std::to_string(counts.not_significant_count),
         counts.percent_differences.empty()
             ? ""
             : fmt::format("{:+.0f} %", statistics::median_of(counts.percent_differences))});
  }
  return table;
}

std::string largest_differences_text(const AnalysisResult& result, std::vector<const Comparison*> comparisons,
                                     const TextStyle& style) {
  std::erase_if(comparisons,
                [](const Comparison* comparison) { return !comparison->is_different || !comparison->percent; });
  std::ranges::stable_sort(comparisons, std::greater(),
                           [](const Comparison* comparison) { return std::fabs(*comparison->percent); });
  const std::size_t max_comparisons = result.main_effects.empty() ? kMaxShownVerdicts : kMaxShownVerdictsWithEffects;
  if (comparisons.size() > max_comparisons) comparisons.resize(max_comparisons);
  std::string out = comparisons.empty() ? "" : "\n" + style.bold("Largest differences") + "\n";
  for (const Comparison* const comparison : comparisons) {
    const std::string levels_text = short_levels_text(result, comparison->fixed_levels);
    out +=
        wrap_text("  ", printable(levels_text.empty() ? comparison->verdict : levels_text + ": " + comparison->verdict),
                  style.columns);
  }
  return out;
}

std::string analysis_flags_summary(const AnalysisResult& result, const TextStyle& style) {
  std::string out;
  for (std::size_t i = 0; i < std::min(kMaxShownFlags, result.flags.size()); ++i)
    out += wrap_text(fmt::format("  {} ", result.flags[i].code), printable(result.flags[i].message), style.columns);
  std::size_t flagged_cell_count = 0;
  for (const AnalysisCell& cell : result.cells) flagged_cell_count += cell.flags.empty() ? 0 : 1;
  const std::size_t hidden_flag_count = result.flags.size() - std::min(kMaxShownFlags, result.flags.size());
  if (hidden_flag_count > 0) out += fmt::format("  {} more flags of the experiment\n", hidden_flag_count);
  if (flagged_cell_count > 0)
    out += fmt::format("  {} of {} cells have flags\n", flagged_cell_count, result.cells.size());
  return out.empty() ? out : "\n" + style.bold("Flags") + "\n" + out;
}

}  // namespace

std::string analysis_summary(const AnalysisResult& result, const TextStyle& style) {
  std::string out = wrap_text("", printable(result.name + ": " + analysis_headline(result)), style.columns);
  out += effects_text(result, style, {kMaxShownEffects, kMaxShownInteractions, true});
  out += analysis_flags_summary(result, style);
  const std::vector<const Comparison*> comparisons = select_shown_comparisons(result);
  const TextTable pairs = level_pairs_table(result, comparisons);
  if (!pairs.rows.empty())
    out += "\n" + style.bold("Pairs of levels, by number of cells") + "\n" + terminal_table(pairs, "  ", style.columns);
  return out + largest_differences_text(result, comparisons, style);
}

}  // namespace joulemap::report
