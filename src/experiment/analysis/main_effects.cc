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

// Limits on the size of a model: its terms are all subsets of the other factors. Larger experiments have only rank tests.
constexpr std::size_t kMaxColumns = 300;
constexpr std::size_t kMaxFactors = 12;

// All rows of one measure, as logarithms if every value is above 0.
struct MeasureValues {
  bool is_log = true;
  std::vector<std::optional<double>> values;  // by row of the data

  double scaled(double value) const { return is_log ? std::log(value) : value; }
  std::vector<double> scaled(std::vector<double> list) const {
    for (double& value : list) value = scaled(value);
    return list;
  }
};

MeasureValues measure_values(const ExperimentData& data, const ExperimentTable& table, std::size_t measure) {
  MeasureValues result;
  for (std::size_t row = 0; row < table.values.size(); ++row) {
    const std::optional<double>& value = table.values[row][measure];
    result.values.push_back(value);
    if (data.rows[row].state == RowState::done && value && !(*value > 0)) result.is_log = false;
  }
  return result;
}

// The values of two levels in one combination of the other factors' levels.
struct Combination {
  std::vector<std::optional<std::size_t>> fixed_levels;
  Stratum values;
  double effect = 0;  // Hodges-Lehmann shift a - b
};

std::vector<Combination> combinations_of(const ExperimentData& data, const ExperimentTable& table,
                                         const MainEffect& effect, const MeasureValues& values) {
  std::vector<Combination> combinations;
  const bool is_paired = effect.pairing == Pairing::paired;
  for (const CellGroup& group : cell_groups(data, table, effect.factor)) {
    const std::optional<std::size_t> a = group.cells[*effect.a];
    const std::optional<std::size_t> b = group.cells[*effect.b];
    if (!a || !b) continue;
    Combination one;
    one.fixed_levels = group.fixed_levels;
    if (is_paired) {
      std::vector<std::vector<double>> lists = common_blocks(data, table, std::vector{*a, *b}, effect.measure);
      one.values = {values.scaled(std::move(lists[0])), values.scaled(std::move(lists[1]))};
    } else {
      one.values = {values.scaled(table.values_of(table.cells[*a], effect.measure)),
                    values.scaled(table.values_of(table.cells[*b], effect.measure))};
    }
    const auto shift = is_paired ? statistics::paired_shift(one.values.first, one.values.second, 0.95)
                                 : statistics::unpaired_shift(one.values.first, one.values.second, 0.95);
    if (!shift) continue;
    one.effect = shift->estimate;
    combinations.push_back(std::move(one));
  }
  return combinations;
}

double squared_deviations(const std::vector<double>& values) {
  const double mean = statistics::mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares;
}

// Gail and Simon's test, with the variance within combinations, which is assumed to be the same in all of them.
std::optional<double> direction_p(const std::vector<Combination>& combinations, bool is_paired) {
  std::vector<double> effects;
  std::vector<double> errors;
  double squares = 0;
  double freedom = 0;
  for (const Combination& one : combinations) {
    const auto n1 = static_cast<double>(one.values.first.size());
    const auto n2 = static_cast<double>(one.values.second.size());
    effects.push_back(statistics::mean_of(one.values.first) - statistics::mean_of(one.values.second));
    if (is_paired) {
      std::vector<double> differences = one.values.first;
      for (std::size_t i = 0; i < differences.size(); ++i) differences[i] -= one.values.second[i];
      squares += squared_deviations(differences);
      freedom += n1 - 1;
      errors.push_back(std::sqrt(1 / n1));
    } else {
      squares += squared_deviations(one.values.first) + squared_deviations(one.values.second);
      freedom += n1 + n2 - 2;
      errors.push_back(std::sqrt(1 / n1 + 1 / n2));
    }
  }
  if (freedom < 1) return std::nullopt;
  for (double& error : errors) error *= std::sqrt(squares / freedom);
  return statistics::qualitative_interaction_test(effects, errors, freedom).p;
}

void set_size(MainEffect& effect, const EffectEstimate& shift, bool is_log) {
  const auto set = [&](auto& estimate, auto& low, auto& high, auto scale) {
    estimate = scale(shift.estimate);
    low = scale(shift.low);
    high = scale(shift.high);
  };
  if (is_log) {
    set(effect.percent, effect.percent_low, effect.percent_high, [](double log) { return 100 * std::expm1(log); });
  } else {
    set(effect.difference, effect.low, effect.high, [](double value) { return value; });
  }
  effect.confidence = shift.confidence;
}

