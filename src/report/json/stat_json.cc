// SPDX-License-Identifier: Apache-2.0
#include "report/json/stat_json.h"

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"
#include "report/json/sampler_cost_json.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

void write_domain(JsonWriter& json, const DomainEnergy& domain) {
  json.begin_object()
      .member("name", domain.name)
      .member("joules", domain.joules)
      .member("uncertainty_j", domain.uncertainty_j)
      .member("mean_w", domain.mean_w);
  json.text_or_null("provenance", domain.provenance ? to_string(*domain.provenance) : "");
  json.text_or_null("reason", domain.reason)
      .member("counted", domain.is_counted)
      .text_or_null("part_of", domain.part_of)
      .member("sensor", domain.sensor)
      .text_or_null("model", domain.model);
  json.key("checks").begin_array();
  for (const CrossCheck& check : domain.checks) {
    json.begin_object()
        .member("sensor", check.sensor)
        .member("channel", check.channel)
        .member("joules", check.joules)
        .member("uncertainty_j", check.uncertainty_j)
        .end_object();
  }
  json.end_array().end_object();
}

void write_stat_interval(JsonWriter& json, const StatInterval& interval) {
  json.begin_object().member("from_s", interval.from_s).member("to_s", interval.to_s).key("domains").begin_array();
  for (const DomainEnergy& domain : interval.domains) {
    json.begin_object().member("name", domain.name).member("joules", domain.joules).member("mean_w", domain.mean_w);
    json.text_or_null("provenance", domain.provenance ? to_string(*domain.provenance) : "");
    json.text_or_null("reason", domain.reason).member("counted", domain.is_counted).end_object();
  }
  json.end_array().end_object();
}

void write_stat_run(JsonWriter& json, const StatRun& run) {
  json.begin_object()
      .member("elapsed_s", run.elapsed_s)
      .member("exit_code", run.exit_code)
      .member("signal", run.signal)
      .member("start_unix_ns", run.start_unix_ns)
      .member("start_monotonic_ns", run.start_monotonic_ns);
  json.key("domains").begin_array();
  for (const DomainEnergy& domain : run.domains) write_domain(json, domain);
  json.end_array();
  json.member("measured_j", joules_of(run.totals.measured))
      .member("estimated_j", joules_of(run.totals.estimated))
      .member("process_share", run.process_share)
      .member("process_cpu_s", run.process_cpu_s)
      .member("machine_cpu_s", run.machine_cpu_s)
      .member("user_s", run.user_s)
      .member("system_s", run.system_s);
  json.key("intervals").begin_array();
  for (const StatInterval& interval : run.intervals) write_stat_interval(json, interval);
  json.end_array();
  json.key("overhead").begin_object().member("cpu_s", run.overhead_cpu_s);
  json.key("share");
  run.elapsed_s > 0 ? json.value(run.overhead_cpu_s / run.elapsed_s) : json.null();
  json.member("missed_ticks", run.missed_ticks);
  write_sampler_costs(json, run.samplers);
  json.end_object();
  write_diagnostics(json, run.diagnostics);
  json.end_object();
}

}  // namespace

std::string stat_json(const StatResult& result) {
  JsonWriter json;
  json.begin_object().member("schema", "joulemap.stat/1").member("interval", result.interval);
  json.key("command").begin_array();
  for (const std::string& argument : result.command) json.value(argument);
  json.end_array().member("pid", result.attached_pid);
  json.key("runs").begin_array();
  for (const StatRun& run : result.runs) write_stat_run(json, run);
  json.end_array().key("summary").begin_array();
  for (const StatSummary& summary : result.summary) {
    json.begin_object()
        .member("name", summary.name)
        .member("mean_j", summary.mean_j)
        .member("low_j", summary.low_j)
        .member("high_j", summary.high_j)
        .member("runs", static_cast<std::uint64_t>(summary.runs_with_value))
        .end_object();
  }
  json.end_array();
  write_diagnostics(json, result.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
