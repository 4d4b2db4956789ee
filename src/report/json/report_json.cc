// SPDX-License-Identifier: Apache-2.0
#include "report/json/report_json.h"

#include "formats/json_writer.h"
#include "model_json/cause_json.h"
#include "model_json/diagnostics_json.h"
#include "report/json/account_json.h"
#include "report/json/calibrate_json.h"
#include "report/json/serving_json.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

void write_string_array(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_number_array(JsonWriter& json, std::string_view name, const std::vector<std::optional<double>>& values) {
  json.key(name).begin_array();
  for (const std::optional<double>& value : values) json.value(value);
  json.end_array();
}

void write_domains(JsonWriter& json, const ReportResult& result) {
  json.key("domains").begin_array();
  for (const DomainEnergy& domain : result.domains) {
    json.begin_object()
        .member("name", domain.name)
        .member("measured_j", domain.joules)
        .member("uncertainty_j", domain.uncertainty_j)
        .text_or_null("provenance", domain.provenance ? to_string(*domain.provenance) : "")
        .member("mean_w", domain.mean_w)
        .member("counted", domain.is_counted)
        .text_or_null("part_of", domain.part_of)
        .text_or_null("reason", domain.reason)
        .member("sensor", domain.sensor)
        .text_or_null("model", domain.model)
        .end_object();
  }
  json.end_array();
}

void write_report_rows(JsonWriter& json, const ReportResult& result) {
  json.key("rows").begin_array();
  for (const ReportRow& row : result.rows) {
    json.begin_object();
    write_string_array(json, "path", row.path);
    json.member("name", row.name)
        .member("display_name", row.display_name)
        .text_or_null("device", row.device)
        .member("count", row.count)
        .member("time_s", row.time_s)
        .member("energy_j", row.energy_j)
        .member("low_j", row.low_j)
        .member("high_j", row.high_j)
        .member("dynamic_j", row.dynamic_j)
        .member("power_w", row.power_w)
        .member("share", row.share)
        .member("basis", row.basis)
        .member("waiting_s", row.waiting_s)
        .member("waiting_j", row.waiting_j)
        .member("waiting_low_j", row.waiting_low_j)
        .member("waiting_high_j", row.waiting_high_j);
    write_energy_cause(json, row.cause);
    json.end_object();
  }
  json.end_array();
}

void write_idle_energy(JsonWriter& json, const ReportResult& result) {
  json.key("idle").begin_array();
  for (const IdleEntry& entry : result.idle) {
    json.begin_object().member("cause", to_string(entry.cause));
    write_string_array(json, "path", entry.path);
    json.text_or_null("device", entry.device)
        .member("time_s", entry.time_s)
        .member("energy_j", entry.energy_j)
        .member("low_j", entry.low_j)
        .member("high_j", entry.high_j)
        .member("in_rows", entry.is_included_in_rows)
        .end_object();
  }
  json.end_array();
}

void write_power_series(JsonWriter& json, const ReportResult& result) {
  json.key("power").begin_object().member("slice_s", result.slice_s).key("domains").begin_array();
  for (const PowerSeries& series : result.power) {
    json.begin_object().member("name", series.domain);
    write_number_array(json, "watts", series.watts);
    json.end_object();
  }
  json.end_array().key("tracks").begin_array();
  for (const ReportTrack& track : result.tracks) {
    json.begin_object().member("name", track.name).member("unit", unit_of(track.quantity));
    write_number_array(json, "values", track.values);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_counter_updates(JsonWriter& json, const ReportResult& result) {
  json.key("counter_steps").begin_array();
  for (const CounterUpdateTiming& steps : result.counter_updates) {
    json.begin_object()
        .member("channel", steps.channel)
        .member("period_s", steps.period_s)
        .member("half_width_s", steps.half_width_s)
        .member("last_step_monotonic_ns", steps.last_update_ns)
        .member("slips", steps.irregular_updates)
        .end_object();
  }
  json.end_array();
}

void write_metrics_and_environment(JsonWriter& json, const ReportResult& result) {
  json.key("metrics").begin_array();
  for (const ReportedMetric& metric : result.metrics) {
    json.begin_object()
        .member("name", metric.name)
        .member("count", metric.count)
        .member("first", metric.first)
        .member("last", metric.last)
        .end_object();
  }
  json.end_array().key("environment").begin_object();
  for (const EnvironmentFact& fact : result.environment) json.member(fact.name, fact.value);
  json.end_object();
  write_calibrations(json, result.calibration);
}

}  // namespace

std::string report_json(const ReportResult& result, const std::optional<CarbonAccount>& account) {
  JsonWriter json;
  json.begin_object().member("schema", "joulemap.report/1").member("interval", result.interval);
  write_string_array(json, "inputs", result.inputs);
  write_string_array(json, "command", result.command);
  write_string_array(json, "hosts", result.hosts);
  json.member("start_unix_ns", result.start_unix_ns)
      .member("start_monotonic_ns", result.start_monotonic_ns)
      .member("exit_code", result.exit_code)
      .member("signal", result.signal)
      .member("complete", result.complete)
      .member("by", result.by)
      .member("elapsed_s", result.elapsed_s)
      .member("measured_j", joules_of(result.totals.measured))
      .member("estimated_j", joules_of(result.totals.estimated))
      .member("attributed_j", result.attributed_j)
      .member("idle_j", result.idle_j)
      .member("unattributed_j", result.unattributed_j);
  write_domains(json, result);
  write_report_rows(json, result);
  write_idle_energy(json, result);
  write_serving(json, result.serving);
  write_power_series(json, result);
  write_counter_updates(json, result);
  json.member("steps", result.steps).member("evaluation_steps", result.evaluation_steps);
  json.member("epochs", result.epochs);
  write_metrics_and_environment(json, result);
  write_account(json, account);
  json.key("overhead").begin_object().member("cpu_s", result.overhead_cpu_s).key("share");
  result.overhead_cpu_s&& result.elapsed_s > 0 ? json.value(*result.overhead_cpu_s / result.elapsed_s) : json.null();
  json.key("probe_s");
  result.probe ? json.value(result.probe->time_s) : json.null();
  json.member("probe_j", result.probe ? result.probe->energy_j : std::nullopt);
  json.member("dither_s", result.dither_s);
  json.end_object().member("samples", result.samples).member("file_bytes", result.file_bytes);
  write_diagnostics(json, result.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