// The interval that covers both: the true effect may be the same in all combinations, or differ between them. The
// interval of combinations counts only if they are enough for its confidence.
EffectEstimate joined(const std::optional<EffectEstimate>& stratified, const EffectEstimate& of_combinations,
                      double confidence) {
  if (!stratified) return of_combinations;
  if (of_combinations.confidence < confidence) return *stratified;
  return {stratified->estimate, std::min(stratified->low, of_combinations.low),
          std::max(stratified->high, of_combinations.high),
          std::min(stratified->confidence, of_combinations.confidence)};
}

void test_levels(MainEffect& effect, const std::vector<Combination>& combinations, bool is_log, double confidence) {
  const bool is_paired = effect.pairing == Pairing::paired;
  std::vector<Stratum> strata;
  std::vector<double> effects;
  for (const Combination& one : combinations) {
    strata.push_back(one.values);
    effects.push_back(one.effect);
  }
  const statistics::StrataConsistency across = statistics::strata_consistency(effects, confidence);
  effect.combinations = combinations.size();
  effect.higher = across.higher;
  effect.lower = across.lower;
  effect.combinations_p = across.signed_rank.p;
  effect.direction_p = direction_p(combinations, is_paired);
  if (is_log) {
    effect.least_percent = 100 * std::expm1(*std::ranges::min_element(effects));
    effect.most_percent = 100 * std::expm1(*std::ranges::max_element(effects));
  }
  // Stratified tests leave out combinations without repetitions. They are used once most combinations have some, so that
  // the first repetition of a second block does not discard all others.
  const auto repeated = static_cast<std::size_t>(std::ranges::count_if(strata, statistics::has_repetitions));
  const bool is_stratified = 2 * repeated >= strata.size();
  const statistics::TestResult test = !is_stratified ? across.signed_rank
                                      : is_paired    ? statistics::stratified_signed_rank_test(strata)
                                                     : statistics::stratified_rank_sum_test(strata);
  effect.test = !is_stratified ? "wilcoxon-signed-rank" : is_paired ? "stratified-signed-rank" : "van-elteren";
  effect.n = test.n;
  effect.statistic = test.statistic;
  effect.p = test.p;
  effect.is_exact = test.method == statistics::PMethod::exact;
  const std::optional<EffectEstimate> stratified = !is_stratified ? std::nullopt
                                                   : is_paired
                                                       ? statistics::stratified_paired_shift(strata, confidence)
                                                       : statistics::stratified_unpaired_shift(strata, confidence);
  set_size(effect, joined(stratified, *across.shift, confidence), is_log);
}

// A fitted model of one factor and measure, with its values.
struct MeasureModel {
  statistics::FactorialData data;
  std::optional<FactorialFit> fit;
  bool is_log = true;

  std::string test_name() const { return data.blocks.empty() ? "linear-model-f" : "mixed-model-f"; }
  std::optional<std::size_t> term(const ModelTerm& wanted) const {
    const auto found = std::ranges::find(fit->terms, wanted);
    if (found == fit->terms.end()) return std::nullopt;
    return static_cast<std::size_t>(found - fit->terms.begin());
  }
};

std::size_t columns_of(const ExperimentData& data, const std::vector<ModelTerm>& terms) {
  std::size_t columns = 1;
  for (const ModelTerm& term : terms) {
    std::size_t own = 1;
    for (const std::size_t factor : term) own *= data.factors[factor].levels.size() - 1;
    columns += own;
  }
  return columns;
}

// The model of one factor, with its interactions if there are enough rows.
MeasureModel make_model(const ExperimentData& data, const MeasureValues& values, std::size_t factor) {
  MeasureModel model;
  model.is_log = values.is_log;
  for (std::size_t row = 0; row < data.rows.size(); ++row) {
    if (!values.values[row] || data.rows[row].state != RowState::done) continue;
    model.data.values.push_back(values.scaled(*values.values[row]));
    model.data.levels.push_back(data.rows[row].levels);
    if (data.is_blocked) model.data.blocks.push_back(data.rows[row].block);
  }
  if (data.factors.size() > kMaxFactors) return model;
  for (const bool has_interactions : {true, false}) {
    const auto terms = statistics::comparison_terms(data.factors.size(), factor, has_interactions);
    if (model.fit || columns_of(data, terms) > kMaxColumns) continue;
    model.fit = statistics::fit_factorial_model(model.data, terms);
  }
  return model;
}

