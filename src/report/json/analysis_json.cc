// SPDX-License-Identifier: Apache-2.0
#include "report/json/analysis_json.h"

#include "formats/json_writer.h"
#include "model_json/cause_json.h"
#include "model_json/diagnostics_json.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

std::uint64_t to_json_count(std::size_t number) { return number; }

void write_analysis_flags(JsonWriter& json, const std::vector<AnalysisFlag>& flags) {
  json.key("flags").begin_array();
  for (const AnalysisFlag& flag : flags) {
    json.begin_object().member("code", flag.code).member("message", flag.message);
    json.text_or_null("remedy", flag.remedy).end_object();
  }
  json.end_array();
}

void write_factor_levels(JsonWriter& json, const AnalysisResult& result, std::string_view name,
                         const std::vector<std::optional<std::size_t>>& levels) {
  json.key(name).begin_object();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i]) json.member(result.factors[i].name, result.factors[i].levels[*levels[i]]);
  }
  json.end_object();
}

void write_measure_summary(JsonWriter& json, std::string_view name, const std::optional<MeasureSummary>& summary) {
  json.key(name);
  if (!summary) {
    json.null();
    return;
  }
  json.begin_object()
      .member("mean", summary->mean)
      .member("median", summary->median)
      .member("low", summary->low)
      .member("high", summary->high)
      .member("sd", summary->standard_deviation)
      .member("n", to_json_count(summary->values.size()));
  json.key("values").begin_array();
  for (const double value : summary->values) json.value(value);
  json.end_array().key("outliers").begin_array();
  for (const std::size_t index : summary->outliers) json.value(to_json_count(index));
  json.end_array().end_object();
}

// Writes the measures of a cell. "energy_j" and "time_s" are always present; null if unknown or not analyzed.
void write_measure_summaries(JsonWriter& json, const AnalysisResult& result, const AnalysisCell& cell) {
  std::optional<MeasureSummary> energy;
  std::optional<MeasureSummary> time;
  for (std::size_t i = 0; i < result.measures.size(); ++i) {
    if (result.measures[i].kind == MeasureKind::energy) energy = cell.measures[i];
    if (result.measures[i].kind == MeasureKind::time) time = cell.measures[i];
  }
  write_measure_summary(json, "energy_j", energy);
  write_measure_summary(json, "time_s", time);
  for (const auto& [name, kind] : {std::pair{"domains", MeasureKind::domain}, {"metrics", MeasureKind::metric}}) {
    json.key(name).begin_object();
    for (std::size_t i = 0; i < result.measures.size(); ++i) {
      if (result.measures[i].kind == kind) write_measure_summary(json, result.measures[i].name, cell.measures[i]);
    }
    json.end_object();
  }
}

void write_functions(JsonWriter& json, const AnalysisCell& cell) {
  json.key("functions").begin_array();
  for (const CellFunctionMean& function_mean : cell.functions) {
    json.begin_object()
        .member("name", function_mean.name)
        .member("device", function_mean.device)
        .member("n", to_json_count(function_mean.n));
    json.member("count", function_mean.count)
        .member("time_s", function_mean.time_s)
        .member("energy_j", function_mean.energy_j);
    json.member("cumulative_s", function_mean.cumulative_s).member("share", function_mean.share);
    write_energy_cause(json, function_mean.cause);
    json.end_object();
  }
  json.end_array();
}

void write_epoch_means(JsonWriter& json, const AnalysisResult& result, const AnalysisCell& cell) {
  json.key("each").begin_array();
  for (const EpochMean& epoch : cell.epoch_means) {
    json.begin_object().member("number", to_json_count(epoch.number)).member("n", to_json_count(epoch.n));
    json.member("energy_j", epoch.energy_j).member("time_s", epoch.time_s).member("power_w", epoch.power_w);
    json.key("values").begin_object();
    for (std::size_t i = 0; i < result.epoch_columns.size(); ++i)
      json.member(result.epoch_columns[i].name, epoch.values[i]);
    json.end_object().end_object();
  }
  json.end_array();
}

void write_cell(JsonWriter& json, const AnalysisResult& result, const AnalysisCell& cell) {
  json.begin_object();
  write_factor_levels(json, result, "factors", {cell.levels.begin(), cell.levels.end()});
  json.member("n", to_json_count(cell.n)).member("rows", to_json_count(cell.rows));
  write_measure_summaries(json, result, cell);
  json.key("epochs");
  if (cell.epochs) {
    json.begin_object()
        .member("count", to_json_count(cell.epochs->epochs))
        .member("first_j", cell.epochs->first_j)
        .member("later_j", cell.epochs->later_j)
        .member("first_s", cell.epochs->first_s)
        .member("later_s", cell.epochs->later_s);
    write_epoch_means(json, result, cell);
    json.end_object();
  } else {
    json.null();
  }
  write_functions(json, cell);
  write_analysis_flags(json, cell.flags);
  json.end_object();
}

