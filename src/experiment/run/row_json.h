// SPDX-License-Identifier: Apache-2.0
//
// row.json (schema joulemap.row/1): the result of one attempt at a row and its environment. The runner writes it when
// the attempt ends, whatever the outcome; an attempt without it was killed. Members are named after ExperimentRow;
// levels and metrics by their names; domains as in `stat --json`. Pure; joules, seconds, watts, degrees Celsius.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/experiment_data.h"
#include "model/recorded.h"

namespace joulemap::experiment {

enum class CheckState { passed, warned, failed, unknown };

// Outcome of one check: "governor" is "powersave".
struct CheckOutcome {
  std::string check_name;
  CheckState state = CheckState::unknown;
  bool is_required = false;
  std::string observed_value;  // value found on the machine: "powersave"
  std::string message;         // what is wrong, or why it is unknown; empty if passed
  std::string remedy;
};

struct CoolDownOutcome {
  double waited_s = 0;
  bool reached_baseline = false;        // power and temperatures came near the baseline within the limit
  PowerTotals idle_powers;              // at the end of the cool-down
  std::optional<double> temperature_c;  // of the hottest sensor, at the end of the cool-down
  std::optional<double> baseline_temperature_c;
};

struct SettingChange {
  std::string setting_file;
  std::string value_before;
  std::string value_after;
};

// Conditions of an attempt, for people and other programs that compare two rows; the analysis does not read it.
struct AttemptConditions {
  std::vector<std::string> command;
  std::string directory;
  std::string recording_file;  // file name beside row.json; empty if there is none
  std::string error_text;      // why there is no measurement
  std::vector<EnvironmentFact> environment;
  std::vector<CheckOutcome> checks;
  std::vector<SettingChange> settings;
  std::optional<CoolDownOutcome> cool_down;
};

std::string_view to_string(CheckState state);

// `data` provides the names of factors and metrics.
std::string row_json(const ExperimentRow& row, const AttemptConditions& conditions, const ExperimentData& data);

// Parses the numbers of the row; the caller sets number, levels, block and attempts. Missing members are unknown.
Result<ExperimentRow> parse_row_json(std::string_view json, std::string_view name, const ExperimentData& data);

}  // namespace joulemap::experiment