void set_model_size(MainEffect& effect, const MeasureModel& model, double confidence) {
  if (!model.fit || !model.is_log) return;
  const auto size = statistics::level_difference(*model.fit, effect.factor, *effect.a, *effect.b, confidence);
  if (!size) return;
  effect.model_percent = 100 * std::expm1(size->estimate);
  effect.model_percent_low = 100 * std::expm1(size->low);
  effect.model_percent_high = 100 * std::expm1(size->high);
}

// The test over all levels of a factor with more than two. Nothing if there is no model.
std::optional<MainEffect> factor_effect(MainEffect effect, const MeasureModel& model, std::size_t combinations) {
  const std::optional<std::size_t> term = model.fit ? model.term({effect.factor}) : std::nullopt;
  // With a missing cell the main effect depends on which interaction columns remain, so on the order of levels.
  for (std::size_t i = 0; term && i < model.fit->terms.size(); ++i) {
    const bool has_factor = std::ranges::find(model.fit->terms[i], effect.factor) != model.fit->terms[i].end();
    if (has_factor && !model.fit->is_complete[i]) return std::nullopt;
  }
  const auto test = term && combinations > 1 ? statistics::term_test(*model.fit, *term) : std::nullopt;
  if (!test) return std::nullopt;
  effect.combinations = combinations;
  effect.levels = model.fit->levels[effect.factor].size();
  effect.test = model.test_name();
  effect.n = model.data.values.size();
  effect.p = test->p;
  effect.statistic = test->f;
  if (const auto of_ranks = statistics::aligned_rank_test(model.data, *model.fit, *term)) effect.rank_p = of_ranks->p;
  return effect;
}

// Mean effect at each level of the other factor.
std::vector<LevelEffect> level_effects(const std::vector<Combination>& combinations, std::size_t other) {
  std::map<std::size_t, std::vector<double>> effects;
  for (const Combination& one : combinations) effects[*one.fixed_levels[other]].push_back(one.effect);
  std::vector<LevelEffect> levels;
  levels.reserve(effects.size());
  for (const auto& [level, list] : effects) levels.push_back({level, 100 * std::expm1(statistics::mean_of(list))});
  return levels;
}

std::vector<Interaction> interactions_of(const ExperimentData& data, const MeasureModel& model, std::size_t measure,
                                         std::size_t factor, const std::vector<std::size_t>& compared) {
  std::vector<Interaction> interactions;
  if (!model.fit) return interactions;
  for (std::size_t other = 0; other < data.factors.size(); ++other) {
    const bool is_listed = other < factor && std::ranges::find(compared, other) != compared.end();
    if (other == factor || is_listed) continue;
    const auto term = model.term({std::min(factor, other), std::max(factor, other)});
    const auto test = term ? statistics::term_test(*model.fit, *term) : std::nullopt;
    if (!test) continue;
    Interaction one{factor, other, measure, model.test_name(), test->f, test->numerator_df, test->denominator_df,
                    test->p};
    if (const auto of_ranks = statistics::aligned_rank_test(model.data, *model.fit, *term)) one.rank_p = of_ranks->p;
    interactions.push_back(std::move(one));
  }
  return interactions;
}

// The effects of one factor on one measure.
struct EffectTask {
  std::size_t measure = 0;
  std::size_t factor = 0;
  FactorEffects effects;
};

void test_pairs(EffectTask& task, const ExperimentData& data, const ExperimentTable& table, const MeasureValues& values,
                const MeasureModel& model, const MainEffect& common, double confidence) {
  const std::size_t levels = data.factors[task.factor].levels.size();
  for (std::size_t a = 0; a < levels; ++a) {
    for (std::size_t b = a + 1; b < levels; ++b) {
      MainEffect pair = common;
      pair.a = a;
      pair.b = b;
      const std::vector<Combination> found = combinations_of(data, table, pair, values);
      if (found.size() < 2) continue;
      test_levels(pair, found, values.is_log, confidence);
      set_model_size(pair, model, confidence);
      task.effects.main_effects.push_back(std::move(pair));
      if (levels > 2 || !values.is_log) continue;
      for (Interaction& one : task.effects.interactions) one.levels = level_effects(found, one.other);
    }
  }
}

// Number of combinations in which at least two levels of the factor have values.
std::size_t compared_combinations(const std::vector<CellGroup>& groups, const ExperimentTable& table,
                                  std::size_t measure) {
  return static_cast<std::size_t>(std::ranges::count_if(groups, [&](const CellGroup& group) {
    return std::ranges::count_if(group.cells, [&](const std::optional<std::size_t>& cell) {
             return cell && !table.values_of(table.cells[*cell], measure).empty();
           }) > 1;
  }));
}

