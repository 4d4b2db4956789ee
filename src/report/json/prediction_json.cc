// SPDX-License-Identifier: Apache-2.0
#include "report/json/prediction_json.h"

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;
using predict::OperationExplanation;
using predict::Prediction;
using predict::PredictionReport;

constexpr double kPredictionIntervalLevel = 0.9;

void write_layers(JsonWriter& json, const Prediction& prediction) {
  json.key("layers").begin_array();
  for (const predict::LayerPrediction& layer : prediction.layers) {
    json.begin_object()
        .member("name", layer.name)
        .member("op", layer.op)
        .member("energy_j", layer.energy_j)
        .member("low_j", layer.low_j)
        .member("high_j", layer.high_j)
        .member("time_s", layer.time_s)
        .member("flops", layer.flops)
        .member("bytes", layer.bytes)
        .member("physical_j", layer.physical_j)
        .member("trust", layer.min_trust_factor)
        .end_object();
  }
  json.end_array();
}

void write_unknown_operations(JsonWriter& json, const Prediction& prediction) {
  json.key("unknown_ops").begin_array();
  for (const predict::UnknownOperation& unknown_operation : prediction.unknown_operations) {
    json.begin_object()
        .member("layer", unknown_operation.layer)
        .member("op", unknown_operation.source)
        .member("reason", unknown_operation.reason)
        .member("bounded", unknown_operation.has_lower_bound)
        .end_object();
  }
  json.end_array();
}

void write_tariff(JsonWriter& json, const predict::EnergyTariff& tariff) {
  json.key("tariff")
      .begin_object()
      .member("grid_gco2_kwh", tariff.grid_intensity_gco2_per_kwh())
      .member("grid_is_assumed", !tariff.grid_gco2_kwh.has_value())
      .member("price_kwh", tariff.price_kwh)
      .member("pue", tariff.pue)
      .end_object();
}

void write_lifetime(JsonWriter& json, const PredictionReport& report) {
  json.key("lifetime");
  if (!report.lifetime) {
    json.null();
    return;
  }
  const predict::LifetimeEnergy& life = *report.lifetime;
  const predict::Footprint footprint = compute_footprint(life.energy_j, report.tariff);
  json.begin_object()
      .member("steps", life.steps)
      .member("inferences", life.inferences)
      .member("step_j", life.step_j)
      .member("inference_j", life.inference_j)
      .member("energy_j", life.energy_j)
      .member("low_j", life.low_j)
      .member("high_j", life.high_j)
      .member("co2_kg", footprint.co2_kg)
      .member("price", footprint.price)
      .end_object();
}

void write_time_terms(JsonWriter& json, std::string_view name, const predict::TimeTerms& terms) {
  json.key(name).begin_object();
  for (std::size_t index = 0; index < predict::kPhysicsTermCount; ++index)
    json.member(name_of(static_cast<predict::PhysicsTerm>(index)), terms[index]);
  json.end_object();
}

void write_features(JsonWriter& json, const OperationExplanation& explanation) {
  json.key("features").begin_object();
  for (std::size_t index = 0; index < explanation.features.size() && index < predict::feature_names().size(); ++index) {
    json.member(predict::feature_names()[index], static_cast<double>(explanation.features[index]));
  }
  json.end_object();
}

void write_explained_operation(JsonWriter& json, const OperationExplanation& explanation) {
  const predict::Operation& operation = explanation.operation;
  json.begin_object()
      .member("op", operation.source)
      .member("kind", name_of(operation.kind))
      .text_or_null("form", operation.form)
      .key("parameters")
      .begin_object();
  for (const auto& [name, value] : operation.parameters.entries()) json.member(name, value);
  json.end_object()
      .member("dtype", name_of(operation.dtype))
      .member("pass", name_of(operation.pass))
      .member("count", operation.count)
      .member("flops", explanation.work.flops)
      .member("bytes", explanation.work.bytes)
      .member("bound", name_of(explanation.bound));
  write_time_terms(json, "granted_s", explanation.datasheet_terms);
  write_time_terms(json, "physical_s", explanation.physical_terms);
  json.member("physical_time_s", explanation.estimate.physical_time_s)
      .member("physical_j", explanation.physical_j)
      .member("time_s", explanation.estimate.time_s)
      .member("energy_j", explanation.estimate.energy_j)
      .member("tree_factor", explanation.tree_factor)
      .member("trust", explanation.estimate.trust_factor);
  write_features(json, explanation);
  json.end_object();
}

void write_explanation(JsonWriter& json, const PredictionReport& report) {
  json.key("explanation");
  if (report.explained_layer.empty()) {
    json.null();
    return;
  }
  json.begin_object().member("layer", report.explained_layer).key("operations").begin_array();
  for (const OperationExplanation& explanation : report.explanation) write_explained_operation(json, explanation);
  json.end_array().end_object();
}

void write_totals(JsonWriter& json, const PredictionReport& report) {
  const Prediction& prediction = report.prediction;
  json.member("energy_j", prediction.energy_j)
      .member("low_j", prediction.low_j)
      .member("high_j", prediction.high_j)
      .member("time_s", prediction.time_s)
      .member("power_w", prediction.power_w)
      .member("gpu_s", prediction.gpu_s)
      .member("host_s", prediction.host_s)
      .member("idle_j", prediction.idle_j)
      .member("flops", prediction.flops)
      .member("is_total_sound", prediction.is_total_sound)
      .member("is_lower_bound", is_lower_bound(prediction));
  const predict::Footprint footprint = compute_footprint(prediction.energy_j, report.tariff);
  json.member("co2_kg", footprint.co2_kg).member("price", footprint.price);
}

}  // namespace

std::string prediction_json(const PredictionReport& report) {
  const Prediction& prediction = report.prediction;
  JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.prediction/1")
      .member("interval", kPredictionIntervalLevel)
      .text_or_null("model", report.model)
      .member("format", report.format)
      .member("device", prediction.device)
      .member("basis", prediction.has_fitted_profile ? "fitted" : "datasheet")
      .member("pass", prediction.training ? "training" : "inference")
      .member("batch", report.batch)
      .member("precision", report.precision)
      .member("mode", name_of(report.mode))
      .text_or_null("optimizer", report.optimizer);
  write_totals(json, report);
  write_layers(json, prediction);
  write_unknown_operations(json, prediction);
  write_tariff(json, report.tariff);
  write_lifetime(json, report);
  write_explanation(json, report);
  json.key("notes").begin_array();
  for (const std::string& note : prediction.notes) json.value(note);
  json.end_array();
  write_diagnostics(json, report.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
