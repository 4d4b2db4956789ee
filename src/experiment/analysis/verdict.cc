// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/amount_text.h"
#include "experiment/analysis/effect_verdict.h"
#include "statistics/effect_size.h"
#include "statistics/sample_size.h"

namespace joulemap::experiment {
namespace {

std::string measured_domains_text(const Measure& measure) {
  std::string text;
  for (std::size_t i = 0; i < measure.domains.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == measure.domains.size() ? " and " : ", ") + measure.domains[i];
  }
  return text;
}

std::string interval_phrase(const Comparison& comparison, const AnalysisResult& result) {
  if (!comparison.difference || !comparison.low || !comparison.high) return "";
  const std::string& unit = result.measures[comparison.measure].unit;
  return fmt::format("{}, {} to {}{}", amount_text(*comparison.difference, unit), amount_text(*comparison.low, unit),
                     amount_text(*comparison.high, unit), confidence_phrase(comparison.confidence, result));
}

double min_attainable_p(const Comparison& comparison) {
  return comparison.pairing == Pairing::paired
             ? statistics::min_p_value_paired(comparison.row_count_a)
             : statistics::min_p_value_unpaired(comparison.row_count_a, comparison.row_count_b);
}

std::string p_values_phrase(const Comparison& comparison) {
  return fmt::format("p = {}, adjusted {}", p_value_text(*comparison.p),
                     p_value_text(comparison.p_adjusted.value_or(*comparison.p)));
}

// Flags of the compared cells that make a mean doubtful.
std::string doubtful_mean_note(const Comparison& comparison, const AnalysisResult& result) {
  constexpr std::string_view kDoubtfulMeanFlags[] = {"warm_up", "change_point", "zero_energy", "negative_energy",
                                                     "throttled"};
  std::set<std::string> codes;
  for (const std::optional<std::size_t> level : {comparison.a, comparison.b}) {
    if (!level) continue;
    std::vector<std::size_t> levels;
    for (const std::optional<std::size_t>& fixed_level : comparison.fixed_levels)
      levels.push_back(fixed_level.value_or(*level));
    const auto cell = std::find_if(result.cells.begin(), result.cells.end(),
                                   [&](const AnalysisCell& candidate_cell) { return candidate_cell.levels == levels; });
    if (cell == result.cells.end()) continue;
    for (const AnalysisFlag& flag : cell->flags) {
      if (std::find(std::begin(kDoubtfulMeanFlags), std::end(kDoubtfulMeanFlags), flag.code) !=
          std::end(kDoubtfulMeanFlags))
        codes.insert(flag.code);
    }
  }
  if (codes.empty()) return "";
  std::string text = "; check these flags first: ";
  for (const std::string& code : codes) text += (code == *codes.begin() ? "" : ", ") + code;
  return text;
}

std::string all_levels_verdict(const Comparison& comparison, const AnalysisResult& result) {
  const ExperimentFactor& factor = result.factors[comparison.factor];
  return fmt::format("{} levels of {} {} in {} ({})", factor.levels.size(), factor.name,
                     comparison.is_different ? "differ" : "do not differ significantly",
                     measure_phrase(result.measures[comparison.measure]), p_values_phrase(comparison));
}

}  // namespace

std::string measure_phrase(const Measure& measure) {
  const std::string_view estimated_prefix = measure.is_estimated() ? "estimated " : "";
  switch (measure.kind) {
    case MeasureKind::energy:
      return fmt::format("{}energy", estimated_prefix);
    case MeasureKind::domain:
      return fmt::format("{}energy of {}", estimated_prefix, measure.name);
    case MeasureKind::time:
      return "time";
    case MeasureKind::metric:
      break;
  }
  return measure.name;
}

std::string confidence_phrase(const std::optional<double>& confidence, const AnalysisResult& result) {
  constexpr double kRoundingError = 1e-9;
  if (!confidence || *confidence >= 1 - result.alpha - kRoundingError) return "";
  return fmt::format(" at {:.3g} % confidence", 100 * *confidence);
}

std::string change_phrase(const Measure& measure, double difference, std::optional<double> percent) {
  const std::string_view direction = difference < 0 ? "less" : "more";
  // The estimate of a ratio near 1 can have the other direction than that of the difference.
  const bool has_same_direction = percent && (*percent < 0) == (difference < 0);
  const std::string change_amount = has_same_direction ? fmt::format("{:.3g} %", std::abs(*percent))
                                                       : amount_text(std::abs(difference), measure.unit);
  const std::string_view estimated_prefix = measure.is_estimated() ? "estimated " : "";
  const bool is_part = measure.kind == MeasureKind::domain || !measure.excluded_domains.empty();
  const std::string domain_phrase =
      !is_part ? "" : " of " + (measure.excluded_domains.empty() ? measure.name : measured_domains_text(measure));
  switch (measure.kind) {
    case MeasureKind::energy:
    case MeasureKind::domain:
      return fmt::format("uses {} {} {}energy{}", change_amount, direction, estimated_prefix, domain_phrase);
    case MeasureKind::time:
      return fmt::format("takes {} {} time", change_amount, direction);
    case MeasureKind::metric:
      break;
  }
  return fmt::format("has {} {} {}", change_amount, direction, measure.name);
}