// Writes provenance and domains of an energy; null for any other measure.
void write_energy_basis(JsonWriter& json, const Measure& measure) {
  json.text_or_null("provenance", measure.provenance ? to_string(*measure.provenance) : "");
  for (const auto& [name, domain_names] :
       {std::pair{"domains", &measure.domains}, {"left_out", &measure.excluded_domains}}) {
    json.key(name);
    if (!measure.provenance) {
      json.null();
      continue;
    }
    json.begin_array();
    for (const std::string& domain : *domain_names) json.value(domain);
    json.end_array();
  }
}

void write_measures(JsonWriter& json, const AnalysisResult& result) {
  json.key("measures").begin_array();
  for (const Measure& measure : result.measures) {
    json.begin_object().member("name", measure.name).text_or_null("unit", measure.unit);
    json.member("compared", measure.is_compared);
    write_energy_basis(json, measure);
    json.end_object();
  }
  json.end_array();
}

void write_comparison(JsonWriter& json, const AnalysisResult& result, const Comparison& comparison) {
  const ExperimentFactor& factor = result.factors[comparison.factor];
  json.begin_object().member("factor", factor.name);
  json.text_or_null("a", comparison.a ? factor.levels[*comparison.a] : "")
      .text_or_null("b", comparison.b ? factor.levels[*comparison.b] : "");
  write_factor_levels(json, result, "within", comparison.fixed_levels);
  json.member("metric", result.measures[comparison.measure].name)
      .member("unit", result.measures[comparison.measure].unit)
      .member("test", comparison.test)
      .member("pairing", comparison.pairing == Pairing::paired ? "paired" : "unpaired")
      .member("exact", comparison.is_exact)
      .member("n_a", to_json_count(comparison.row_count_a))
      .member("n_b", to_json_count(comparison.row_count_b))
      .member("statistic", comparison.statistic)
      .member("p", comparison.p)
      .member("p_adjusted", comparison.p_adjusted)
      .member("family", to_json_count(comparison.family_size))
      .member("a12", comparison.vargha_delaney_a12)
      .member("a12_low", comparison.a12_low)
      .member("a12_high", comparison.a12_high)
      .member("cliff", comparison.cliffs_delta)
      .member("difference", comparison.difference)
      .member("low", comparison.low)
      .member("high", comparison.high)
      .member("percent", comparison.percent)
      .member("percent_low", comparison.percent_low)
      .member("percent_high", comparison.percent_high)
      .member("confidence", comparison.confidence);
  json.key("minimum_n");
  comparison.min_rows_per_level ? json.value(to_json_count(*comparison.min_rows_per_level)) : json.null();
  write_energy_basis(json, result.measures[comparison.measure]);
  json.member("different", comparison.is_different).member("verdict", comparison.verdict).end_object();
}

void write_main_effects(JsonWriter& json, const AnalysisResult& result) {
  json.key("main_effects").begin_array();
  for (const MainEffect& effect : result.main_effects) {
    const ExperimentFactor& factor = result.factors[effect.factor];
    json.begin_object().member("factor", factor.name);
    json.text_or_null("a", effect.a ? factor.levels[*effect.a] : "")
        .text_or_null("b", effect.b ? factor.levels[*effect.b] : "");
    json.member("metric", result.measures[effect.measure].name)
        .member("unit", result.measures[effect.measure].unit)
        .member("test", effect.test)
        .member("pairing", effect.pairing == Pairing::paired ? "paired" : "unpaired")
        .member("exact", effect.is_exact)
        .member("n", to_json_count(effect.n))
        .member("combinations", to_json_count(effect.combinations))
        .member("tested_combinations", to_json_count(effect.tested_combinations))
        .member("higher", to_json_count(effect.higher))
        .member("lower", to_json_count(effect.lower))
        .member("statistic", effect.statistic)
        .member("p", effect.p)
        .member("p_adjusted", effect.p_adjusted)
        .member("family", to_json_count(effect.family_size))
        .member("percent", effect.percent)
        .member("percent_low", effect.percent_low)
        .member("percent_high", effect.percent_high)
        .member("difference", effect.difference)
        .member("low", effect.low)
        .member("high", effect.high)
        .member("confidence", effect.confidence)
        .member("least_percent", effect.min_combination_percent)
        .member("most_percent", effect.max_combination_percent)
        .member("rank_p", effect.rank_p)
        .member("combinations_p", effect.combinations_p)
        .member("direction_p", effect.direction_p)
        .member("direction_p_adjusted", effect.direction_p_adjusted)
        .member("model_percent", effect.model_percent)
        .member("model_percent_low", effect.model_percent_low)
        .member("model_percent_high", effect.model_percent_high);
    write_energy_basis(json, result.measures[effect.measure]);
    json.member("result", name_of(effect.generality)).member("verdict", effect.verdict).end_object();
  }
  json.end_array();
}

