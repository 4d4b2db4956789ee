// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/row_json.h"

#include <fmt/format.h>

#include "formats/document.h"
#include "formats/json_writer.h"
#include "model_json/cause_json.h"
#include "model_json/diagnostics_json.h"
#include "scopes/cause_names.h"

namespace joulemap::experiment {
namespace {

using formats::DocumentValue;
using formats::JsonWriter;

void write_domains(JsonWriter& json, const std::vector<DomainEnergy>& domains) {
  json.key("domains").begin_array();
  for (const DomainEnergy& domain : domains) {
    json.begin_object()
        .member("name", domain.name)
        .member("joules", domain.joules)
        .member("uncertainty_j", domain.uncertainty_j)
        .member("mean_w", domain.mean_w);
    json.text_or_null("provenance", domain.provenance ? joulemap::to_string(*domain.provenance) : "");
    json.text_or_null("reason", domain.reason)
        .member("counted", domain.is_counted)
        .text_or_null("part_of", domain.part_of)
        .member("sensor", domain.sensor)
        .text_or_null("model", domain.model)
        .text_or_null("device_model", domain.device_model);
    json.key("checks").begin_array();
    for (const CrossCheck& check : domain.checks) {
      json.begin_object().member("sensor", check.sensor).member("channel", check.channel);
      json.member("joules", check.joules).member("uncertainty_j", check.uncertainty_j).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

// `energy_j` is the measured sum if anything was measured, else the estimated sum; null if a domain has no value.
void write_totals(JsonWriter& json, const EnergyTotals& totals) {
  const std::optional<EnergyWithProvenance> complete_energy = energy_if_complete(totals);
  json.member("energy_j", complete_energy ? std::optional(complete_energy->joules) : std::nullopt)
      .text_or_null("energy_provenance", complete_energy ? joulemap::to_string(complete_energy->provenance) : "")
      .member("measured_j", joules_of(totals.measured))
      .member("measured_uncertainty_j", uncertainty_of(totals.measured))
      .member("estimated_j", joules_of(totals.estimated))
      .member("estimated_uncertainty_j", uncertainty_of(totals.estimated));
}

void write_powers(JsonWriter& json, std::string_view name, const PowerTotals& power) {
  const std::string prefix(name);
  json.member(prefix + "_measured_w", power_by_provenance(power, Provenance::measured))
      .member(prefix + "_estimated_w", power_by_provenance(power, Provenance::estimated));
}

void write_metrics(JsonWriter& json, const std::vector<std::optional<double>>& values, const ExperimentData& data) {
  json.key("metrics").begin_object();
  for (std::size_t i = 0; i < values.size() && i < data.metrics.size(); ++i) {
    json.member(data.metrics[i].name, values[i]);
  }
  json.end_object();
}

void write_epochs(JsonWriter& json, const std::vector<EpochResult>& epochs, const ExperimentData& data) {
  json.key("epochs").begin_array();
  for (const EpochResult& epoch : epochs) {
    json.begin_object()
        .member("start_s", epoch.start_s)
        .member("elapsed_s", epoch.elapsed_s)
        .member("energy_j", epoch.energy_j);
    write_metrics(json, epoch.metrics, data);
    json.key("gauges").begin_object();
    for (std::size_t i = 0; i < kGauges.size(); ++i) json.member(kGauges[i].name, epoch.gauges[i]);
    json.end_object().end_object();
  }
  json.end_array();
}

void write_series(JsonWriter& json, const RowSeries& series) {
  json.key("series").begin_object().member("slice_s", series.slice_s).key("channels").begin_array();
  for (const SeriesChannel& channel : series.channels) {
    json.begin_object().member("name", channel.name).member("unit", channel.unit).key("values").begin_array();
    for (const std::optional<double>& value : channel.values) {
      if (value) {
        json.value(*value);
      } else {
        json.null();
      }
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

void write_functions(JsonWriter& json, const std::vector<FunctionResult>& functions) {
  json.key("functions").begin_array();
  for (const FunctionResult& function : functions) {
    json.begin_object().member("name", function.name).member("device", function.device);
    json.member("count", function.count).member("time_s", function.time_s).member("energy_j", function.energy_j);
    json.member("cumulative_s", function.cumulative_s);
    write_energy_cause(json, function.cause);
    json.end_object();
  }
  json.end_array();
}

void write_checks_and_cool_down(JsonWriter& json, const AttemptConditions& conditions) {
  json.key("checks").begin_array();
  for (const CheckOutcome& check : conditions.checks) {
    json.begin_object()
        .member("name", check.check_name)
        .member("state", to_string(check.state))
        .member("required", check.is_required)
        .text_or_null("found", check.observed_value)
        .text_or_null("message", check.message)
        .text_or_null("remedy", check.remedy)
        .end_object();
  }
  json.end_array().key("settings").begin_array();
  for (const SettingChange& change : conditions.settings) {
    json.begin_object()
        .member("path", change.setting_file)
        .member("before", change.value_before)
        .member("after", change.value_after)
        .end_object();
  }
  json.end_array().key("cool_down");
  if (!conditions.cool_down) {
    json.null();
    return;
  }
  json.begin_object()
      .member("waited_s", conditions.cool_down->waited_s)
      .member("reached", conditions.cool_down->reached_baseline)
      .member("power_w", preferred_power(conditions.cool_down->idle_powers))
      .member("temperature_c", conditions.cool_down->temperature_c)
      .member("baseline_temperature_c", conditions.cool_down->baseline_temperature_c);
  write_powers(json, "power", conditions.cool_down->idle_powers);
  json.end_object();
}

void write_attempt_conditions(JsonWriter& json, const AttemptConditions& conditions) {
  json.key("command").begin_array();
  for (const std::string& word : conditions.command) json.value(word);
  json.end_array()
      .text_or_null("directory", conditions.directory)
      .text_or_null("recording", conditions.recording_file)
      .text_or_null("error", conditions.error_text);
  json.key("environment").begin_object();
  for (const EnvironmentFact& fact : conditions.environment) json.member(fact.name, fact.value);
  json.end_object();
  write_checks_and_cool_down(json, conditions);
}

std::vector<CrossCheck> read_domain_checks(const DocumentValue& domain) {
  std::vector<CrossCheck> checks;
  const DocumentValue* const check_list = domain.find("checks");
  if (check_list == nullptr || check_list->array() == nullptr) return checks;
  for (const DocumentValue& check_value : *check_list->array()) {
    checks.push_back({check_value.text_or_empty("sensor"), check_value.text_or_empty("channel"),
                      check_value.number("joules").value_or(0), check_value.number("uncertainty_j").value_or(0)});
  }
  return checks;
}

std::vector<DomainEnergy> read_domains(const DocumentValue& row) {
  std::vector<DomainEnergy> domains;
  const DocumentValue* const domain_list = row.find("domains");
  if (domain_list == nullptr || domain_list->array() == nullptr) return domains;
  for (const DocumentValue& domain_value : *domain_list->array()) {
    DomainEnergy domain;
    domain.name = domain_value.text_or_empty("name");
    domain.joules = domain_value.number("joules");
    domain.uncertainty_j = domain_value.number("uncertainty_j");
    domain.mean_w = domain_value.number("mean_w");
    const std::string provenance = domain_value.text_or_empty("provenance");
    if (provenance == "measured") domain.provenance = Provenance::measured;
    if (provenance == "estimated") domain.provenance = Provenance::estimated;
    domain.reason = domain_value.text_or_empty("reason");
    domain.is_counted = domain_value.boolean("counted").value_or(false);
    domain.part_of = domain_value.text_or_empty("part_of");
    domain.sensor = domain_value.text_or_empty("sensor");
    domain.model = domain_value.text_or_empty("model");
    domain.device_model = domain_value.text_or_empty("device_model");
    domain.checks = read_domain_checks(domain_value);
    domains.push_back(std::move(domain));
  }
  return domains;
}

std::vector<std::optional<double>> read_metrics(const DocumentValue& enclosing_value, const ExperimentData& data) {
  std::vector<std::optional<double>> values;
  const DocumentValue* const metrics = enclosing_value.find("metrics");
  for (const ExperimentMetric& metric : data.metrics) {
    values.push_back(metrics == nullptr ? std::nullopt : metrics->number(metric.name));
  }
  return values;
}

std::vector<EpochResult> read_epochs(const DocumentValue& row, const ExperimentData& data) {
  std::vector<EpochResult> epochs;
  const DocumentValue* const epoch_list = row.find("epochs");
  if (epoch_list == nullptr || epoch_list->array() == nullptr) return epochs;
  for (const DocumentValue& epoch_value : *epoch_list->array()) {
    epochs.push_back({epoch_value.number("start_s").value_or(0), epoch_value.number("elapsed_s").value_or(0),
                      epoch_value.number("energy_j"), read_metrics(epoch_value, data)});
    const DocumentValue* const gauges = epoch_value.find("gauges");
    for (std::size_t i = 0; gauges != nullptr && i < kGauges.size(); ++i)
      epochs.back().gauges[i] = gauges->number(kGauges[i].name);
  }
  return epochs;
}

RowSeries read_row_series(const DocumentValue& row) {
  RowSeries series;
  const DocumentValue* const json = row.find("series");
  const DocumentValue* const channels = json == nullptr ? nullptr : json->find("channels");
  if (channels == nullptr || channels->array() == nullptr) return series;
  const double slice_s = json->number("slice_s").value_or(0);
  if (!(slice_s > 0)) return series;
  series.slice_s = slice_s;
  for (const DocumentValue& channel_value : *channels->array()) {
    SeriesChannel channel{channel_value.text_or_empty("name"), channel_value.text_or_empty("unit"), {}};
    const DocumentValue* const values = channel_value.find("values");
    if (values == nullptr || values->array() == nullptr) continue;
    for (const DocumentValue& value : *values->array()) {
      if (channel.values.size() < kMaxSeriesSlices) channel.values.push_back(value.number());
    }
    series.channels.push_back(std::move(channel));
  }
  return series;
}

// Reads the cause of a function's energy; if the row has none, derives it from the function's name.
EnergyCause read_function_cause(const DocumentValue& function, const FunctionResult& function_result) {
  const std::optional<EnergyCauseClass> largest_class = scopes::parse_cause_class(function.text_or_empty("cause"));
  const DocumentValue* const times = function.find("cause_s");
  if (!largest_class || times == nullptr || times->table() == nullptr)
    return scopes::make_cause_from_name(function_result.name, function_result.time_s);
  EnergyCause cause{*largest_class,
                    function.text_or_empty("cause_basis") == "ledger" ? CauseBasis::ledger : CauseBasis::name};
  for (const EnergyCauseClass cause_class : kCauseClasses) {
    cause.times_s[cause_class] = times->number(joulemap::to_string(cause_class)).value_or(0);
  }
  return cause;
}

std::vector<FunctionResult> read_functions(const DocumentValue& row) {
  std::vector<FunctionResult> functions;
  const DocumentValue* const function_list = row.find("functions");
  if (function_list == nullptr || function_list->array() == nullptr) return functions;
  for (const DocumentValue& function_value : *function_list->array()) {
    FunctionResult function{function_value.text_or_empty("name"),
                            function_value.text_or_empty("device"),
                            {},
                            0,
                            function_value.number("energy_j")};
    const std::optional<std::int64_t> count = function_value.integer("count");
    if (count && *count >= 0) function.count = static_cast<std::uint64_t>(*count);
    function.time_s = function_value.number("time_s").value_or(0);
    function.cumulative_s = function_value.number("cumulative_s");
    function.cause = read_function_cause(function_value, function);
    functions.push_back(std::move(function));
  }
  return functions;
}

// A row from another program can have an energy without domains: it becomes a measured domain "machine".
void read_whole_machine_energy(const DocumentValue& json, ExperimentRow& row) {
  const std::optional<double> energy_j = json.number("energy_j");
  if (!row.domains.empty() || !energy_j) return;
  DomainEnergy machine;
  machine.name = "machine";
  machine.joules = energy_j;
  machine.provenance = Provenance::measured;
  machine.is_counted = true;
  row.domains.push_back(std::move(machine));
}

PowerTotals read_powers(const DocumentValue& json, const std::string& name) {
  PowerTotals power;
  if (const auto watts = json.number(name + "_measured_w")) power.measured = MeasuredWatts(*watts);
  if (const auto watts = json.number(name + "_estimated_w")) power.estimated = EstimatedWatts(*watts);
  return power;
}

// Older rows have one sum over all domains. It is used only if all domains have the same provenance.
void read_idle_powers(const DocumentValue& json, ExperimentRow& row) {
  row.baseline = read_powers(json, "baseline");
  row.first = read_powers(json, "first");
  const std::optional<double> baseline_w = json.number("baseline_w");
  const std::optional<double> first_w = json.number("first_w");
  if (preferred_power(row.baseline) || preferred_power(row.first) || (!baseline_w && !first_w)) return;
  const EnergyTotals totals = total_energy(row.domains);
  if (totals.measured && totals.estimated) {
    row.diagnostics.add({"mixed_idle_power", 1, "the idle power mixes measurements and estimates and is not used",
                         "run the row again"});
  } else if (totals.estimated) {
    if (baseline_w) row.baseline.estimated = EstimatedWatts(*baseline_w);
    if (first_w) row.first.estimated = EstimatedWatts(*first_w);
  } else {
    if (baseline_w) row.baseline.measured = MeasuredWatts(*baseline_w);
    if (first_w) row.first.measured = MeasuredWatts(*first_w);
  }
}

Diagnostics read_diagnostics(const DocumentValue& row) {
  Diagnostics diagnostics;
  const DocumentValue* const diagnostic_list = row.find("diagnostics");
  if (diagnostic_list == nullptr || diagnostic_list->array() == nullptr) return diagnostics;
  for (const DocumentValue& diagnostic_value : *diagnostic_list->array()) {
    diagnostics.add({diagnostic_value.text_or_empty("code"),
                     static_cast<std::uint64_t>(diagnostic_value.integer("count").value_or(1)),
                     diagnostic_value.text_or_empty("message"), diagnostic_value.text_or_empty("remedy")});
  }
  return diagnostics;
}

}  // namespace

std::string_view to_string(CheckState state) {
  switch (state) {
    case CheckState::passed:
      return "passed";
    case CheckState::warned:
      return "warned";
    case CheckState::failed:
      return "failed";
    case CheckState::unknown:
      return "unknown";
  }
  return "";
}

std::string row_json(const ExperimentRow& row, const AttemptConditions& conditions, const ExperimentData& data) {
  JsonWriter json;
  json.begin_object().member("schema", "joulemap.row/1").member("number", static_cast<std::uint64_t>(row.number));
  json.key("levels").begin_object();
  for (std::size_t i = 0; i < data.factors.size() && i < row.levels.size(); ++i) {
    json.member(data.factors[i].name, data.factors[i].levels.at(row.levels[i]));
  }
  json.end_object()
      .member("block", static_cast<std::uint64_t>(row.block))
      .text_or_null("node", row.node)
      .member("state", row.state == ExperimentRowState::done ? "done" : "failed")
      .member("exit_code", row.exit_code)
      .member("start_unix_ns", row.start_unix_ns)
      .member("elapsed_s", row.elapsed_s);
  write_totals(json, total_energy(row.domains));
  json.member("baseline_w", preferred_power(row.baseline)).member("first_w", preferred_power(row.first));
  write_powers(json, "baseline", row.baseline);
  write_powers(json, "first", row.first);
  json.member("stolen_share", row.cpu_steal_share).member("throttled_share", row.throttled_share);
  write_domains(json, row.domains);
  write_metrics(json, row.metrics, data);
  write_epochs(json, row.epochs, data);
  write_series(json, row.series);
  write_functions(json, row.functions);
  write_diagnostics(json, row.diagnostics);
  write_attempt_conditions(json, conditions);
  json.end_object();
  return std::move(json).text() + "\n";
}

Result<ExperimentRow> parse_row_json(std::string_view text, std::string_view name, const ExperimentData& data) {
  const Result<DocumentValue> json = formats::read_json(text, name);
  if (!json) return json.error();
  if (json->text_or_empty("schema") != "joulemap.row/1") {
    return Error{ErrorCode::malformed, fmt::format("{}: not a joulemap.row/1 document", name), ""};
  }
  ExperimentRow row;
  row.number = static_cast<std::size_t>(json->integer("number").value_or(0));
  row.block = static_cast<std::size_t>(json->integer("block").value_or(0));
  row.node = json->text_or_empty("node");
  row.state = json->text_or_empty("state") == "done" ? ExperimentRowState::done : ExperimentRowState::failed;
  if (const std::optional<std::int64_t> code = json->integer("exit_code")) row.exit_code = static_cast<int>(*code);
  row.error = json->text_or_empty("error");
  row.start_unix_ns = json->integer("start_unix_ns");
  row.elapsed_s = json->number("elapsed_s");
  row.cpu_steal_share = json->number("stolen_share");
  row.throttled_share = json->number("throttled_share");
  row.domains = read_domains(*json);
  row.metrics = read_metrics(*json, data);
  row.epochs = read_epochs(*json, data);
  row.series = read_row_series(*json);
  row.functions = read_functions(*json);
  row.diagnostics = read_diagnostics(*json);
  read_whole_machine_energy(*json, row);
  read_idle_powers(*json, row);
  return row;
}

}  // namespace joulemap::experiment