std::string verdict_sentence(const Comparison& comparison, const AnalysisResult& result) {
  if (const Measure& energy = result.measures[comparison.measure];
      energy.domains.empty() && !energy.excluded_domains.empty()) {
    return "not compared: rows have no common domain with known energy";
  }
  if (!comparison.p) return "not tested: a level has fewer than two values";
  if (!comparison.a) return all_levels_verdict(comparison, result);
  const Measure& measure = result.measures[comparison.measure];
  const std::vector<std::string>& levels = result.factors[comparison.factor].levels;
  const std::string& level_a = levels[*comparison.a];
  const std::string& level_b = levels[*comparison.b];
  const std::string doubtful_note = doubtful_mean_note(comparison, result);
  if (comparison.is_different) {
    return fmt::format("{} {} than {} ({}; {} effect, A12 {:.2f}; {}){}", level_a,
                       change_phrase(measure, comparison.difference.value_or(0), comparison.percent), level_b,
                       interval_phrase(comparison, result),
                       statistics::cliffs_delta_magnitude(comparison.cliffs_delta.value_or(0)),
                       comparison.vargha_delaney_a12.value_or(0.5), p_values_phrase(comparison), doubtful_note);
  }
  const bool is_family_wise = result.adjustment == "holm" || result.adjustment == "bonferroni";
  const double needed =
      result.alpha / static_cast<double>(is_family_wise ? std::max<std::size_t>(comparison.family_size, 1) : 1);
  const double floor = min_attainable_p(comparison);
  if (*comparison.p < result.alpha && floor > needed) {
    return fmt::format(
        "not significant with {} {}: p = {} is near the smallest possible ({}), {} comparisons need {}; if "
        "real, {} {} than {} ({}){}",
        comparison.row_count_a, comparison.pairing == Pairing::paired ? "pairs" : "rows", p_value_text(*comparison.p),
        p_value_text(floor), comparison.family_size, p_value_text(needed), level_a,
        change_phrase(measure, comparison.difference.value_or(0), comparison.percent), level_b,
        interval_phrase(comparison, result), doubtful_note);
  }
  return fmt::format("no significant difference in {} between {} and {} ({}; {}){}", measure_phrase(measure), level_a,
                     level_b, interval_phrase(comparison, result), p_values_phrase(comparison), doubtful_note);
}

namespace {

std::string significance_tests_sentence(const AnalysisResult& result) {
  std::set<std::string> tests;
  for (const Comparison& comparison : result.comparisons) tests.insert(comparison.test);
  std::string names;
  const auto name = [](const std::string& test) -> std::string {
    if (test == "wilcoxon-signed-rank") return "the Wilcoxon signed-rank test (exact, zeros by Pratt)";
    if (test == "mann-whitney") return "the Mann-Whitney U test (exact, with ties)";
    return test == "friedman" ? "the Friedman test" : "the Kruskal-Wallis test";
  };
  for (const std::string& test : tests) names += (names.empty() ? "" : ", ") + name(test);
  return names;
}

std::string p_adjustment_sentence(const AnalysisResult& result) {
  std::size_t max_family_size = 0;
  for (const Comparison& comparison : result.comparisons)
    max_family_size = std::max(max_family_size, comparison.family_size);
  if (result.adjustment == "none")
    return fmt::format("p-values of up to {} comparisons were not adjusted", max_family_size);
  const std::string_view method_name = result.adjustment == "holm"         ? "Holm's method"
                                       : result.adjustment == "bonferroni" ? "Bonferroni's method"
                                                                           : "the Benjamini-Hochberg method";
  return fmt::format(
      "p-values were adjusted by {} within each family of comparisons (one factor, one test; {} at most)", method_name,
      max_family_size);
}

}  // namespace

std::string methods_paragraph(const AnalysisResult& result) {
  std::size_t rows = 0;
  std::size_t min_row_count = result.cells.empty() ? 0 : result.cells.front().n;
  std::size_t max_row_count = 0;
  for (const AnalysisCell& cell : result.cells) {
    rows += cell.n;
    min_row_count = std::min(min_row_count, cell.n);
    max_row_count = std::max(max_row_count, cell.n);
  }
  const std::string n = min_row_count == max_row_count ? fmt::format("{}", max_row_count)
                                                       : fmt::format("{} to {}", min_row_count, max_row_count);
  std::string factors;
  for (const ExperimentFactor& factor : result.factors) {
    factors += fmt::format("{}{} ({} level{})", factors.empty() ? "" : ", ", factor.name, factor.levels.size(),
                           factor.levels.size() == 1 ? "" : "s");
  }
  std::string text = fmt::format("The experiment has the factors {}: {} cells with {} repetition{} each, {} runs. ",
                                 factors, result.cells.size(), n, max_row_count == 1 ? "" : "s", rows);
  for (const Measure& measure : result.measures) {
    if (measure.kind != MeasureKind::energy || measure.domains.empty()) continue;
    text +=
        fmt::format("Energy is {}: the sum of {}. ", to_string(*measure.provenance), measured_domains_text(measure));
  }
  text += result.is_blocked ? "Each repetition is a complete block; cells are compared within blocks. "
                            : "Runs are not blocked: paired tests pair by repetition number; unpaired tests are "
                              "reported, too. ";
  if (!result.comparisons.empty()) {
    text += fmt::format("Levels were compared by {}; {}; alpha = {}. ", significance_tests_sentence(result),
                        p_adjustment_sentence(result), result.alpha);
    text +=
        "Effect sizes are Vargha and Delaney's A12, Cliff's delta and the Hodges-Lehmann difference with intervals "
        "from the exact test. ";
  }
  text += effect_methods_sentences(result);
  text += fmt::format(
      "Intervals of means are BCa bootstrap intervals ({} resamples, seed {}). Outliers (modified z above 3.5), "
      "drifts (Mann-Kendall) and change points (Pettitt) were flagged; no run was excluded.",
      result.resamples, result.seed);
  return text;
}

}  // namespace joulemap::experiment
