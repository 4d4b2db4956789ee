// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/experiment_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>

#include "base/small_file.h"
#include "base/text.h"
#include "experiment/plan/command_template.h"
#include "experiment/plan/spec_analysis.h"
#include "experiment/plan/spec_reader.h"
#include "formats/crc32.h"

namespace joulemap::experiment {
namespace {

using formats::DocumentMember;
using formats::DocumentValue;

constexpr std::size_t kMaxRepetitions = 100'000;
constexpr double kSecondsPerDay = 86'400;

bool is_valid_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// The experiment name becomes the name of a folder, a job and a page.
void check_experiment_name(const DocumentValue* value, const ExperimentSpec& spec, SpecErrors& errors) {
  constexpr std::size_t kMaxName_bytes = 100;
  const auto is_forbidden_character = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '/';
  };
  const bool is_path = spec.name == "." || spec.name == ".." || std::ranges::any_of(spec.name, is_forbidden_character);
  if (!is_path && spec.name.size() <= kMaxName_bytes) return;
  errors.add(value == nullptr ? 0 : value->line,
             fmt::format("name is used as a folder name: at most {} bytes, no /, no control characters; not {}",
                         kMaxName_bytes, joulemap::quoted(spec.name)));
}

void read_levels(const DocumentMember& member, ExperimentFactor& factor, SpecErrors& errors) {
  const DocumentValue::Array* const levels = member.value.array();
  for (const DocumentValue& element : levels == nullptr ? DocumentValue::Array{} : *levels) {
    const std::optional<std::string> level = level_text(element);
    if (!level) {
      errors.add(element.line, fmt::format("levels of {} must be strings or numbers", factor.name));
    } else if (std::find(factor.levels.begin(), factor.levels.end(), *level) != factor.levels.end()) {
      errors.add(element.line, fmt::format("{} has the level {} twice", factor.name, joulemap::quoted(*level)));
    } else {
      factor.levels.push_back(*level);
    }
  }
  if (factor.levels.empty()) {
    errors.add(member.value.line, fmt::format("{} needs a list of levels: [\"a\", \"b\"]", factor.name));
  }
}

void read_factors(const DocumentValue* table, ExperimentSpec& spec, SpecErrors& errors) {
  if (table == nullptr || table->table() == nullptr || table->table()->empty()) {
    errors.add(table == nullptr ? 0 : table->line,
               "[factors] is missing: list each factor with its levels, such as variant = [\"a\", \"b\"]");
    return;
  }
  for (const DocumentMember& member : *table->table()) {
    ExperimentFactor factor{member.key, {}, true};
    if (!is_valid_name(member.key) || is_reserved_placeholder(member.key)) {
      errors.add(member.value.line, fmt::format("invalid factor name {}: use letters, digits, - and _, but not {}",
                                                joulemap::quoted(member.key), reserved_placeholders()));
    }
    read_levels(member, factor, errors);
    spec.factors.push_back(std::move(factor));
  }
}

// Reads one level or a list of levels.
std::vector<std::size_t> match_factor_levels(const DocumentMember& member, const ExperimentFactor& factor,
                                             SpecErrors& errors) {
  const DocumentValue::Array singleton_array{member.value};
  std::vector<std::size_t> level_indices;
  for (const DocumentValue& element : member.value.array() == nullptr ? singleton_array : *member.value.array()) {
    const auto level = std::find(factor.levels.begin(), factor.levels.end(), level_text(element).value_or(""));
    if (level == factor.levels.end()) {
      errors.add(member.value.line, fmt::format("[[exclude]]: {} has no level {}", factor.name,
                                                joulemap::quoted(level_text(element).value_or("?"))));
    } else {
      level_indices.push_back(static_cast<std::size_t>(level - factor.levels.begin()));
    }
  }
  return level_indices;
}

void read_exclusions(const DocumentValue* exclusion_list, ExperimentSpec& spec, SpecErrors& errors) {
  if (exclusion_list == nullptr) return;
  if (exclusion_list->array() == nullptr) {
    errors.add(exclusion_list->line, "write exclusions as [[exclude]], with two brackets");
    return;
  }
  for (const DocumentValue& table : *exclusion_list->array()) {
    Exclusion exclusion(spec.factors.size());
    if (table.table() == nullptr || table.table()->empty()) {
      errors.add(table.line, "[[exclude]] must list the levels of factors that are not combined");
      continue;
    }
    for (const DocumentMember& member : *table.table()) {
      const auto factor =
          std::find_if(spec.factors.begin(), spec.factors.end(),
                       [&](const ExperimentFactor& candidate_factor) { return candidate_factor.name == member.key; });
      if (factor == spec.factors.end()) {
        errors.add(member.value.line, fmt::format("[[exclude]]: unknown factor {}", joulemap::quoted(member.key)));
      } else {
        exclusion[static_cast<std::size_t>(factor - spec.factors.begin())] =
            match_factor_levels(member, *factor, errors);
      }
    }
    spec.exclusions.push_back(std::move(exclusion));
  }
}

void check_metric_pattern(const MetricSpec& metric, const DocumentValue& value, SpecErrors& errors) {
  try {
    const std::regex pattern(metric.output_pattern);
    if (pattern.mark_count() != 1) {
      errors.add(value.line,
                 fmt::format("the pattern of {} needs one group, (...), around the number", metric.metric.name));
    }
  } catch (const std::regex_error& error) {
    errors.add(value.line,
               fmt::format("the pattern of {} is not a regular expression: {}", metric.metric.name, error.what()));
  }
}

MetricSpec read_metric(const DocumentMember& member, SpecErrors& errors) {
  MetricSpec metric;
  metric.metric.name = member.key;
  const std::string table_name = fmt::format("[metrics.{}]", member.key);
  SpecReader reader(&member.value, table_name, errors);
  reader.read_choice<MetricSource>(
      "from", metric.source,
      {{"json", MetricSource::json}, {"output", MetricSource::output}, {"recording", MetricSource::recording}});
  reader.read_text("unit", metric.metric.unit);
  reader.read_boolean("more_is_better", metric.metric.more_is_better);
  reader.read_boolean("compared", metric.metric.is_compared);
  reader.read_choice<MetricReduction>("take", metric.reduction,
                                      {{"last", MetricReduction::last},
                                       {"first", MetricReduction::first},
                                       {"lowest", MetricReduction::lowest},
                                       {"highest", MetricReduction::highest},
                                       {"mean", MetricReduction::mean}});
  metric.json_key = member.key;
  if (metric.source == MetricSource::json) {
    metric.json_file = "metrics.json";
    reader.read_text("file", metric.json_file);
    if (!is_relative_path_without_parent(metric.json_file)) {
      errors.add(
          member.value.line,
          fmt::format("file of {} must be in the folder of the attempt: a relative path without ..", table_name));
    }
  }
  if (metric.source != MetricSource::output) reader.read_text("key", metric.json_key);
  if (metric.source == MetricSource::output) {
    reader.read_text("pattern", metric.output_pattern);
    check_metric_pattern(metric, member.value, errors);
  }
  reader.report_unknown_keys();
  return metric;
}

void read_metrics(const DocumentValue* table, ExperimentSpec& spec, SpecErrors& errors) {
  if (table == nullptr) return;
  if (table->table() == nullptr) {
    errors.add(table->line, "each metric must be a table: [metrics.accuracy]");
    return;
  }
  for (const DocumentMember& member : *table->table()) spec.metrics.push_back(read_metric(member, errors));
}

void read_environment(const DocumentValue* table, ExperimentSpec& spec, SpecErrors& errors) {
  if (table == nullptr) return;
  if (table->table() == nullptr) {
    errors.add(table->line, "[environment] must be a table: NAME = \"value\"");
    return;
  }
  for (const DocumentMember& member : *table->table()) {
    const std::optional<std::string> value = level_text(member.value);
    if (!value || member.key.find('=') != std::string::npos) {
      errors.add(member.value.line,
                 fmt::format("[environment]: {} must be a string or a number", joulemap::quoted(member.key)));
    } else {
      spec.environment.emplace_back(member.key, *value);
    }
  }
}

void read_cool_down(const DocumentValue* table, ExperimentSpec& spec, SpecErrors& errors) {
  SpecReader reader(table, "[cool_down]", errors);
  reader.read_number("power_within", spec.cool_down.max_power_excess_fraction, 0.001, 100);
  reader.read_number("temperature_within_c", spec.cool_down.max_temperature_excess_c, 0.1, 200);
  reader.read_number("limit_s", spec.cool_down.time_limit_s, 0, kSecondsPerDay);
  reader.report_unknown_keys();
}

void check_names_are_known(const DocumentValue* table, std::string_view key, const std::vector<std::string>& names,
                           std::string_view valid_names_text, SpecErrors& errors) {
  for (const std::string& name : names) {
    const std::vector<std::string_view> valid_names = split(valid_names_text, ' ');
    if (std::find(valid_names.begin(), valid_names.end(), name) != valid_names.end()) continue;
    const DocumentValue* const value = table == nullptr ? nullptr : table->find(key);
    errors.add(value == nullptr ? 0 : value->line, fmt::format("{} of [checks]: unknown name {}; valid names: {}", key,
                                                               joulemap::quoted(name), valid_names_text));
  }
}

void read_checks(const DocumentValue* table, ExperimentSpec& spec, SpecErrors& errors) {
  ChecksSpec& checks = spec.checks;
  for (const std::string_view name : split(kKnownCheckNames, ' ')) {
    if (name != "sensors") checks.warning_checks.emplace_back(name);
  }
  SpecReader reader(table, "[checks]", errors);
  reader.read_text_list("require", checks.required_checks);
  reader.read_text_list("warn", checks.warning_checks);
  reader.read_text_list("set", checks.applied_settings);
  reader.read_text("governor", checks.governor);
  reader.read_boolean("turbo", checks.turbo);
  reader.read_number("load_within", checks.max_load_fraction, 0, 1);
  reader.read_number("temperature_limit_c", checks.temperature_limit_c, 0, 200);
  reader.read_command("preflight", checks.preflight_command);
  reader.report_unknown_keys();
  check_names_are_known(table, "require", checks.required_checks, kKnownCheckNames, errors);
  check_names_are_known(table, "warn", checks.warning_checks, kKnownCheckNames, errors);
  check_names_are_known(table, "set", checks.applied_settings, kKnownSettingNames, errors);
}

// Names of results that every row has: with a factor or metric of the same name, `analyze --metric` and the columns of
// CSV files would be ambiguous.
bool is_measure_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kMeasureNames = {"energy_j", "time_s", "package", "dram", "gpu", "core"};
  return std::ranges::find(kMeasureNames, name) != kMeasureNames.end();
}

