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

std::string interval_phrase(const Comparison& one, const Measure& measure) {
  if (!one.difference || !one.low || !one.high) return "";
  return fmt::format("{}, {} to {}", amount_text(*one.difference, measure.unit), amount_text(*one.low, measure.unit),
                     amount_text(*one.high, measure.unit));
}

double min_attainable_p(const Comparison& one) {
  return one.pairing == Pairing::paired ? statistics::min_p_value_paired(one.row_count_a)
                                        : statistics::min_p_value_unpaired(one.row_count_a, one.row_count_b);
}

std::string p_values_phrase(const Comparison& one) {
  return fmt::format("p = {}, adjusted {}", p_value_text(*one.p), p_value_text(one.p_adjusted.value_or(*one.p)));
}

// Flags of the compared cells that make a mean doubtful.
std::string doubtful_mean_note(const Comparison& one, const AnalysisResult& result) {
  constexpr std::string_view kDoubtfulMeanFlags[] = {"warm_up", "change_point", "zero_energy", "negative_energy",
                                                     "throttled"};
  std::set<std::string> codes;
  for (const std::optional<std::size_t> level : {one.a, one.b}) {
    if (!level) continue;
    std::vector<std::size_t> levels;
    for (const std::optional<std::size_t>& fixed : one.fixed_levels) levels.push_back(fixed.value_or(*level));
    const auto cell = std::find_if(result.cells.begin(), result.cells.end(),
                                   [&](const AnalysisCell& other) { return other.levels == levels; });
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

std::string all_levels_verdict(const Comparison& one, const AnalysisResult& result) {
  const ExperimentFactor& factor = result.factors[one.factor];
  const Measure& measure = result.measures[one.measure];
  return fmt::format("{} levels of {} {} in {}{} ({})", factor.levels.size(), factor.name,
                     one.is_different ? "differ" : "do not differ significantly",
                     measure.is_estimated() ? "estimated " : "", measure.name, p_values_phrase(one));
}

}  // namespace

std::string change_phrase(const Measure& measure, double difference, std::optional<double> percent) {
  const std::string_view direction = difference < 0 ? "less" : "more";
  const std::string amount =
      percent ? fmt::format("{:.3g} %", std::abs(*percent)) : amount_text(std::abs(difference), measure.unit);
  const std::string_view estimated = measure.is_estimated() ? "estimated " : "";
  const bool is_part = measure.kind == MeasureKind::domain || !measure.excluded_domains.empty();
  const std::string of =
      !is_part ? "" : " of " + (measure.excluded_domains.empty() ? measure.name : measured_domains_text(measure));
  switch (measure.kind) {
    case MeasureKind::energy:
    case MeasureKind::domain:
      return fmt::format("uses {} {} {}energy{}", amount, direction, estimated, of);
    case MeasureKind::time:
      return fmt::format("takes {} {} time", amount, direction);
    case MeasureKind::metric:
      break;
  }
  return fmt::format("has {} {} {}", amount, direction, measure.name);
}

std::string verdict_sentence(const Comparison& one, const AnalysisResult& result) {
  if (const Measure& energy = result.measures[one.measure];
      energy.domains.empty() && !energy.excluded_domains.empty()) {
    return "not compared: rows have no common domain with known energy";
  }
  if (!one.p) return "not tested: a level has fewer than two values";
  if (!one.a) return all_levels_verdict(one, result);
  const Measure& measure = result.measures[one.measure];
  const std::vector<std::string>& levels = result.factors[one.factor].levels;
  const std::string& a = levels[*one.a];
  const std::string& b = levels[*one.b];
  const std::string after = doubtful_mean_note(one, result);
  if (one.is_different) {
    return fmt::format("{} {} than {} ({}; {} effect, A12 {:.2f}; {}){}", a,
                       change_phrase(measure, one.difference.value_or(0), one.percent), b,
                       interval_phrase(one, measure), statistics::cliffs_delta_magnitude(one.cliffs_delta.value_or(0)),
                       one.vargha_delaney_a12.value_or(0.5), p_values_phrase(one), after);
  }
  const bool is_family_wise = result.adjustment == "holm" || result.adjustment == "bonferroni";
  const double needed =
      result.alpha / static_cast<double>(is_family_wise ? std::max<std::size_t>(one.family_size, 1) : 1);
  const double floor = min_attainable_p(one);
  if (*one.p < result.alpha && floor > needed) {
    return fmt::format(
        "not significant with {} {}: p = {} is near the smallest possible ({}), {} comparisons need {}; if "
        "real, {} {} than {} ({}){}",
        one.row_count_a, one.pairing == Pairing::paired ? "pairs" : "rows", p_value_text(*one.p), p_value_text(floor),
        one.family_size, p_value_text(needed), a, change_phrase(measure, one.difference.value_or(0), one.percent), b,
        interval_phrase(one, measure), after);
  }
  return fmt::format("no significant difference between {} and {}{} ({}; {}){}", a, b,
                     measure.is_estimated() ? " in estimated energy" : "", interval_phrase(one, measure),
                     p_values_phrase(one), after);
}

namespace {

std::string significance_tests_sentence(const AnalysisResult& result) {
  std::set<std::string> tests;
  for (const Comparison& one : result.comparisons) tests.insert(one.test);
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
  std::size_t largest = 0;
  for (const Comparison& one : result.comparisons) largest = std::max(largest, one.family_size);
  if (result.adjustment == "none") return fmt::format("p-values of up to {} comparisons were not adjusted", largest);
  const std::string_view how = result.adjustment == "holm"         ? "Holm's method"
                               : result.adjustment == "bonferroni" ? "Bonferroni's method"
                                                                   : "the Benjamini-Hochberg method";
  return fmt::format(
      "p-values were adjusted by {} within each family of comparisons (one factor, one test; {} at most)", how,
      largest);
}

}  // namespace

std::string methods_paragraph(const AnalysisResult& result) {
  std::size_t rows = 0;
  std::size_t least = result.cells.empty() ? 0 : result.cells.front().n;
  std::size_t most = 0;
  for (const AnalysisCell& cell : result.cells) {
    rows += cell.n;
    least = std::min(least, cell.n);
    most = std::max(most, cell.n);
  }
  const std::string n = least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
  std::string factors;
  for (const ExperimentFactor& factor : result.factors) {
    factors += fmt::format("{}{} ({} level{})", factors.empty() ? "" : ", ", factor.name, factor.levels.size(),
                           factor.levels.size() == 1 ? "" : "s");
  }
  std::string text = fmt::format("The experiment has the factors {}: {} cells with {} repetition{} each, {} runs. ",
                                 factors, result.cells.size(), n, most == 1 ? "" : "s", rows);
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
