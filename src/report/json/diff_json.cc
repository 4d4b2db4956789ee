// SPDX-License-Identifier: Apache-2.0
#include "report/json/diff_json.h"

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"

namespace joulemap::report {
namespace {

using formats::JsonWriter;

void write_string_array(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_compared_energy(JsonWriter& json, std::string_view name, const std::optional<ComparedEnergy>& energy) {
  json.key(name);
  if (!energy) {
    json.null();
    return;
  }
  json.begin_object()
      .member("energy_j", energy->energy_j)
      .member("low_j", energy->low_j)
      .member("high_j", energy->high_j)
      .member("waiting_j", energy->waiting_j)
      .member("count", energy->count)
      .member("time_s", energy->time_s)
      .end_object();
}

void write_idle_differences(JsonWriter& json, const std::vector<IdleDifference>& idle) {
  json.key("idle").begin_array();
  for (const IdleDifference& idle_difference : idle) {
    json.begin_object()
        .member("cause", to_string(idle_difference.cause))
        .member("device", idle_difference.device)
        .member("a_j", idle_difference.energy_a_j)
        .member("b_j", idle_difference.energy_b_j)
        .member("difference_j", idle_difference.energy_b_j - idle_difference.energy_a_j)
        .end_object();
  }
  json.end_array();
}

void write_side_of_operator_group(JsonWriter& json, std::string_view name, const OperatorGroupContent& side) {
  json.key(name).begin_object();
  write_string_array(json, "operations", side.operations);
  write_string_array(json, "shapes", side.shapes);
  json.text_or_null("precision", side.precision).key("kernels").begin_array();
  for (const OperatorGroupKernel& kernel : side.kernels)
    json.begin_object().member("name", kernel.name).member("share", kernel.share).end_object();
  json.end_array().end_object();
}

void write_operator_group(JsonWriter& json, const std::optional<OperatorGroup>& group) {
  json.key("group");
  if (!group) {
    json.null();
    return;
  }
  json.begin_object()
      .member("kind", group->kind)
      .text_or_null("phase", group->phase)
      .text_or_null("cause", group->cause.code)
      .text_or_null("cause_text", group->cause.text);
  write_side_of_operator_group(json, "a", group->a);
  write_side_of_operator_group(json, "b", group->b);
  json.end_object();
}

void write_difference_causes(JsonWriter& json, const std::vector<DifferenceCause>& causes) {
  json.key("causes").begin_array();
  for (const DifferenceCause& cause : causes) {
    json.begin_object()
        .member("code", cause.code)
        .member("text", cause.text)
        .member("difference_j", cause.difference_j);
    write_string_array(json, "kinds", cause.kinds);
    json.key("paths").begin_array();
    for (const std::vector<std::string>& path : cause.paths) {
      json.begin_array();
      for (const std::string& part : path) json.value(part);
      json.end_array();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void write_difference_entry(JsonWriter& json, const DifferenceEntry& entry) {
  json.begin_object();
  write_string_array(json, "path", entry.path);
  json.member("name", entry.name).member("display_name", entry.display_name).text_or_null("device", entry.device);
  write_compared_energy(json, "a", entry.a);
  write_compared_energy(json, "b", entry.b);
  json.member("difference_j", entry.difference_j)
      .member("low_j", entry.low_j)
      .member("high_j", entry.high_j)
      .member("relative", entry.relative_change)
      .member("verdict", to_string(entry.verdict))
      .member("p_adjusted", entry.p_adjusted);
  write_operator_group(json, entry.group);
  json.end_object();
}

void write_compared_recording(JsonWriter& json, const ComparedRecording& recording) {
  json.begin_object()
      .member("input", recording.input)
      .member("steps", recording.steps)
      .member("units", recording.units)
      .member("energy_j", recording.energy_j)
      .member("within", recording.within_run_relative_error)
      .key("left_out");
  if (!recording.exclusion) {
    json.null().end_object();
    return;
  }
  json.begin_object()
      .member("warm_up_steps", static_cast<std::uint64_t>(recording.exclusion->warm_up_steps))
      .member("long_steps", static_cast<std::uint64_t>(recording.exclusion->outlier_steps))
      .member("time_s", recording.exclusion->time_s)
      .member("energy_j", recording.exclusion->energy_j)
      .member("is_settled", recording.exclusion->is_settled)
      .end_object()
      .end_object();
}

void write_variation(JsonWriter& json, const RunDifference& difference) {
  const RunVariation& variation = difference.variation;
  json.key("run_variation")
      .begin_object()
      .member("prior_sd", variation.prior_sd)
      .member("prior_degrees_of_freedom", variation.prior_degrees_of_freedom)
      .member("prior_is_given", variation.is_user_prior)
      .member("sd", variation.sd)
      .member("degrees_of_freedom", variation.degrees_of_freedom)
      .end_object()
      .member("smallest_change", difference.smallest_detectable_change);
  json.key("establishes").begin_array();
  for (const DetectableChange& detectable_change : difference.detectable_changes) {
    json.begin_object()
        .member("recordings", static_cast<std::uint64_t>(detectable_change.recordings))
        .member("relative", detectable_change.relative_change)
        .end_object();
  }
  json.end_array();
}

void write_compared_run(JsonWriter& json, std::string_view name, const ComparedRun& run) {
  json.key(name).begin_object();
  write_string_array(json, "inputs", run.inputs);
  write_string_array(json, "command", run.command);
  json.member("units", run.units)
      .member("time_s", run.time_s)
      .member("scatter", run.mean_step_half_width)
      .member("provenance", run.is_estimated ? "estimated" : "measured");
  json.key("recordings").begin_array();
  for (const ComparedRecording& recording : run.recordings) write_compared_recording(json, recording);
  json.end_array().end_object();
}

}  // namespace

std::string diff_json(const RunDifference& difference) {
  JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.diff/1")
      .member("interval", difference.interval)
      .member("by", difference.by)
      .member("per", difference.per)
      .member("state", difference.is_steady ? "steady" : "whole_run")
      .member("entry_interval", difference.entry_confidence);
  write_variation(json, difference);
  write_compared_run(json, "a", difference.a);
  write_compared_run(json, "b", difference.b);
  write_string_array(json, "domains", difference.domains);
  json.key("total");
  write_difference_entry(json, difference.total);
  write_difference_causes(json, difference.causes);
  write_idle_differences(json, difference.idle);
  json.key("entries").begin_array();
  for (const DifferenceEntry& entry : difference.entries) write_difference_entry(json, entry);
  json.end_array().member("fail_over", difference.failure_threshold).member("failed", difference.failed);
  write_diagnostics(json, difference.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