void check_measure_names(const DocumentValue& document, const ExperimentSpec& spec, SpecErrors& errors) {
  const auto check_name = [&](std::string_view table_name, const std::string& name, bool is_taken) {
    const DocumentValue* const table = document.find(table_name);
    const DocumentValue* const value = table == nullptr ? nullptr : table->find(name);
    if (is_taken && value != nullptr)
      errors.add(value->line, fmt::format("[{}] {}: results of rows have this name; choose another", table_name,
                                          joulemap::quoted(name)));
  };
  for (const ExperimentFactor& factor : spec.factors)
    check_name("factors", factor.name, factor.name == "energy_j" || factor.name == "time_s");
  for (const MetricSpec& metric : spec.metrics) {
    const bool is_factor =
        std::ranges::find(spec.factors, metric.metric.name, &ExperimentFactor::name) != spec.factors.end();
    check_name("metrics", metric.metric.name, is_measure_name(metric.metric.name) || is_factor);
  }
}

void read_costs(const DocumentValue* table, ExperimentSpec& spec, SpecErrors& errors) {
  SpecReader reader(table, "[costs]", errors);
  reader.read_number("price_per_kwh", spec.costs.price_per_kwh, 0, 1e6);
  reader.read_text("currency", spec.costs.currency);
  reader.read_number("gco2_per_kwh", spec.costs.gco2_per_kwh, 0, 1e5);
  reader.report_unknown_keys();
}