void write_interactions(JsonWriter& json, const AnalysisResult& result) {
  json.key("interactions").begin_array();
  for (const Interaction& interaction : result.interactions) {
    const ExperimentFactor& other_factor = result.factors[interaction.other];
    json.begin_object()
        .member("factor", result.factors[interaction.factor].name)
        .member("other", other_factor.name)
        .member("metric", result.measures[interaction.measure].name)
        .member("test", interaction.test)
        .member("f", interaction.f)
        .member("numerator_df", interaction.numerator_df)
        .member("denominator_df", interaction.denominator_df)
        .member("p", interaction.p)
        .member("p_adjusted", interaction.p_adjusted)
        .member("family", to_json_count(interaction.family_size))
        .member("rank_p", interaction.rank_p);
    json.key("levels").begin_array();
    for (const LevelEffect& level : interaction.levels)
      json.begin_object()
          .member("level", other_factor.levels[level.level])
          .member("percent", level.percent)
          .end_object();
    json.end_array().member("different", interaction.is_different).member("verdict", interaction.verdict).end_object();
  }
  json.end_array();
}

void write_associations(JsonWriter& json, const AnalysisResult& result) {
  json.key("associations").begin_array();
  for (const Association& association : result.associations) {
    json.begin_object();
    if (association.cell) {
      const std::vector<std::size_t>& levels = result.cells[*association.cell].levels;
      write_factor_levels(json, result, "factors", {levels.begin(), levels.end()});
    } else {
      json.key("factors").null();
    }
    json.member("x", result.measures[association.x].name)
        .member("y", result.measures[association.y].name)
        .member("n", to_json_count(association.n))
        .member("spearman", association.spearman)
        .member("spearman_p", association.spearman_p)
        .member("kendall", association.kendall)
        .member("kendall_p", association.kendall_p)
        .end_object();
  }
  json.end_array();
}

void write_correlations(JsonWriter& json, const AnalysisResult& result) {
  json.key("correlations").begin_array();
  for (const LevelCorrelation& correlation : result.correlations) {
    json.begin_object()
        .text_or_null("factor", correlation.factor ? result.factors[*correlation.factor].name : "")
        .text_or_null("level", correlation.factor ? result.factors[*correlation.factor].levels[*correlation.level] : "")
        .member("x", result.measures[correlation.x].name)
        .member("y", correlation.y)
        .member("n", to_json_count(correlation.n))
        .member("spearman", correlation.spearman)
        .member("p", correlation.p)
        .end_object();
  }
  json.end_array();
}

void write_pareto_fronts(JsonWriter& json, const AnalysisResult& result) {
  json.key("pareto").begin_array();
  for (const ParetoSet& set : result.pareto) {
    json.begin_object();
    write_factor_levels(json, result, "within", set.fixed_levels);
    json.key("metrics").begin_array();
    for (const std::size_t measure : set.measures) json.value(result.measures[measure].name);
    json.end_array().member("resamples", to_json_count(set.resamples)).key("points").begin_array();
    for (const ParetoPoint& point : set.points) {
      const std::vector<std::size_t>& levels = result.cells[point.cell].levels;
      json.begin_object();
      write_factor_levels(json, result, "factors", {levels.begin(), levels.end()});
      json.member("on_front", point.is_on_front).member("probability", point.probability).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

}  // namespace

std::string analysis_json(const AnalysisResult& result) {
  JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.analysis/1")
      .member("name", result.name)
      .member("blocked", result.is_blocked)
      .member("alpha", result.alpha)
      .member("adjustment", result.adjustment)
      .member("seed", result.seed)
      .member("resamples", to_json_count(result.resamples));
  write_measures(json, result);
  json.key("cells").begin_array();
  for (const AnalysisCell& cell : result.cells) write_cell(json, result, cell);
  json.end_array().key("comparisons").begin_array();
  for (const Comparison& comparison : result.comparisons) write_comparison(json, result, comparison);
  json.end_array();
  write_main_effects(json, result);
  write_interactions(json, result);
  write_associations(json, result);
  write_correlations(json, result);
  write_pareto_fronts(json, result);
  write_analysis_flags(json, result.flags);
  json.member("methods", result.methods);
  write_diagnostics(json, result.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