void run_task(EffectTask& task, const ExperimentData& data, const ExperimentTable& table,
              const ComparisonOptions& options) {
  const std::vector<CellGroup> groups = cell_groups(data, table, task.factor);
  if (groups.size() < 2) return;
  const std::size_t combinations = compared_combinations(groups, table, task.measure);
  const MeasureValues values = measure_values(data, table, task.measure);
  const MeasureModel model = make_model(data, values, task.factor);
  task.effects.interactions = interactions_of(data, model, task.measure, task.factor, options.factors);
  MainEffect common;
  common.factor = task.factor;
  common.measure = task.measure;
  common.pairing = data.is_blocked ? Pairing::paired : Pairing::unpaired;
  if (data.factors[task.factor].levels.size() > 2) {
    if (std::optional<MainEffect> effect = factor_effect(common, model, combinations))
      task.effects.main_effects.push_back(*std::move(effect));
  }
  test_pairs(task, data, table, values, model, common, 1 - options.alpha);
}

Generality generality_of(const MainEffect& effect, double alpha) {
  if (effect.direction_p_adjusted && *effect.direction_p_adjusted < alpha) return Generality::direction_differs;
  if (effect.p_adjusted >= alpha) return Generality::not_shown;
  if (!effect.a) return Generality::differs;
  const bool agree = effect.higher == 0 || effect.lower == 0 || *effect.combinations_p < alpha;
  return agree ? Generality::general : Generality::direction_differs;
}

// Adjusts p values of one family: `p` reads them, `set` takes the adjusted value and the size of the family.
template <class Items, class P, class Set>
void adjust_family(Items& items, const std::vector<std::size_t>& members, statistics::Adjustment adjustment, P p,
                   Set set) {
  std::vector<double> values;
  values.reserve(members.size());
  for (const std::size_t i : members) values.push_back(p(items[i]));
  const std::vector<double> adjusted = statistics::adjusted_p_values(values, adjustment);
  for (std::size_t k = 0; k < members.size(); ++k) set(items[members[k]], adjusted[k], members.size());
}

void adjust(std::vector<MainEffect>& effects, const ComparisonOptions& options) {
  std::map<std::pair<std::size_t, bool>, std::vector<std::size_t>> families;
  std::map<std::size_t, std::vector<std::size_t>> directions;
  for (std::size_t i = 0; i < effects.size(); ++i) {
    families[{effects[i].factor, effects[i].a.has_value()}].push_back(i);
    if (effects[i].direction_p) directions[effects[i].factor].push_back(i);
  }
  for (const auto& [key, members] : families) {
    adjust_family(
        effects, members, options.adjustment, [](const MainEffect& one) { return one.p; },
        [](MainEffect& one, double p, std::size_t size) {
          one.p_adjusted = p;
          one.family_size = size;
        });
  }
  for (const auto& [factor, members] : directions) {
    adjust_family(
        effects, members, options.adjustment, [](const MainEffect& one) { return *one.direction_p; },
        [](MainEffect& one, double p, std::size_t) { one.direction_p_adjusted = p; });
  }
  for (MainEffect& effect : effects) effect.generality = generality_of(effect, options.alpha);
}

void adjust(std::vector<Interaction>& interactions, const ComparisonOptions& options) {
  std::map<std::size_t, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < interactions.size(); ++i) families[interactions[i].factor].push_back(i);
  for (const auto& [factor, members] : families) {
    adjust_family(
        interactions, members, options.adjustment, [](const Interaction& one) { return one.p; },
        [&](Interaction& one, double p, std::size_t size) {
          one.p_adjusted = p;
          one.family_size = size;
          one.is_different = p < options.alpha;
        });
  }
}

}  // namespace

FactorEffects factor_effects(const ExperimentData& data, const ExperimentTable& table,
                             const ComparisonOptions& options) {
  std::vector<EffectTask> tasks;
  for (const std::size_t factor : options.factors) {
    for (std::size_t measure = 0; measure < table.measures.size(); ++measure) {
      if (table.measures[measure].is_compared) tasks.push_back({measure, factor, {}});
    }
  }
  parallel_for(tasks.size(), options.threads, [&](std::size_t i) { run_task(tasks[i], data, table, options); });
  FactorEffects effects;
  for (EffectTask& task : tasks) {
    std::ranges::move(task.effects.main_effects, std::back_inserter(effects.main_effects));
    std::ranges::move(task.effects.interactions, std::back_inserter(effects.interactions));
  }
  adjust(effects.main_effects, options);
  adjust(effects.interactions, options);
  return effects;
}

}  // namespace joulemap::experiment
