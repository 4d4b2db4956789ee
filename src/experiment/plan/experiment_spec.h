// SPDX-License-Identifier: Apache-2.0
//
// ExperimentSpec: the content of `experiment.toml` (reference: docs/how-to/experiments.md): factors, repetitions,
// order, command, preconditions and metrics. Plain data; seconds, degrees Celsius, fractions from 0 to 1. Parsing is
// pure and reports every mistake with its line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/experiment_data.h"

namespace joulemap::experiment {

// `arguments` is executed without a shell; `shell_text` goes to `sh -c`. At most one of them is set.
struct CommandSpec {
  std::vector<std::string> arguments;
  std::string shell_text;

  bool is_empty() const { return arguments.empty() && shell_text.empty(); }
};

enum class RowOrder {
  blocked_random,  // each repetition is one complete block in random order
  blocked,         // each repetition is one complete block in cell order
  random,          // all rows in random order
  sequential,      // all repetitions of a cell, then the next cell
};

enum class MetricSource { json, output, recording };
enum class MetricReduction { last, first, lowest, highest, mean };

struct MetricSpec {
  ExperimentMetric metric;
  MetricSource source = MetricSource::json;
  std::string json_file;       // json: path relative to the folder of the attempt
  std::string json_key;        // json: "test.accuracy"; recording: name of the metric
  std::string output_pattern;  // output: regular expression with one group
  MetricReduction reduction = MetricReduction::last;
};

// Cool-down before each row: wait until power and temperatures are this close to the baseline, at most time_limit_s.
struct CoolDownSpec {
  std::optional<double> max_power_excess_fraction = 0.1;  // fraction of the baseline power
  std::optional<double> max_temperature_excess_c = 5;     // degrees above the baseline
  double time_limit_s = 120;
};

inline constexpr std::string_view kKnownCheckNames =
    "sensors governor turbo load swap gpu_processes throttling temperature";
inline constexpr std::string_view kKnownSettingNames = "governor turbo";

struct ChecksSpec {
  std::vector<std::string> required_checks = {"sensors"};  // checks that must pass before a row starts
  std::vector<std::string> warning_checks;
  std::vector<std::string>
      applied_settings;  // "governor", "turbo": settings changed for the rows and restored afterwards
  std::string governor = "performance";
  std::optional<bool> turbo;
  double max_load_fraction = 0.1;  // fraction of all CPUs that other processes may use
  double temperature_limit_c = 85;
  CommandSpec preflight_command;  // for example "the framework sees the GPU, memory fits": must exit with 0
};

struct CostsSpec {
  std::optional<double> price_per_kwh;
  std::string currency;
  std::optional<double> gco2_per_kwh;
};

// A combination of levels to leave out: for each factor, the levels that match; an empty list matches all.
using Exclusion = std::vector<std::vector<std::size_t>>;

struct ExperimentSpec {
  std::string name;
  std::vector<ExperimentFactor> factors;
  std::vector<Exclusion> exclusions;
  std::size_t repetitions = 10;
  RowOrder row_order = RowOrder::blocked_random;
  std::uint64_t seed = 0;  // default: derived from the text, so that the same file gives the same order
  double significance_level = 0.05;

  CommandSpec command;  // empty for an import: another program ran the rows
  std::vector<std::pair<std::string, std::string>> environment;
  bool keep_arguments = false;    // as `record --keep-arguments`
  std::string working_directory;  // working directory of commands; relative to the folder of the file
  std::optional<double> time_limit_s;
  std::size_t warm_up_runs = 1;
  double baseline_duration_s = 10;
  CoolDownSpec cool_down;
  ChecksSpec checks;
  std::string trace = "auto";  // value of `record --trace`; the next one that of `record --sensors`
  std::string sensors;
  std::vector<MetricSpec> metrics;
  CostsSpec costs;
  Diagnostics notes;  // notes of an importer, which every report shows
};

// `name` is the file name in messages.
Result<ExperimentSpec> parse_spec(std::string_view toml, std::string_view name);

// Returns the plan that an importer writes for rows that already exist.
std::string imported_experiment_toml(const ExperimentData& data);

std::string_view to_string(RowOrder order);
// Whether the order divides the rows into blocks, within which they are compared.
bool is_blocked(RowOrder order);

}  // namespace joulemap::experiment
