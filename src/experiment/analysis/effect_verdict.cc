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

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

// Up to this number of combinations, the signed-rank test of their effects cannot show that combinations agree.
constexpr std::size_t kFewCombinations = 5;

// "36 combinations of data set, model and batch". The effect in few combinations does not extend to others: "these 4".
std::string combinations_text(const MainEffect& effect, const AnalysisResult& result) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < result.factors.size(); ++i) {
    if (i != effect.factor && result.factors[i].levels.size() > 1) names.push_back(result.factors[i].name);
  }
  return fmt::format("{}{} {} of {}", effect.combinations > kFewCombinations ? "" : "these ", effect.combinations,
                     names.size() == 1 ? "levels" : "combinations", joined_words(names));
}

// "p = 0.012", "p < 1e-9".
std::string p_words(double p) {
  const std::string text = p_text(p);
  return text.starts_with('<') ? "p < " + text.substr(1) : "p = " + text;
}

std::string p_words(double p, double adjusted) { return fmt::format("{}, adjusted {}", p_words(p), p_text(adjusted)); }

std::string p_words(const MainEffect& effect) { return p_words(effect.p, effect.p_adjusted); }

// "energy", "time", "energy of gpu", "accuracy".
std::string measure_words(const Measure& measure) {
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
struct UpwardEffect {
  std::string higher;  // level with the higher values
  std::string lower;
  double difference = 0;
  std::optional<double> percent;
  std::string interval;          // "29 to 35 %"
  std::size_t combinations = 0;  // number of combinations that agree
  std::size_t opposite = 0;
  std::string range;  // "-3 % to 40 %", of the combinations
};

// The same ratio, seen from the other level.
double inverse_percent(double percent) { return 100 * (1 / (1 + percent / 100) - 1); }

UpwardEffect upward(const MainEffect& effect, const AnalysisResult& result) {
  const std::vector<std::string>& levels = result.factors[effect.factor].levels;
  const bool is_swapped = effect.percent ? *effect.percent < 0 : effect.difference.value_or(0) < 0;
  UpwardEffect up{levels[is_swapped ? *effect.b : *effect.a], levels[is_swapped ? *effect.a : *effect.b]};
  up.combinations = is_swapped ? effect.lower : effect.higher;
  up.opposite = is_swapped ? effect.higher : effect.lower;
  if (effect.percent) {
    const auto seen = [&](double percent) { return is_swapped ? inverse_percent(percent) : percent; };
    up.percent = seen(*effect.percent);
    up.difference = *up.percent;
    const auto [low, high] = std::minmax({seen(*effect.percent_low), seen(*effect.percent_high)});
    up.interval = fmt::format("{:.3g} to {:.3g} %", low, high);
    const auto [least, most] = std::minmax({seen(*effect.least_percent), seen(*effect.most_percent)});
    up.range = fmt::format("{:+.3g} to {:+.3g} %", least, most);
  } else if (effect.difference) {
    const std::string& unit = result.measures[effect.measure].unit;
    const double sign = is_swapped ? -1 : 1;
    const auto [low, high] = std::minmax({sign * *effect.low, sign * *effect.high});
    up.difference = sign * *effect.difference;
    up.interval = fmt::format("{} to {}", amount_text(low, unit), amount_text(high, unit));
  }
  return up;
}

std::string confidence_words(const MainEffect& effect, const AnalysisResult& result) {
  if (!effect.confidence || *effect.confidence >= 1 - result.alpha - 1e-9) return "";
  return fmt::format(" at {:.3g} % confidence", 100 * *effect.confidence);
}

std::string verdict_of_factor(const MainEffect& effect, const AnalysisResult& result) {
  const ExperimentFactor& factor = result.factors[effect.factor];
  const std::string measure = measure_words(result.measures[effect.measure]);
  return fmt::format("{} levels of {} {} in {} over {} ({})", effect.levels, factor.name,
                     effect.generality == Generality::differs ? "differ" : "do not differ significantly", measure,
                     combinations_text(effect, result), p_words(effect));
}

std::string general_verdict(const MainEffect& effect, const UpwardEffect& up, const AnalysisResult& result) {
  return fmt::format("{} {} than {} over {} ({}{}; higher in {} of {}; {})", up.higher,
                     change_words(result.measures[effect.measure], up.difference, up.percent), up.lower,
                     combinations_text(effect, result), up.interval, confidence_words(effect, result), up.combinations,
                     effect.combinations, p_words(effect));
}

std::string differing_verdict(const MainEffect& effect, const UpwardEffect& up, const AnalysisResult& result) {
  const std::string range = up.range.empty() ? "" : fmt::format(", from {}", up.range);
  const std::string test = effect.direction_p_adjusted && *effect.direction_p_adjusted < result.alpha
                               ? "directions differ: " + p_words(*effect.direction_p, *effect.direction_p_adjusted)
                               : "combinations do not agree: " + p_words(*effect.combinations_p);
  return fmt::format("no general effect of {} on {}: {} is higher than {} in {} of {} and lower in {}{} ({})",
                     result.factors[effect.factor].name, measure_words(result.measures[effect.measure]), up.higher,
                     up.lower, up.combinations, combinations_text(effect, result), up.opposite, range, test);
}

// All tests of the effects, in the order of this table: "A, B and C".
std::string tests_of_effects(const std::vector<MainEffect>& effects) {
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
  return joined_words(names);
}

}  // namespace

