// SPDX-License-Identifier: Apache-2.0
//
// row.json (schema joulemap.row/1): what one attempt at a row gave, and in which setting. Written when the attempt has
// ended, whatever its end; an attempt without it was killed. Names are those of ExperimentRow; levels and metrics by their
// names; domains as in `stat --json`. Pure; joules, seconds, watts, degrees Celsius.
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

// One look at the machine: "governor" is "powersave".
struct CheckOutcome {
  std::string name;
  CheckState state = CheckState::unknown;
  bool required = false;
  std::string found;    // as the machine tells it
  std::string message;  // what is wrong, or why it is not known; empty where it passed
  std::string remedy;
};

struct CoolDownOutcome {
  double waited_s = 0;
  bool reached = false;                 // power and temperatures came near the baseline within the limit
  PowerTotals power;                    // at its end
  std::optional<double> temperature_c;  // the hottest sensor
  std::optional<double> baseline_temperature_c;
};

struct SettingChange {
  std::string path;
  std::string before;
  std::string after;
};

// What a reader asks first when two rows differ; for people and other programs, no analysis reads it.
struct RowSetting {
  std::vector<std::string> command;
  std::string directory;
  std::string recording;  // beside row.json; empty where there is none
  std::string error;      // why there is no measurement
  std::vector<EnvironmentFact> environment;
  std::vector<CheckOutcome> checks;
  std::vector<SettingChange> settings;
  std::optional<CoolDownOutcome> cool_down;
};

std::string_view to_string(CheckState state);

// `data` has the names of factors and metrics.
std::string row_json(const ExperimentRow& row, const RowSetting& setting, const ExperimentData& data);

// The numbers of the row; its place in the plan and its attempts are the caller's. Members that are missing are not known.
Result<ExperimentRow> parse_row_json(std::string_view json, std::string_view name, const ExperimentData& data);

}  // namespace joulemap::experiment
