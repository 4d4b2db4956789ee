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

// Names the number of combinations in the test if it left out some.
std::string p_value_phrase(const MainEffect& effect) {
  const std::string text = p_value_phrase(effect.p, effect.p_adjusted);
  if (effect.tested_combinations == effect.combinations) return text;
  return fmt::format("{}, tested over the {} with repetitions", text, effect.tested_combinations);
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
  HigherLevelEffect higher_level_effect{levels[are_levels_swapped ? *effect.b : *effect.a],
                                        levels[are_levels_swapped ? *effect.a : *effect.b]};
  higher_level_effect.agreeing_combination_count = are_levels_swapped ? effect.lower : effect.higher;
  higher_level_effect.opposing_combination_count = are_levels_swapped ? effect.higher : effect.lower;
  if (effect.percent) {
    const auto oriented_percent = [&](double percent) {
      return are_levels_swapped ? percent_of_inverse_ratio(percent) : percent;
    };
    higher_level_effect.percent = oriented_percent(*effect.percent);
    higher_level_effect.difference = *higher_level_effect.percent;
    const auto [low, high] =
        std::minmax({oriented_percent(*effect.percent_low), oriented_percent(*effect.percent_high)});
    higher_level_effect.interval_text = fmt::format("{:.3g} to {:.3g} %", low, high);
    const auto [min_percent, max_percent] = std::minmax(
        {oriented_percent(*effect.min_combination_percent), oriented_percent(*effect.max_combination_percent)});
    higher_level_effect.range_text = fmt::format("{:+.3g} to {:+.3g} %", min_percent, max_percent);
  } else if (effect.difference) {
    const std::string& unit = result.measures[effect.measure].unit;
    const double sign = are_levels_swapped ? -1 : 1;
    const auto [low, high] = std::minmax({sign * *effect.low, sign * *effect.high});
    higher_level_effect.difference = sign * *effect.difference;
    higher_level_effect.interval_text = fmt::format("{} to {}", amount_text(low, unit), amount_text(high, unit));
  }
  return higher_level_effect;
}

std::string factor_test_verdict(const MainEffect& effect, const AnalysisResult& result) {
  const ExperimentFactor& factor = result.factors[effect.factor];
  const std::string measure = measure_phrase(result.measures[effect.measure]);
  return fmt::format("{} levels of {} {} in {} over {} ({})", effect.levels, factor.name,
                     effect.generality == EffectGenerality::levels_differ ? "differ" : "do not differ significantly",
                     measure, combinations_text(effect, result), p_value_phrase(effect));
}

std::string general_effect_verdict(const MainEffect& effect, const HigherLevelEffect& higher_level_effect,
                                   const AnalysisResult& result) {
  return fmt::format(
      "{} {} than {} over {} ({}{}; higher in {} of {}; {})", higher_level_effect.higher_level,
      change_phrase(result.measures[effect.measure], higher_level_effect.difference, higher_level_effect.percent),
      higher_level_effect.lower_level, combinations_text(effect, result), higher_level_effect.interval_text,
      confidence_phrase(effect.confidence, result), higher_level_effect.agreeing_combination_count, effect.combinations,
      p_value_phrase(effect));
}

std::string inconsistent_effect_verdict(const MainEffect& effect, const HigherLevelEffect& higher_level_effect,
                                        const AnalysisResult& result) {
  const std::string range =
      higher_level_effect.range_text.empty() ? "" : fmt::format(", from {}", higher_level_effect.range_text);
  const std::string test =
      effect.direction_p_adjusted && *effect.direction_p_adjusted < result.alpha
          ? "directions differ: " + p_value_phrase(*effect.direction_p, *effect.direction_p_adjusted)
          : "combinations do not agree: " + p_value_phrase(*effect.combinations_p);
  return fmt::format("no general effect of {} on {}: {} is higher than {} in {} of {} and lower in {}{} ({})",
                     result.factors[effect.factor].name, measure_phrase(result.measures[effect.measure]),
                     higher_level_effect.higher_level, higher_level_effect.lower_level,
                     higher_level_effect.agreeing_combination_count, combinations_text(effect, result),
                     higher_level_effect.opposing_combination_count, range, test);
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
  const HigherLevelEffect higher_level_effect = make_higher_level_effect(effect, result);
  switch (effect.generality) {
    case EffectGenerality::same_direction:
      return general_effect_verdict(effect, higher_level_effect, result);
    case EffectGenerality::direction_differs:
      return inconsistent_effect_verdict(effect, higher_level_effect, result);
    case EffectGenerality::levels_differ:  // only the test over all levels, above
    case EffectGenerality::not_shown:
      break;
  }
  return fmt::format("no effect of {} on {} shown over {} ({} against {}: {}{}; higher in {} of {}; {})",
                     result.factors[effect.factor].name, measure_phrase(result.measures[effect.measure]),
                     combinations_text(effect, result), higher_level_effect.higher_level,
                     higher_level_effect.lower_level, higher_level_effect.interval_text,
                     confidence_phrase(effect.confidence, result), higher_level_effect.agreeing_combination_count,
                     effect.combinations, p_value_phrase(effect));
}

std::string verdict_sentence(const Interaction& interaction, const AnalysisResult& result) {
  const ExperimentFactor& factor = result.factors[interaction.factor];
  const ExperimentFactor& other_factor = result.factors[interaction.other];
  std::string levels;
  if (!interaction.levels.empty()) {
    const auto [min_effect, max_effect] = std::ranges::minmax_element(interaction.levels, {}, &LevelEffect::percent);
    levels = fmt::format(": {} against {} from {:+.3g} % ({}) to {:+.3g} % ({})", factor.levels[0], factor.levels[1],
                         min_effect->percent, other_factor.levels[min_effect->level], max_effect->percent,
                         other_factor.levels[max_effect->level]);
  }
  return fmt::format("the effect of {} on {} {} {}{} (F({:.4g}, {:.4g}) = {:.3g}, {})", factor.name,
                     measure_phrase(result.measures[interaction.measure]),
                     interaction.is_different ? "depends on" : "is not shown to depend on", other_factor.name, levels,
                     interaction.numerator_df, interaction.denominator_df, interaction.f,
                     p_value_phrase(interaction.p, interaction.p_adjusted));
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
