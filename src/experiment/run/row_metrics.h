// SPDX-License-Identifier: Apache-2.0
//
// Numbers that a row tells besides energy: out of a JSON file that its command wrote, out of its output by a regular
// expression, or out of its recording. What is not there is nothing, and a diagnostic says why. Reads files of the attempt.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/plan/experiment_spec.h"
#include "model/diagnostics.h"
#include "model/run_view.h"

namespace joulemap::experiment {

// In the order of the plan. `view` is nothing where there is no recording.
std::vector<std::optional<double>> read_metrics(std::span<const MetricSpec> metrics, const std::string& attempt_path,
                                                const RunView* view, Diagnostics& diagnostics);

// Of the values reported between two moments of the run, by each metric that comes from the recording.
std::vector<std::optional<double>> metrics_between(std::span<const MetricSpec> metrics, const RunView& view,
                                                   double begin_s, double end_s);

// What of several values counts.
std::optional<double> taken(MetricTake take, std::span<const double> values);

// Every number that the group of the pattern found, line by line.
std::vector<double> numbers_in(std::string_view text, const std::string& pattern);

}  // namespace joulemap::experiment
