// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/effect_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/amount_text.h"
#include "experiment/analysis/verdict.h"

namespace joulemap::experiment {
namespace {

std::string join_with_and(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

// Up to this number of combinations, the signed-rank test of their effects cannot show that combinations agree.
constexpr std::size_t kMaxInconclusiveCombinations = 5;

// "36 combinations of data set, model and batch". The effect in few combinations does not extend to others: "these 4".
std::string combinations_text(const MainEffect& effect, const AnalysisResult& result) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < result.factors.size(); ++i) {
    if (i != effect.factor && result.factors[i].levels.size() > 1) names.push_back(result.factors[i].name);
  }
  return fmt::format("{}{} {} of {}", effect.combinations > kMaxInconclusiveCombinations ? "" : "these ",
                     effect.combinations, names.size() == 1 ? "levels" : "combinations", join_with_and(names));
}

// "p = 0.012", "p < 1e-9".
std::string p_value_phrase(double p) {
  const std::string text = p_value_text(p);
  return text.starts_with('<') ? "p < " + text.substr(1) : "p = " + text;
}

std::string p_value_phrase(double p, double adjusted_p) {
  return fmt::format("{}, adjusted {}", p_value_phrase(p), p_value_text(adjusted_p));
}

std::string p_value_phrase(const MainEffect& effect) { return p_value_phrase(effect.p, effect.p_adjusted); }

// "energy", "time", "energy of gpu", "accuracy".
std::string measure_phrase(const Measure& measure) {
  const std::string_view estimated = measure.is_estimated() ? "estimated " : "";
  switch (measure.kind) {
    case MeasureKind::energy:
      return fmt::format("{}energy", estimated);
    case MeasureKind::domain:
      return fmt::format("{}energy of {}", estimated, measure.name);
    case MeasureKind::time:
      return "time";
    case MeasureKind::metric:
      break;
  }
  return measure.name;
}

// An effect seen from its higher level, so that it reads "uses 32 % more".
struct HigherLevelEffect {
  std::string higher_level;  // level with the higher values
  std::string lower_level;
  double difference = 0;
  std::optional<double> percent;
  std::string interval_text;                   // "29 to 35 %"
  std::size_t agreeing_combination_count = 0;  // number of combinations that agree
  std::size_t opposing_combination_count = 0;
  std::string range_text;  // "-3 % to 40 %", of the combinations
};

// The same ratio, seen from the other level.
double percent_of_inverse_ratio(double percent) { return 100 * (1 / (1 + percent / 100) - 1); }

HigherLevelEffect make_higher_level_effect(const MainEffect& effect, const AnalysisResult& result) {
  const std::vector<std::string>& levels = result.factors[effect.factor].levels;
  const bool are_levels_swapped = effect.percent ? *effect.percent < 0 : effect.difference.value_or(0) < 0;
  HigherLevelEffect up{levels[are_levels_swapped ? *effect.b : *effect.a],
                       levels[are_levels_swapped ? *effect.a : *effect.b]};
  up.agreeing_combination_count = are_levels_swapped ? effect.lower : effect.higher;
  up.opposing_combination_count = are_levels_swapped ? effect.higher : effect.lower;
  if (effect.percent) {
    const auto seen = [&](double percent) { return are_levels_swapped ? percent_of_inverse_ratio(percent) : percent; };
    up.percent = seen(*effect.percent);
    up.difference = *up.percent;
    const auto [low, high] = std::minmax({seen(*effect.percent_low), seen(*effect.percent_high)});
    up.interval_text = fmt::format("{:.3g} to {:.3g} %", low, high);
    const auto [least, most] =
        std::minmax({seen(*effect.min_combination_percent), seen(*effect.max_combination_percent)});
    up.range_text = fmt::format("{:+.3g} to {:+.3g} %", least, most);
  } else if (effect.difference) {
    const std::string& unit = result.measures[effect.measure].unit;
    const double sign = are_levels_swapped ? -1 : 1;
    const auto [low, high] = std::minmax({sign * *effect.low, sign * *effect.high});
    up.difference = sign * *effect.difference;
    up.interval_text = fmt::format("{} to {}", amount_text(low, unit), amount_text(high, unit));
  }
  return up;
}

std::string confidence_phrase(const MainEffect& effect, const AnalysisResult& result) {
  if (!effect.confidence || *effect.confidence >= 1 - result.alpha - 1e-9) return "";
  return fmt::format(" at {:.3g} % confidence", 100 * *effect.confidence);
}

std::string factor_test_verdict(const MainEffect& effect, const AnalysisResult& result) {
  const ExperimentFactor& factor = result.factors[effect.factor];
  const std::string measure = measure_phrase(result.measures[effect.measure]);
  return fmt::format("{} levels of {} {} in {} over {} ({})", effect.levels, factor.name,
                     effect.generality == EffectGenerality::levels_differ ? "differ" : "do not differ significantly",
                     measure, combinations_text(effect, result), p_value_phrase(effect));
}

std::string general_effect_verdict(const MainEffect& effect, const HigherLevelEffect& up,
                                   const AnalysisResult& result) {
  return fmt::format("{} {} than {} over {} ({}{}; higher in {} of {}; {})", up.higher_level,
                     change_phrase(result.measures[effect.measure], up.difference, up.percent), up.lower_level,
                     combinations_text(effect, result), up.interval_text, confidence_phrase(effect, result),
                     up.agreeing_combination_count, effect.combinations, p_value_phrase(effect));
}

std::string inconsistent_effect_verdict(const MainEffect& effect, const HigherLevelEffect& up,
                                        const AnalysisResult& result) {
  const std::string range = up.range_text.empty() ? "" : fmt::format(", from {}", up.range_text);
  const std::string test =
      effect.direction_p_adjusted && *effect.direction_p_adjusted < result.alpha
          ? "directions differ: " + p_value_phrase(*effect.direction_p, *effect.direction_p_adjusted)
          : "combinations do not agree: " + p_value_phrase(*effect.combinations_p);
  return fmt::format("no general effect of {} on {}: {} is higher than {} in {} of {} and lower in {}{} ({})",
                     result.factors[effect.factor].name, measure_phrase(result.measures[effect.measure]),
                     up.higher_level, up.lower_level, up.agreeing_combination_count, combinations_text(effect, result),
                     up.opposing_combination_count, range, test);
}

// Lists the names of the tests that the effects used, as "A, B and C", in the order of kNames.
std::string effect_test_names_text(const std::vector<MainEffect>& effects) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames = {{
      {"stratified-signed-rank", "the stratified signed-rank test (van Elteren's weights)"},
      {"van-elteren", "van Elteren's stratified rank-sum test"},
      {"wilcoxon-signed-rank", "the signed-rank test of the combinations' effects"},
      {"mixed-model-f", "the F test of all levels in a linear mixed model"},
      {"linear-model-f", "the F test of all levels in a linear model"},
  }};
  std::vector<std::string> names;
  for (const auto& [test, name] : kNames) {
    if (std::ranges::find(effects, test, &MainEffect::test) != effects.end()) names.emplace_back(name);
  }
  return join_with_and(names);
}

}  // namespace

