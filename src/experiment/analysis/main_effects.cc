// SPDX-License-Identifier: Apache-2.0
#include "experiment/analysis/main_effects.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "experiment/analysis/cell_groups.h"
#include "experiment/analysis/parallel_for.h"
#include "statistics/bootstrap.h"
#include "statistics/linear_mixed_model.h"
#include "statistics/stratified_tests.h"

namespace joulemap::experiment {
namespace {

using statistics::EffectEstimate;
using statistics::FactorialFit;
using statistics::ModelTerm;
using statistics::Stratum;

// Limits on the size of a model: its terms are all subsets of the other factors. Larger experiments have only rank
// tests.
constexpr std::size_t kMaxModelColumns = 300;
constexpr std::size_t kMaxModelFactors = 12;

// All rows of one measure, as logarithms if every value is above 0.
struct MeasureValues {
  bool is_logarithmic = true;
  std::vector<std::optional<double>> values;  // by row of the data

  double to_analysis_scale(double value) const { return is_logarithmic ? std::log(value) : value; }
  std::vector<double> to_analysis_scale(std::vector<double> raw_values) const {
    for (double& value : raw_values) value = to_analysis_scale(value);
    return raw_values;
  }
};

MeasureValues collect_measure_values(const ExperimentData& data, const ExperimentTable& table, std::size_t measure) {
  MeasureValues result;
  for (std::size_t row = 0; row < table.values_by_row.size(); ++row) {
    const std::optional<double>& value = table.values_by_row[row][measure];
    result.values.push_back(value);
    if (data.rows[row].state == ExperimentRowState::done && value && !(*value > 0)) result.is_logarithmic = false;
  }
  return result;
}

// The values of two levels in one combination of the other factors' levels.
struct FactorCombination {
  std::vector<std::optional<std::size_t>> fixed_levels;
  Stratum level_values;
  double location_shift = 0;  // Hodges-Lehmann shift a - b
};

std::vector<FactorCombination> make_factor_combinations(const ExperimentData& data, const ExperimentTable& table,
                                                        const MainEffect& effect, const MeasureValues& values) {
  std::vector<FactorCombination> combinations;
  const bool is_paired = effect.pairing == Pairing::paired;
  for (const CellGroup& group : group_cells_by_other_factors(data, table, effect.factor)) {
    const std::optional<std::size_t> a = group.cells[*effect.a];
    const std::optional<std::size_t> b = group.cells[*effect.b];
    if (!a || !b) continue;
    FactorCombination combination;
    combination.fixed_levels = group.fixed_levels;
    if (is_paired) {
      std::vector<std::vector<double>> values_by_level =
          values_in_common_blocks(data, table, std::vector{*a, *b}, effect.measure);
      combination.level_values = {values.to_analysis_scale(std::move(values_by_level[0])),
                                  values.to_analysis_scale(std::move(values_by_level[1]))};
    } else {
      combination.level_values = {
          values.to_analysis_scale(table.measure_values_of_cell(table.cells[*a], effect.measure)),
          values.to_analysis_scale(table.measure_values_of_cell(table.cells[*b], effect.measure))};
    }
    const auto shift = is_paired ? statistics::paired_shift(combination.level_values.first_values,
                                                            combination.level_values.second_values, 0.95)
                                 : statistics::unpaired_shift(combination.level_values.first_values,
                                                              combination.level_values.second_values, 0.95);
    if (!shift) continue;
    combination.location_shift = shift->estimate;
    combinations.push_back(std::move(combination));
  }
  return combinations;
}

double sum_of_squared_deviations(const std::vector<double>& values) {
  const double mean = statistics::mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares;
}

// Gail and Simon's test, with the variance within combinations, which is assumed to be the same in all of them.
std::optional<double> qualitative_interaction_p(const std::vector<FactorCombination>& combinations, bool is_paired) {
  std::vector<double> effects;
  std::vector<double> errors;
  double squares = 0;
  double freedom = 0;
  for (const FactorCombination& combination : combinations) {
    const auto n1 = static_cast<double>(combination.level_values.first_values.size());
    const auto n2 = static_cast<double>(combination.level_values.second_values.size());
    effects.push_back(statistics::mean_of(combination.level_values.first_values) -
                      statistics::mean_of(combination.level_values.second_values));
    if (is_paired) {
      std::vector<double> differences = combination.level_values.first_values;
      for (std::size_t i = 0; i < differences.size(); ++i) differences[i] -= combination.level_values.second_values[i];
      squares += sum_of_squared_deviations(differences);
      freedom += n1 - 1;
      errors.push_back(std::sqrt(1 / n1));
    } else {
      squares += sum_of_squared_deviations(combination.level_values.first_values) +
                 sum_of_squared_deviations(combination.level_values.second_values);
      freedom += n1 + n2 - 2;
      errors.push_back(std::sqrt(1 / n1 + 1 / n2));
    }
  }
  if (freedom < 1) return std::nullopt;
  for (double& error : errors) error *= std::sqrt(squares / freedom);
  return statistics::qualitative_interaction_test(effects, errors, freedom).p;
}

void set_effect_size(MainEffect& effect, const EffectEstimate& shift, bool is_logarithmic_scale) {
  const auto set_estimate = [&](auto& estimate, auto& low, auto& high, auto scale) {
    estimate = scale(shift.estimate);
    low = scale(shift.low);
    high = scale(shift.high);
  };
  if (is_logarithmic_scale) {
    set_estimate(effect.percent, effect.percent_low, effect.percent_high,
                 [](double log) { return 100 * std::expm1(log); });
  } else {
    set_estimate(effect.difference, effect.low, effect.high, [](double value) { return value; });
  }
  effect.confidence = shift.confidence;
}

// The interval that covers both: the true effect may be the same in all combinations, or differ between them. The
// interval of combinations counts only if they are enough for its confidence.
EffectEstimate cover_both_intervals(const std::optional<EffectEstimate>& stratified_estimate,
                                    const EffectEstimate& combination_estimate, double confidence) {
  if (!stratified_estimate) return combination_estimate;
  if (combination_estimate.confidence < confidence) return *stratified_estimate;
  return {stratified_estimate->estimate, std::min(stratified_estimate->low, combination_estimate.low),
          std::max(stratified_estimate->high, combination_estimate.high),
          std::min(stratified_estimate->confidence, combination_estimate.confidence)};
}

void test_level_difference(MainEffect& effect, const std::vector<FactorCombination>& combinations,
                           bool is_logarithmic_scale, double confidence) {
  const bool is_paired = effect.pairing == Pairing::paired;
  std::vector<Stratum> strata;
  std::vector<double> effects;
  for (const FactorCombination& combination : combinations) {
    strata.push_back(combination.level_values);
    effects.push_back(combination.location_shift);
  }
  const statistics::StrataConsistency consistency = statistics::compute_strata_consistency(effects, confidence);
  effect.combinations = combinations.size();
  effect.higher = consistency.higher_count;
  effect.lower = consistency.lower_count;
  effect.combinations_p = consistency.signed_rank_result.p;
  effect.direction_p = qualitative_interaction_p(combinations, is_paired);
  if (is_logarithmic_scale) {
    effect.min_combination_percent = 100 * std::expm1(*std::ranges::min_element(effects));
    effect.max_combination_percent = 100 * std::expm1(*std::ranges::max_element(effects));
  }
  // Stratified tests leave out combinations without repetitions. They are used once most combinations have some, so
  // that the first repetition of a second block does not discard all others.
  const auto repeated_stratum_count =
      static_cast<std::size_t>(std::ranges::count_if(strata, statistics::has_repetitions));
  const bool is_stratified = 2 * repeated_stratum_count >= strata.size();
  const statistics::TestResult test = !is_stratified ? consistency.signed_rank_result
                                      : is_paired    ? statistics::stratified_signed_rank_test(strata)
                                                     : statistics::stratified_rank_sum_test(strata);
  effect.tested_combinations = is_stratified ? repeated_stratum_count : strata.size();
  effect.test = !is_stratified ? "wilcoxon-signed-rank" : is_paired ? "stratified-signed-rank" : "van-elteren";
  effect.n = test.n;
  effect.statistic = test.statistic;
  effect.p = test.p;
  effect.is_exact = test.p_value_method == statistics::PValueMethod::exact;
  const std::optional<EffectEstimate> stratified_estimate =
      !is_stratified ? std::nullopt
      : is_paired    ? statistics::stratified_paired_shift(strata, confidence)
                     : statistics::stratified_unpaired_shift(strata, confidence);
  set_effect_size(effect, cover_both_intervals(stratified_estimate, *consistency.shift, confidence),
                  is_logarithmic_scale);
}

// A fitted model of one factor and measure, with its values.
struct MeasureModel {
  statistics::FactorialData data;
  std::optional<FactorialFit> fit;
  bool is_logarithmic = true;

