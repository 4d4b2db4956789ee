// SPDX-License-Identifier: Apache-2.0
#include "page/page_data.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/text.h"
#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"
#include "report/text/advice_text.h"
#include "report/text/command_energy.h"
#include "report/text/kernel_names.h"
#include "report/text/run_summary_sentences.h"

namespace joulemap::page {
namespace {

using formats::JsonWriter;

constexpr int kShownSignificantDigits = 6;
constexpr std::size_t kMaxKernelNameColumns = 72;
constexpr double kMinDrawnBranchFraction = 5e-4;  // branches below this fraction of the attributed energy are not drawn

// Rounds to kShownSignificantDigits significant digits, slightly more than the page shows, to make the JSON shorter.
double round_to_shown_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale =
      std::pow(10, kShownSignificantDigits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}

std::optional<double> round_to_shown_digits(const std::optional<double>& value) {
  return value ? std::optional(round_to_shown_digits(*value)) : std::nullopt;
}

void write_string_array(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_number_array(JsonWriter& json, const std::vector<std::optional<double>>& values) {
  json.begin_array();
  for (const std::optional<double>& value : values) json.value(round_to_shown_digits(value));
  json.end_array();
}

void write_run_summary(JsonWriter& json, const ReportResult& run) {
  json.key("run").begin_object().key("inputs");
  write_string_array(json, run.inputs);
  json.key("command");
  write_string_array(json, run.command);
  json.key("hosts");
  write_string_array(json, run.hosts);
  json.member("start_unix_ns", run.start_unix_ns)
      .member("exit_code", run.exit_code)
      .member("signal", run.signal)
      .member("complete", run.complete)
      .member("interval", run.interval)
      .member("elapsed_s", run.elapsed_s)
      .member("measured_j", joules_of(run.totals.measured))
      .member("measured_uncertainty_j", uncertainty_of(run.totals.measured))
      .member("estimated_j", joules_of(run.totals.estimated))
      .member("estimated_uncertainty_j", uncertainty_of(run.totals.estimated))
      .member("steps", run.steps)
      .member("epochs", run.epochs)
      .member("samples", run.samples)
      .member("file_bytes", run.file_bytes);
  json.key("environment").begin_array();
  for (const EnvironmentFact& fact : run.environment) {
    json.begin_array().value(fact.name).value(fact.value).end_array();
  }
  json.end_array().key("overhead").begin_object().member("cpu_s", run.overhead_cpu_s);
  json.member("probe_s", run.probe ? std::optional(run.probe->time_s) : std::nullopt)
      .member("probe_j", run.probe ? run.probe->energy_j : std::nullopt)
      .member("dither_s", run.dither_s)
      .end_object()
      .end_object();
}

// Rates are those of the command. "command_j" is null where other processes use no noticeable part.
void write_run_rates(JsonWriter& json, const RunView& view) {
  const RunRates rates = report::command_rates(view);
  const bool has_other_processes = report::noticeable_background_j(view) > 0;
  json.key("figures")
      .begin_object()
      .member("energy_j", view.rates.energy_j)
      .member("command_j", has_other_processes ? rates.energy_j : std::nullopt)
      .member("time_s", rates.time_s > 0 ? std::optional(rates.time_s) : std::nullopt)
      .member("is_estimated", rates.is_estimated())
      .member("steps_per_s", rates.steps_per_s())
      .member("joules_per_step", rates.energy_per_unit(rates.steps))
      .member("joules_per_epoch", rates.energy_per_unit(rates.epochs))
      .member("samples", rates.samples)
      .member("joules_per_sample", rates.energy_per_unit(rates.samples))
      .member("samples_per_s", rates.samples_per_s())
      .member("energy_delay_js", rates.energy_delay_js())
      .end_object();
}

void write_domains(JsonWriter& json, const RunView& view) {
  json.key("domains").begin_array();
  for (const DomainEnergy& domain : view.run.domains) {
    json.begin_object()
        .member("name", domain.name)
        .member("energy_j", domain.joules)
        .member("uncertainty_j", domain.uncertainty_j)
        .member("mean_w", domain.mean_w)
        .text_or_null("provenance", domain.provenance ? to_string(*domain.provenance) : "")
        .member("counted", domain.is_counted)
        .text_or_null("part_of", domain.part_of)
        .text_or_null("reason", domain.reason)
        .member("sensor", domain.sensor)
        .text_or_null("model", domain.model)
        .end_object();
  }
  json.end_array().key("components").begin_array();
  for (const ComponentEnergy& component : view.components) {
    json.begin_object()
        .member("name", component.name)
        .member("measured_j", joules_of(component.totals.measured))
        .member("measured_uncertainty_j", uncertainty_of(component.totals.measured))
        .member("estimated_j", joules_of(component.totals.estimated))
        .member("estimated_uncertainty_j", uncertainty_of(component.totals.estimated))
        .end_object();
  }
  json.end_array();
}

void write_power_series(JsonWriter& json, const ReportResult& run) {
  json.key("power").begin_object().member("slice_s", run.slice_s).key("domains").begin_array();
  for (const PowerSeries& series : run.power) {
    json.begin_object().member("name", series.domain).key("values");
    write_number_array(json, series.watts);
    json.end_object();
  }
  json.end_array().key("tracks").begin_array();
  for (const ReportTrack& track : run.tracks) {
    json.begin_object().member("name", track.name).member("unit", unit_of(track.quantity)).key("values");
    write_number_array(json, track.values);
    json.end_object();
  }
  json.end_array().end_object();
}

// Table of names, so that the JSON contains each name once: elsewhere, names are indices into this table.
class NameTable {
 public:
  std::uint64_t find_or_add_index(const std::string& name) {
    const auto [name_slot, is_new] = name_indices_.try_emplace(name, name_indices_.size());
    if (is_new) names_.push_back(name);
    return name_slot->second;
  }
  void write_path_indices(JsonWriter& json, const std::vector<std::string>& path) {
    json.begin_array();
    for (const std::string& name : path) json.value(find_or_add_index(name));
    json.end_array();
  }
  const std::vector<std::string>& all_names() const { return names_; }

 private:
  std::map<std::string, std::uint64_t> name_indices_;
  std::vector<std::string> names_;
};

// Writes a row as an array in the order of "columns". Of a kernel, the path contains the full demangled name, and the
// name a short form.
void write_report_row(JsonWriter& json, const ReportRow& row, std::string_view level_name, NameTable& names) {
  json.begin_array();
  names.write_path_indices(json, level_name == "kernel" ? std::vector{row.display_name} : row.path);
  const std::string brief_name = level_name == "kernel" || level_name == "stack"
                                     ? report::brief_kernel_name(row.display_name, kMaxKernelNameColumns)
                                     : row.display_name;
  json.value(names.find_or_add_index(brief_name))
      .value(names.find_or_add_index(row.device))
      .value(row.count)
      .value(row.time_s)
      .value(row.energy_j)
      .value(round_to_shown_digits(row.low_j))
      .value(round_to_shown_digits(row.high_j))
      .value(round_to_shown_digits(row.dynamic_j))
      .value(round_to_shown_digits(row.power_w))
      .value(names.find_or_add_index(row.basis))
      .value(names.find_or_add_index(std::string(row.cause ? to_string(row.cause->largest_class) : "")))
      .value(names.find_or_add_index(std::string(row.cause ? to_string(row.cause->basis) : "")))
      .value(round_to_shown_digits(row.waiting_j))
      .value(round_to_shown_digits(row.waiting_low_j))
      .value(round_to_shown_digits(row.waiting_high_j))
      .end_array();
}

void write_remaining_rows_sum(JsonWriter& json, const std::vector<ReportRow>& rows, std::size_t first_row) {
  if (rows.size() <= first_row) {
    json.null();
    return;
  }
  std::optional<double> energy_j;
  double time_s = 0;
  for (std::size_t i = first_row; i < rows.size(); ++i) {
    if (rows[i].energy_j) energy_j = energy_j.value_or(0) + *rows[i].energy_j;
    time_s += rows[i].time_s;
  }
  json.begin_object()
      .member("rows", std::uint64_t{rows.size() - first_row})
      .member("energy_j", energy_j)
      .member("time_s", time_s)
      .end_object();
}

// Writes the interval of each branch of the tree: [path, device, low_j, high_j]. It cannot be computed from those of
// the rows, whose errors are correlated. Skips branches that are too small to draw.
void write_branch_intervals(JsonWriter& json, const LevelView& level, NameTable& names) {
  const double min_drawn_energy_j = kMinDrawnBranchFraction * level.attributed_j.value_or(0);
  json.key("branches").begin_array();
  for (const ReportRow& branch : level.groups) {
    if (!branch.low_j || !branch.high_j || branch.path.empty() || branch.energy_j.value_or(0) < min_drawn_energy_j)
      continue;
    json.begin_array();
    names.write_path_indices(json, branch.path);
    json.value(names.find_or_add_index(branch.device))
        .value(round_to_shown_digits(branch.low_j))
        .value(round_to_shown_digits(branch.high_j))
        .end_array();
  }
  json.end_array();
}

// Writes idle energy summed by cause and device: [cause, device, time_s, energy_j].
void write_idle_by_cause(JsonWriter& json, const LevelView& level, NameTable& names) {
  struct IdleCauseSum {
    double time_s = 0;
    double energy_j = 0;
  };
  std::map<std::pair<IdleCause, std::string>, IdleCauseSum> sums;
  for (const IdleEntry& entry : level.idle) {
    IdleCauseSum& sum = sums[{entry.cause, entry.device}];
    sum.time_s += entry.time_s;
    sum.energy_j += entry.energy_j.value_or(0);
  }
  json.key("idle").begin_array();
  for (const auto& [key, sum] : sums) {
    json.begin_array().value(to_string(key.first)).value(names.find_or_add_index(key.second));
    json.value(sum.time_s).value(sum.energy_j).end_array();
  }
  json.end_array();
}

void write_report_levels(JsonWriter& json, const RunView& view, const PageLimits& limits, NameTable& names) {
  json.key("columns").begin_array();
  for (const char* name :
       {"path", "name", "device", "count", "time_s", "energy_j", "low_j", "high_j", "dynamic_j", "power_w", "basis",
        "cause", "cause_basis", "waiting_j", "waiting_low_j", "waiting_high_j"}) {
    json.value(name);
  }
  json.end_array().key("levels").begin_array();
  for (const LevelView& level : view.levels) {
    json.begin_object()
        .member("by", level.by)
        .member("attributed_j", level.attributed_j)
        .member("idle_j", level.idle_j)
        .member("unattributed_j", level.unattributed_j);
    write_idle_by_cause(json, level, names);
    json.key("rows").begin_array();
    for (std::size_t i = 0; i < level.rows.size() && i < limits.rows; ++i) {
      write_report_row(json, level.rows[i], level.by, names);
    }
    json.end_array().key("rest");
    write_remaining_rows_sum(json, level.rows, limits.rows);
    write_branch_intervals(json, level, names);
    write_diagnostics(json, level.diagnostics);
    json.end_object();
  }
  json.end_array();
}

// Writes steps or epochs as [number, count, begin_s, end_s, time_s, energy_j, loss, joules_per_loss].
void write_steps_or_epochs(JsonWriter& json, std::string_view key,
                           const std::vector<StepOrEpochView>& steps_or_epochs) {
  json.key(key).begin_array();
  for (const StepOrEpochView& step_or_epoch : steps_or_epochs) {
    json.begin_array()
        .value(step_or_epoch.number)
        .value(step_or_epoch.count)
        .value(round_to_shown_digits(step_or_epoch.begin_s))
        .value(round_to_shown_digits(step_or_epoch.end_s))
        .value(round_to_shown_digits(step_or_epoch.time_s))
        .value(round_to_shown_digits(step_or_epoch.energy_j))
        .value(round_to_shown_digits(step_or_epoch.loss))
        .value(round_to_shown_digits(step_or_epoch.joules_per_loss))
        .end_array();
  }
  json.end_array();
}

// Writes a step with its layers as [path, device, time_s, energy_j] and its waits as [cause, device, time_s, energy_j].
void write_step_detail(JsonWriter& json, const StepDetail& step, NameTable& names) {
  json.begin_object()
      .member("number", step.number)
      .member("begin_s", round_to_shown_digits(step.begin_s))
      .member("gpu_begin_s", step.gpu_begin_s)
      .member("gpu_end_s", step.gpu_end_s)
      .member("kernels", step.kernels)
      .key("layers")
      .begin_array();
  for (const StepLayer& layer : step.layers) {
    json.begin_array();
    names.write_path_indices(json, layer.path);
    json.value(names.find_or_add_index(layer.device))
        .value(round_to_shown_digits(layer.time_s))
        .value(round_to_shown_digits(layer.energy_j))
        .end_array();
  }
  json.end_array()
      .member("other_layers", step.other_layers)
      .member("other_s", round_to_shown_digits(step.other_s))
      .member("other_j", round_to_shown_digits(step.other_layers_j))
      .key("waits")
      .begin_array();
  for (const StepWait& wait : step.waits) {
    json.begin_array().value(to_string(wait.cause)).value(names.find_or_add_index(wait.device));
    json.value(round_to_shown_digits(wait.time_s)).value(round_to_shown_digits(wait.energy_j)).end_array();
  }
  json.end_array().end_object();
}

void write_step_details(JsonWriter& json, const RunView& view, NameTable& names) {
  json.member("detailed_steps", view.detailed_steps).key("step_details").begin_array();
  for (const StepDetail& step : view.step_details) write_step_detail(json, step, names);
  json.end_array();
}

// Writes intervals as [name, begin_s, end_s, count].
void write_named_time_spans(JsonWriter& json, std::string_view key, const std::vector<NamedTimeSpan>& named_spans,
                            NameTable& names) {
  json.key(key).begin_array();
  for (const NamedTimeSpan& named_span : named_spans) {
    json.begin_array()
        .value(names.find_or_add_index(named_span.name))
        .value(round_to_shown_digits(named_span.begin_s))
        .value(round_to_shown_digits(named_span.end_s))
        .value(named_span.count)
        .end_array();
  }
  json.end_array();
}

void write_metrics(JsonWriter& json, const RunView& view) {
  json.key("metrics").begin_array();
  for (const MetricSeries& series : view.metrics) {
    json.begin_object().member("name", series.name).member("count", series.count).key("points").begin_array();
    for (const MetricPoint& point : series.points) {
      json.begin_array()
          .value(round_to_shown_digits(point.time_s))
          .value(point.step)
          .value(round_to_shown_digits(point.value))
          .end_array();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void write_layer_distributions(JsonWriter& json, const RunView& view, NameTable& names) {
  json.key("spreads").begin_array();
  for (const LayerDistribution& distribution : view.layer_distributions) {
    json.begin_object().key("path");
    names.write_path_indices(json, distribution.path);
    json.member("device", distribution.device)
        .member("per", distribution.per)
        .member("samples", distribution.samples)
        .member("mean_j", round_to_shown_digits(distribution.mean_j))
        .key("quantiles_j")
        .begin_array();
    for (const double joules : distribution.quantiles_j) json.value(round_to_shown_digits(joules));
    json.end_array().end_object();
  }
  json.end_array();
}

// Findings as text, so that they equal those of `joulemap advise`.
void write_advice(JsonWriter& json, const std::optional<Advice>& advice) {
  json.key("findings").begin_array();
  for (const Finding& finding : advice ? advice->findings : std::vector<Finding>()) {
    json.begin_object().member("title", finding.title).member("change", finding.change);
    json.member("saving", report::finding_saving_text(finding, *advice)).key("evidence");
    write_string_array(json, finding.evidence);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string page_data(const RunView& view, const PageLimits& limits) {
  JsonWriter json;
  NameTable names;
  json.begin_object().member("schema", "joulemap.page/1").member("version", JOULEMAP_VERSION);
  json.key("answer");
  write_string_array(json, report::run_summary_sentences(view));
  write_advice(json, view.advice);
  write_run_summary(json, view.run);
  write_run_rates(json, view);
  write_domains(json, view);
  write_power_series(json, view.run);
  write_report_levels(json, view, limits, names);
  write_steps_or_epochs(json, "steps", view.steps);
  write_steps_or_epochs(json, "epochs", view.epochs);
  write_step_details(json, view, names);
  write_named_time_spans(json, "phases", view.phases, names);
  write_named_time_spans(json, "regions", view.regions, names);
  write_named_time_spans(json, "probing", view.probing, names);
  write_named_time_spans(json, "dithering", view.dithering, names);
  write_metrics(json, view);
  write_layer_distributions(json, view, names);
  json.key("names");
  write_string_array(json, names.all_names());
  write_diagnostics(json, view.run.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::page