std::string verdict_sentence(const MainEffect& effect, const AnalysisResult& result) {
  if (!effect.a) return factor_test_verdict(effect, result);
  const HigherLevelEffect up = make_higher_level_effect(effect, result);
  switch (effect.generality) {
    case EffectGenerality::same_direction:
      return general_effect_verdict(effect, up, result);
    case EffectGenerality::direction_differs:
      return inconsistent_effect_verdict(effect, up, result);
    case EffectGenerality::levels_differ:  // only the test over all levels, above
    case EffectGenerality::not_shown:
      break;
  }
  return fmt::format("no effect of {} on {} shown over {} ({} against {}: {}{}; higher in {} of {}; {})",
                     result.factors[effect.factor].name, measure_phrase(result.measures[effect.measure]),
                     combinations_text(effect, result), up.higher_level, up.lower_level, up.interval_text,
                     confidence_phrase(effect, result), up.agreeing_combination_count, effect.combinations,
                     p_value_phrase(effect));
}

std::string verdict_sentence(const Interaction& one, const AnalysisResult& result) {
  const ExperimentFactor& factor = result.factors[one.factor];
  const ExperimentFactor& other = result.factors[one.other];
  std::string levels;
  if (!one.levels.empty()) {
    const auto [least, most] = std::ranges::minmax_element(one.levels, {}, &LevelEffect::percent);
    levels = fmt::format(": {} against {} from {:+.3g} % ({}) to {:+.3g} % ({})", factor.levels[0], factor.levels[1],
                         least->percent, other.levels[least->level], most->percent, other.levels[most->level]);
  }
  return fmt::format("the effect of {} on {} {} {}{} (F({:.4g}, {:.4g}) = {:.3g}, {})", factor.name,
                     measure_phrase(result.measures[one.measure]),
                     one.is_different ? "depends on" : "is not shown to depend on", other.name, levels,
                     one.numerator_df, one.denominator_df, one.f, p_value_phrase(one.p, one.p_adjusted));
}

std::string effect_methods_sentences(const AnalysisResult& result) {
  if (result.main_effects.empty()) return "";
  std::string text = fmt::format(
      "Effects over all combinations of the other factors were tested by {}. An effect is called general "
      "only if combinations agree in direction (signed-rank test of their effects, test of Gail and Simon). "
      "Its size is the stratified Hodges-Lehmann estimate of the log ratio; the interval covers that of the "
      "stratified test and that of the combinations' effects. ",
      effect_test_names_text(result.main_effects));
  if (!result.interactions.empty()) {
    text += fmt::format(
        "Interactions were tested by F tests (type III) in a linear {}model of logarithms{}, and of aligned ranks. ",
        result.is_blocked ? "mixed " : "",
        result.is_blocked ? " with a random intercept per block (REML, degrees of freedom by containment)" : "");
  }
  return text;
}

}  // namespace joulemap::experiment