void read_seed(const DocumentValue* value, std::string_view toml, ExperimentSpec& spec, SpecErrors& errors) {
  spec.seed = formats::crc32(toml);
  if (value == nullptr) return;
  const std::optional<std::int64_t> seed = value->integer();
  if (!seed || *seed < 0) {
    errors.add(value->line, "seed must be a whole number, 0 or more");
  } else {
    spec.seed = static_cast<std::uint64_t>(*seed);
  }
}

// An unknown placeholder would reach the command unexpanded.
void check_placeholders(const DocumentValue& document, const ExperimentSpec& spec, SpecErrors& errors) {
  const auto check = [&](const DocumentValue* value, const CommandSpec& command) {
    if (value == nullptr) return;
    const Status check_status = check_command_template(command, spec.factors);
    if (!check_status) errors.add(value->line, check_status.error().message);
  };
  check(document.find("command"), spec.command);
  const DocumentValue* const checks = document.find("checks");
  if (checks != nullptr) check(checks->find("preflight"), spec.checks.preflight_command);
  const DocumentValue* const environment = document.find("environment");
  for (const auto& [name, value] : spec.environment) {
    const DocumentValue* const member = environment == nullptr ? nullptr : environment->find(name);
    check(member, CommandSpec{{value}, {}});
  }
}

}  // namespace

