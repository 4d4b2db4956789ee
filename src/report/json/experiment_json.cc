// SPDX-License-Identifier: Apache-2.0
#include "report/json/experiment_json.h"

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

std::uint64_t to_json_integer(std::size_t number) { return number; }

void write_plan_rows(JsonWriter& json, const ExperimentPlan& plan) {
  json.key("rows").begin_array();
  for (const ExperimentPlanRow& row : plan.rows) {
    json.begin_object().member("number", to_json_integer(row.number)).member("block", to_json_integer(row.block));
    json.key("levels").begin_object();
    for (std::size_t i = 0; i < plan.factors.size() && i < row.levels.size(); ++i) {
      json.member(plan.factors[i].name, plan.factors[i].levels.at(row.levels[i]));
    }
    json.end_object()
        .member("state", name_of(row.state))
        .member("attempts", to_json_integer(row.attempts))
        .text_or_null("node", row.node)
        .member("elapsed_s", row.elapsed_s)
        .member("energy_j", row.energy_j)
        .text_or_null("energy_provenance", row.provenance ? to_string(*row.provenance) : "")
        .end_object();
  }
  json.end_array();
}

void write_forecast(JsonWriter& json, const std::optional<ExperimentForecast>& forecast) {
  json.key("forecast");
  if (!forecast) {
    json.null();
    return;
  }
  json.begin_object()
      .member("based_on", to_json_integer(forecast->completed_rows))
      .member("rows", to_json_integer(forecast->rows))
      .member("time_s", forecast->time_s)
      .member("energy_j", forecast->energy_j)
      .text_or_null("energy_provenance", forecast->provenance ? to_string(*forecast->provenance) : "")
      .member("co2_g", forecast->co2_g)
      .member("price", forecast->price)
      .text_or_null("currency", forecast->currency)
      .end_object();
}

void write_statistics(JsonWriter& json, const PlanStatistics& statistics) {
  json.key("statistics")
      .begin_object()
      .member("repetitions", to_json_integer(statistics.repetitions))
      .member("paired", statistics.paired)
      .member("comparisons", to_json_integer(statistics.comparisons))
      .member("alpha", statistics.alpha)
      .member("least_p", statistics.min_p_value)
      .member("can_show", statistics.can_be_significant)
      .member("needed_repetitions", to_json_integer(statistics.needed_repetitions))
      .member("measures", to_json_integer(statistics.measures))
      .member("needed_for_all", to_json_integer(statistics.repetitions_for_all_measures))
      .member("noise", statistics.noise)
      .member("difference_in_noises", statistics.detectable_difference_sd)
      .end_object();
}

}  // namespace

std::string experiment_plan_json(const ExperimentPlan& plan) {
  JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.experiment/1")
      .member("name", plan.name)
      .text_or_null("folder", plan.folder)
      .member("cells", to_json_integer(plan.cells))
      .member("blocks", to_json_integer(plan.blocks))
      .member("order", plan.order)
      .member("seed", plan.seed);
  json.key("counts").begin_object();
  for (const ExperimentRowState state :
       {ExperimentRowState::todo, ExperimentRowState::running, ExperimentRowState::done, ExperimentRowState::failed}) {
    json.member(name_of(state), to_json_integer(plan.count(state)));
  }
  json.end_object();
  write_statistics(json, plan.statistics);
  write_forecast(json, plan.forecast);
  write_plan_rows(json, plan);
  json.key("jobs").begin_array();
  for (const ExperimentJob& job : plan.jobs) {
    json.begin_object()
        .member("id", job.id)
        .member("state", job.state)
        .text_or_null("node", job.node)
        .text_or_null("blocks", job.blocks)
        .end_object();
  }
  json.end_array();
  write_diagnostics(json, plan.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
