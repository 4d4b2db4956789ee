// SPDX-License-Identifier: Apache-2.0
//
// ExperimentSpec: what `experiment.toml` says (docs/experiment.md has the reference): factors, how often and in which order
// they are run, by which command, on what conditions, and which numbers count. Plain data; seconds, degrees Celsius,
// shares from 0 to 1. Reading is pure; every mistake is told with its line.
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

// A list of words is executed as it is; a text goes to `sh -c`. One of the two, or nothing.
struct CommandSpec {
  std::vector<std::string> words;
  std::string shell;

  bool is_empty() const { return words.empty() && shell.empty(); }
};

enum class RowOrder {
  blocked_random,  // every repetition is one shuffled complete block
  blocked,         // every repetition in the order of the cells
  random,          // all rows shuffled
  sequential,      // all repetitions of a cell, then the next cell
};

enum class MetricSource { json, output, recording };
enum class MetricTake { last, first, lowest, highest, mean };

struct MetricSpec {
  ExperimentMetric metric;
  MetricSource source = MetricSource::json;
  std::string file;     // json: relative to the folder of the attempt
  std::string key;      // json: "test.accuracy"; recording: the metric's name
  std::string pattern;  // output: a regular expression with one group
  MetricTake take = MetricTake::last;
};

// Before each row: until power and temperatures are this near to the baseline, and no longer than the limit.
struct CoolDownSpec {
  std::optional<double> power_within = 0.1;        // a share of the baseline's power
  std::optional<double> temperature_within_c = 5;  // above the baseline's
  double limit_s = 120;
};

inline constexpr std::string_view kCheckNames = "sensors governor turbo load swap gpu_processes throttling temperature";
inline constexpr std::string_view kSettingNames = "governor turbo";

struct ChecksSpec {
  std::vector<std::string> require = {"sensors"};  // a row does not begin without these
  std::vector<std::string> warn;
  std::vector<std::string> set;  // "governor", "turbo": set before the rows, restored after them
  std::string governor = "performance";
  std::optional<bool> turbo;
  double load_within = 0.1;  // share of all CPUs that others may use
  double temperature_limit_c = 85;
  CommandSpec preflight;  // "the framework sees the GPU, memory fits": must end with 0
};

struct CostsSpec {
  std::optional<double> price_per_kwh;
  std::string currency;
  std::optional<double> gco2_per_kwh;
};

// Levels that are not combined: of each factor those that match; an empty list matches all.
using Exclusion = std::vector<std::vector<std::size_t>>;

struct ExperimentSpec {
  std::string name;
  std::vector<ExperimentFactor> factors;
  std::vector<Exclusion> exclusions;
  std::size_t repetitions = 10;
  RowOrder order = RowOrder::blocked_random;
  std::uint64_t seed = 0;  // of the text where none is given: the same file gives the same order
  double alpha = 0.05;

  CommandSpec command;  // nothing where the rows are somebody else's: an import
  std::vector<std::pair<std::string, std::string>> environment;
  bool keep_arguments = false;  // as `record --keep-arguments`
  std::string directory;        // where commands run; relative to the file's own folder
  std::optional<double> time_limit_s;
  std::size_t warm_up_runs = 1;
  double baseline_s = 10;
  CoolDownSpec cool_down;
  ChecksSpec checks;
  std::string trace = "auto";  // as `record --trace` and `record --sensors`
  std::string sensors;
  std::vector<MetricSpec> metrics;
  CostsSpec costs;
  Diagnostics notes;  // of an importer
};

// `name` is what messages call the file.
Result<ExperimentSpec> parse_spec(std::string_view toml, std::string_view name);

// A plan for rows that exist already: what an importer writes beside them.
std::string describing_spec(const ExperimentData& data);

std::string_view to_string(RowOrder order);
// Whether rows of one block were made to be compared.
bool is_blocked(RowOrder order);

}  // namespace joulemap::experiment