Result<ExperimentSpec> parse_spec(std::string_view toml, std::string_view name) {
  const Result<DocumentValue> document = formats::read_toml(toml, name);
  if (!document) return document.error();
  ExperimentSpec spec;
  SpecErrors errors(name);
  SpecReader reader(&*document, "", errors);
  spec.name = "experiment";
  reader.read_text("name", spec.name);
  check_experiment_name(document->find("name"), spec, errors);
  reader.read_count("repetitions", spec.repetitions, 1, kMaxRepetitions);
  reader.read_choice<RowOrder>("order", spec.row_order,
                               {{"blocked-random", RowOrder::blocked_random},
                                {"blocked", RowOrder::blocked},
                                {"random", RowOrder::random},
                                {"sequential", RowOrder::sequential}});
  read_seed(reader.take_value("seed"), toml, spec, errors);
  reader.read_number("alpha", spec.significance_level, 1e-9, 0.5);
  reader.read_command("command", spec.command);
  reader.read_text("directory", spec.working_directory);
  reader.read_boolean("keep_arguments", spec.keep_arguments);
  reader.read_number("time_limit_s", spec.time_limit_s, 0.1, 1000 * kSecondsPerDay);
  reader.read_count("warm_up_runs", spec.warm_up_runs, 0, 1000);
  reader.read_number("baseline_s", spec.baseline_duration_s, 0, kSecondsPerDay);
  reader.read_text("trace", spec.trace);
  reader.read_text("sensors", spec.sensors);
  read_factors(reader.take_value("factors"), spec, errors);
  read_analysis_keys(reader, spec, errors);
  read_exclusions(reader.take_value("exclude"), spec, errors);
  read_environment(reader.take_value("environment"), spec, errors);
  read_cool_down(reader.take_value("cool_down"), spec, errors);
  read_checks(reader.take_value("checks"), spec, errors);
  read_metrics(reader.take_value("metrics"), spec, errors);
  check_measure_names(*document, spec, errors);
  read_costs(reader.take_value("costs"), spec, errors);
  reader.report_unknown_keys();
  if (errors.empty()) check_placeholders(*document, spec, errors);
  if (!errors.empty()) return errors.to_error();
  return spec;
}

std::string_view to_string(RowOrder order) {
  switch (order) {
    case RowOrder::blocked_random:
      return "blocked-random";
    case RowOrder::blocked:
      return "blocked";
    case RowOrder::random:
      return "random";
    case RowOrder::sequential:
      return "sequential";
  }
  return "";
}

bool is_blocked(RowOrder order) { return order == RowOrder::blocked_random || order == RowOrder::blocked; }

}  // namespace joulemap::experiment