  std::string test_name() const { return data.blocks.empty() ? "linear-model-f" : "mixed-model-f"; }
  std::optional<std::size_t> find_term_index(const ModelTerm& target_term) const {
    const auto matching_term = std::ranges::find(fit->terms, target_term);
    if (matching_term == fit->terms.end()) return std::nullopt;
    return static_cast<std::size_t>(matching_term - fit->terms.begin());
  }
};

std::size_t count_model_columns(const ExperimentData& data, const std::vector<ModelTerm>& terms) {
  std::size_t columns = 1;
  for (const ModelTerm& term : terms) {
    std::size_t term_column_count = 1;
    for (const std::size_t factor : term) term_column_count *= data.factors[factor].levels.size() - 1;
    columns += term_column_count;
  }
  return columns;
}

// The model of one factor, with its interactions if there are enough rows.
MeasureModel fit_measure_model(const ExperimentData& data, const MeasureValues& values, std::size_t factor) {
  MeasureModel model;
  model.is_logarithmic = values.is_logarithmic;
  for (std::size_t row = 0; row < data.rows.size(); ++row) {
    if (!values.values[row] || data.rows[row].state != ExperimentRowState::done) continue;
    model.data.values.push_back(values.to_analysis_scale(*values.values[row]));
    model.data.levels.push_back(data.rows[row].levels);
    if (data.is_blocked) model.data.blocks.push_back(data.rows[row].block);
  }
  if (data.factors.size() > kMaxModelFactors) return model;
  for (const bool has_interactions : {true, false}) {
    const auto terms = statistics::make_comparison_terms(data.factors.size(), factor, has_interactions);
    if (model.fit || count_model_columns(data, terms) > kMaxModelColumns) continue;
    model.fit = statistics::fit_factorial_model(model.data, terms);
  }
  return model;
}

void set_effect_size_of_model(MainEffect& effect, const MeasureModel& model, double confidence) {
  if (!model.fit || !model.is_logarithmic) return;
  const auto size = statistics::estimate_level_difference(*model.fit, effect.factor, *effect.a, *effect.b, confidence);
  if (!size) return;
  effect.model_percent = 100 * std::expm1(size->estimate);
  effect.model_percent_low = 100 * std::expm1(size->low);
  effect.model_percent_high = 100 * std::expm1(size->high);
}

// The test over all levels of a factor with more than two. Nothing if there is no model.
std::optional<MainEffect> test_factor_effect(MainEffect effect, const MeasureModel& model, std::size_t combinations) {
  const std::optional<std::size_t> term = model.fit ? model.find_term_index({effect.factor}) : std::nullopt;
  // With a missing cell the main effect depends on which interaction columns remain, so on the order of levels.
  for (std::size_t i = 0; term && i < model.fit->terms.size(); ++i) {
    const bool has_factor = std::ranges::find(model.fit->terms[i], effect.factor) != model.fit->terms[i].end();
    if (has_factor && !model.fit->has_all_contrasts[i]) return std::nullopt;
  }
  const auto test = term && combinations > 1 ? statistics::wald_f_test(*model.fit, *term) : std::nullopt;
  if (!test) return std::nullopt;
  effect.combinations = effect.tested_combinations = combinations;
  effect.levels = model.fit->levels[effect.factor].size();
  effect.test = model.test_name();
  effect.n = model.data.values.size();
  effect.p = test->p;
  effect.statistic = test->f;
  if (const auto rank_test = statistics::aligned_rank_test(model.data, *model.fit, *term)) effect.rank_p = rank_test->p;
  return effect;
}

// Mean effect at each level of the other factor.
std::vector<LevelEffect> mean_effects_by_level(const std::vector<FactorCombination>& combinations,
                                               std::size_t other_factor) {
  std::map<std::size_t, std::vector<double>> effects;
  for (const FactorCombination& combination : combinations)
    effects[*combination.fixed_levels[other_factor]].push_back(combination.location_shift);
  std::vector<LevelEffect> levels;
  levels.reserve(effects.size());
  for (const auto& [level, location_shifts] : effects)
    levels.push_back({level, 100 * std::expm1(statistics::mean_of(location_shifts))});
  return levels;
}

std::vector<Interaction> test_interactions(const ExperimentData& data, const MeasureModel& model, std::size_t measure,
                                           std::size_t factor, const std::vector<std::size_t>& compared_factors) {
  std::vector<Interaction> interactions;
  if (!model.fit) return interactions;
  for (std::size_t other_factor = 0; other_factor < data.factors.size(); ++other_factor) {
    const bool is_already_tested =
        other_factor < factor && std::ranges::find(compared_factors, other_factor) != compared_factors.end();
    if (other_factor == factor || is_already_tested) continue;
    const auto term = model.find_term_index({std::min(factor, other_factor), std::max(factor, other_factor)});
    const auto test = term ? statistics::wald_f_test(*model.fit, *term) : std::nullopt;
    if (!test) continue;
    Interaction interaction{
        factor, other_factor, measure, model.test_name(), test->f, test->numerator_df, test->denominator_df, test->p};
    if (const auto rank_test = statistics::aligned_rank_test(model.data, *model.fit, *term))
      interaction.rank_p = rank_test->p;
    interactions.push_back(std::move(interaction));
  }
  return interactions;
}

// The effects of one factor on one measure.
struct EffectTask {
  std::size_t measure = 0;
  std::size_t factor = 0;
  FactorEffects effects;
};

void test_level_pairs(EffectTask& task, const ExperimentData& data, const ExperimentTable& table,
                      const MeasureValues& values, const MeasureModel& model, const MainEffect& base_effect,
                      double confidence) {
  const std::size_t levels = data.factors[task.factor].levels.size();
  for (std::size_t level_a = 0; level_a < levels; ++level_a) {
    for (std::size_t level_b = level_a + 1; level_b < levels; ++level_b) {
      MainEffect pair = base_effect;
      pair.a = level_a;
      pair.b = level_b;
      const std::vector<FactorCombination> combinations = make_factor_combinations(data, table, pair, values);
      if (combinations.size() < 2) continue;
      test_level_difference(pair, combinations, values.is_logarithmic, confidence);
      set_effect_size_of_model(pair, model, confidence);
      task.effects.main_effects.push_back(std::move(pair));
      if (levels > 2 || !values.is_logarithmic) continue;
      for (Interaction& interaction : task.effects.interactions)
        interaction.levels = mean_effects_by_level(combinations, interaction.other);
    }
  }
}

// Number of combinations in which at least two levels of the factor have values.
std::size_t count_compared_combinations(const std::vector<CellGroup>& groups, const ExperimentTable& table,
                                        std::size_t measure) {
  return static_cast<std::size_t>(std::ranges::count_if(groups, [&](const CellGroup& group) {
    return std::ranges::count_if(group.cells, [&](const std::optional<std::size_t>& cell) {
             return cell && !table.measure_values_of_cell(table.cells[*cell], measure).empty();
           }) > 1;
  }));
}

void run_effect_task(EffectTask& task, const ExperimentData& data, const ExperimentTable& table,
                     const ComparisonOptions& options) {
  const std::vector<CellGroup> groups = group_cells_by_other_factors(data, table, task.factor);
  if (groups.size() < 2) return;
  const std::size_t combinations = count_compared_combinations(groups, table, task.measure);
  const MeasureValues values = collect_measure_values(data, table, task.measure);
  const MeasureModel model = fit_measure_model(data, values, task.factor);
  task.effects.interactions = test_interactions(data, model, task.measure, task.factor, options.factors);
  MainEffect base_effect;
  base_effect.factor = task.factor;
  base_effect.measure = task.measure;
  base_effect.pairing = data.is_blocked ? Pairing::paired : Pairing::unpaired;
  if (data.factors[task.factor].levels.size() > 2) {
    if (std::optional<MainEffect> effect = test_factor_effect(base_effect, model, combinations))
      task.effects.main_effects.push_back(*std::move(effect));
  }
  test_level_pairs(task, data, table, values, model, base_effect, 1 - options.significance_level);
}

EffectGenerality classify_effect_generality(const MainEffect& effect, double alpha) {
  if (effect.direction_p_adjusted && *effect.direction_p_adjusted < alpha) return EffectGenerality::direction_differs;
  if (effect.p_adjusted >= alpha) return EffectGenerality::not_shown;
  if (!effect.a) return EffectGenerality::levels_differ;
  const bool is_direction_consistent = effect.higher == 0 || effect.lower == 0 || *effect.combinations_p < alpha;
  return is_direction_consistent ? EffectGenerality::same_direction : EffectGenerality::direction_differs;
}

// Adjusts p values of one family: `p` reads them, `set` takes the adjusted value and the size of the family.
template <class Items, class P, class Set>
void adjust_p_values_of_family(Items& items, const std::vector<std::size_t>& members, statistics::Adjustment adjustment,
                               P p, Set set) {
  std::vector<double> values;
  values.reserve(members.size());
  for (const std::size_t i : members) values.push_back(p(items[i]));
  const std::vector<double> adjusted_values = statistics::adjusted_p_values(values, adjustment);
  for (std::size_t k = 0; k < members.size(); ++k) set(items[members[k]], adjusted_values[k], members.size());
}

void adjust_p_values_by_family(std::vector<MainEffect>& effects, const ComparisonOptions& options) {
  std::map<std::pair<std::size_t, bool>, std::vector<std::size_t>> families;
  std::map<std::size_t, std::vector<std::size_t>> directions;
  for (std::size_t i = 0; i < effects.size(); ++i) {
    families[{effects[i].factor, effects[i].a.has_value()}].push_back(i);
    if (effects[i].direction_p) directions[effects[i].factor].push_back(i);
  }
  for (const auto& [key, members] : families) {
    adjust_p_values_of_family(
        effects, members, options.adjustment, [](const MainEffect& effect) { return effect.p; },
        [](MainEffect& effect, double p, std::size_t size) {
          effect.p_adjusted = p;
          effect.family_size = size;
        });
  }
  for (const auto& [factor, members] : directions) {
    adjust_p_values_of_family(
        effects, members, options.adjustment, [](const MainEffect& effect) { return *effect.direction_p; },
        [](MainEffect& effect, double p, std::size_t) { effect.direction_p_adjusted = p; });
  }
  for (MainEffect& effect : effects) effect.generality = classify_effect_generality(effect, options.significance_level);
}

void adjust_p_values_by_family(std::vector<Interaction>& interactions, const ComparisonOptions& options) {
  std::map<std::size_t, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < interactions.size(); ++i) families[interactions[i].factor].push_back(i);
  for (const auto& [factor, members] : families) {
    adjust_p_values_of_family(
        interactions, members, options.adjustment, [](const Interaction& interaction) { return interaction.p; },
        [&](Interaction& interaction, double p, std::size_t size) {
          interaction.p_adjusted = p;
          interaction.family_size = size;
          interaction.is_different = p < options.significance_level;
        });
  }
}

}  // namespace

FactorEffects analyze_factor_effects(const ExperimentData& data, const ExperimentTable& table,
                                     const ComparisonOptions& options) {
  std::vector<EffectTask> tasks;
  for (const std::size_t factor : options.factors) {
    for (std::size_t measure = 0; measure < table.measures.size(); ++measure) {
      if (table.measures[measure].is_compared) tasks.push_back({measure, factor, {}});
    }
  }
  parallel_for(tasks.size(), options.thread_count,
               [&](std::size_t i) { run_effect_task(tasks[i], data, table, options); });
  FactorEffects effects;
  for (EffectTask& task : tasks) {
    std::ranges::move(task.effects.main_effects, std::back_inserter(effects.main_effects));
    std::ranges::move(task.effects.interactions, std::back_inserter(effects.interactions));
  }
  adjust_p_values_by_family(effects.main_effects, options);
  adjust_p_values_by_family(effects.interactions, options);
  return effects;
}

}  // namespace joulemap::experiment