std::string verdict_of(const MainEffect& effect, const AnalysisResult& result) {
  if (!effect.a) return verdict_of_factor(effect, result);
  const UpwardEffect up = upward(effect, result);
  switch (effect.generality) {
    case Generality::general:
      return general_verdict(effect, up, result);
    case Generality::direction_differs:
      return differing_verdict(effect, up, result);
    case Generality::differs:  // only the test over all levels, above
    case Generality::not_shown:
      break;
  }
  return fmt::format("no effect of {} on {} shown over {} ({} against {}: {}{}; higher in {} of {}; {})",
                     result.factors[effect.factor].name, measure_words(result.measures[effect.measure]),
                     combinations_text(effect, result), up.higher, up.lower, up.interval,
                     confidence_words(effect, result), up.combinations, effect.combinations, p_words(effect));
}

std::string verdict_of(const Interaction& one, const AnalysisResult& result) {
  const ExperimentFactor& factor = result.factors[one.factor];
  const ExperimentFactor& other = result.factors[one.other];
  std::string levels;
  if (!one.levels.empty()) {
    const auto [least, most] = std::ranges::minmax_element(one.levels, {}, &LevelEffect::percent);
    levels = fmt::format(": {} against {} from {:+.3g} % ({}) to {:+.3g} % ({})", factor.levels[0], factor.levels[1],
                         least->percent, other.levels[least->level], most->percent, other.levels[most->level]);
  }
  return fmt::format("the effect of {} on {} {} {}{} (F({:.4g}, {:.4g}) = {:.3g}, {})", factor.name,
                     measure_words(result.measures[one.measure]),
                     one.is_different ? "depends on" : "is not shown to depend on", other.name, levels,
                     one.numerator_df, one.denominator_df, one.f, p_words(one.p, one.p_adjusted));
}

std::string effects_methods(const AnalysisResult& result) {
  if (result.main_effects.empty()) return "";
  std::string text = fmt::format(
      "Effects over all combinations of the other factors were tested by {}. An effect is called general "
      "only if combinations agree in direction (signed-rank test of their effects, test of Gail and Simon). "
      "Its size is the stratified Hodges-Lehmann estimate of the log ratio; the interval covers that of the "
      "stratified test and that of the combinations' effects. ",
      tests_of_effects(result.main_effects));
  if (!result.interactions.empty()) {
    text += fmt::format(
        "Interactions were tested by F tests (type III) in a linear {}model of logarithms{}, and of aligned ranks. ",
        result.is_blocked ? "mixed " : "",
        result.is_blocked ? " with a random intercept per block (REML, degrees of freedom by containment)" : "");
  }
  return text;
}

}  // namespace joulemap::experiment
