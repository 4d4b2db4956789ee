// SPDX-License-Identifier: Apache-2.0
//
// Metrics of a row besides energy: from a JSON file that its command wrote, from its output by a regular expression, or
// from its recording. A missing metric is nullopt, and a diagnostic gives the reason. Reads files of the attempt.
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

// Values in plan order. `view` is null if there is no recording.
std::vector<std::optional<double>> read_metrics(std::span<const MetricSpec> metrics, const std::string& attempt_path,
                                                const RunView* view, Diagnostics& diagnostics);

// For each metric from the recording: its value over the interval from begin_s to end_s of the run.
std::vector<std::optional<double>> recorded_metrics_in_interval(std::span<const MetricSpec> metrics,
                                                                const RunView& view, double begin_s, double end_s);

// Reduces several values to one: last, first, lowest, highest or mean.
std::optional<double> reduce_values(MetricReduction reduction, std::span<const double> values);

// Every number that the group of the pattern matched, line by line.
std::vector<double> extract_matched_numbers(std::string_view text, const std::string& pattern);

}  // namespace joulemap::experiment
