// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/row_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <regex>

#include "base/small_file.h"
#include "base/text.h"
#include "formats/document.h"

namespace joulemap::experiment {
namespace {

constexpr std::size_t kMaxFile_bytes = std::size_t{256} << 20;
constexpr std::size_t kMaxMatchedLine_bytes =
    4096;  // longer lines are cut, because std::regex uses stack for each character

void note_missing_metric(const MetricSpec& metric, const std::string& reason, Diagnostics& diagnostics) {
  diagnostics.add({"metric_missing", 1, fmt::format("{} is unknown: {}", metric.metric.name, reason),
                   fmt::format("check [metrics.{}] in experiment.toml", metric.metric.name)});
}

// The number, or the numbers of a list, which has for example one value per epoch; MetricSpec::reduction then reduces
// them to one.
std::vector<double> json_numbers(const formats::DocumentValue& value) {
  std::vector<double> numbers;
  if (const std::optional<double> number = value.number()) numbers.push_back(*number);
  if (const formats::DocumentValue::Array* const elements = value.array()) {
    for (const formats::DocumentValue& element : *elements) {
      if (const std::optional<double> number = element.number()) numbers.push_back(*number);
    }
  }
  return numbers;
}

std::optional<double> read_metric_from_json(const MetricSpec& metric, const std::string& attempt_path,
                                            Diagnostics& diagnostics) {
  const std::string path = attempt_path + "/" + metric.json_file;
  const Result<std::string> text = read_file_beneath(attempt_path, metric.json_file, kMaxFile_bytes);
  const Result<formats::DocumentValue> json = text ? formats::read_json(*text, path) : text.error();
  if (!json) {
    note_missing_metric(metric, json.error().message, diagnostics);
    return std::nullopt;
  }
  const formats::DocumentValue* const value = json->find_path(metric.json_key);
  const std::optional<double> number =
      value == nullptr ? std::nullopt : reduce_values(metric.reduction, json_numbers(*value));
  if (!number)
    note_missing_metric(metric, fmt::format("{} contains no number {}", path, joulemap::quoted(metric.json_key)),
                        diagnostics);
  return number;
}

std::optional<double> read_metric_from_output(const MetricSpec& metric, const std::string& attempt_path,
                                              Diagnostics& diagnostics) {
  const std::string path = attempt_path + "/stdout.txt";
  const Result<std::string> text = read_file_beneath(attempt_path, "stdout.txt", kMaxFile_bytes);
  if (!text) {
    note_missing_metric(metric, text.error().message, diagnostics);
    return std::nullopt;
  }
  const std::optional<double> number =
      reduce_values(metric.reduction, extract_matched_numbers(*text, metric.output_pattern));
  if (!number)
    note_missing_metric(metric, fmt::format("nothing in {} matches {}", path, metric.output_pattern), diagnostics);
  return number;
}

std::vector<double> recorded_values_in_interval(const RunView& view, const std::string& name, double begin_s,
                                                double end_s) {
  std::vector<double> values;
  for (const MetricSeries& series : view.metrics) {
    if (series.name != name) continue;
    for (const MetricPoint& point : series.points) {
      if (point.time_s >= begin_s && point.time_s <= end_s) values.push_back(point.value);
    }
  }
  return values;
}

// Value of a metric that the measured program logged. First, last and mean are exact; lowest and highest of a long run
// come from a series that keeps only every n-th point.
std::optional<double> read_metric_from_recording(const MetricSpec& metric, const RunView* view,
                                                 Diagnostics& diagnostics) {
  if (view == nullptr) return std::nullopt;  // the missing recording is already reported
  for (const ReportedMetric& reported : view->run.metrics) {
    if (reported.name != metric.json_key || reported.count == 0) continue;
    if (metric.reduction == MetricReduction::last) return reported.last;
    if (metric.reduction == MetricReduction::first) return reported.first;
    if (metric.reduction == MetricReduction::mean) return reported.sum / static_cast<double>(reported.count);
    return reduce_values(metric.reduction, recorded_values_in_interval(*view, metric.json_key, -1e300, 1e300));
  }
  note_missing_metric(metric, fmt::format("the program reported no {}", joulemap::quoted(metric.json_key)),
                      diagnostics);
  return std::nullopt;
}

}  // namespace

std::optional<double> reduce_values(MetricReduction reduction, std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  switch (reduction) {
    case MetricReduction::last:
      return values.back();
    case MetricReduction::first:
      return values.front();
    case MetricReduction::lowest:
      return *std::min_element(values.begin(), values.end());
    case MetricReduction::highest:
      return *std::max_element(values.begin(), values.end());
    case MetricReduction::mean:
      return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  return std::nullopt;
}

std::vector<double> extract_matched_numbers(std::string_view text, const std::string& pattern) {
  std::vector<double> numbers;
  const std::regex expression(pattern);  // parse_spec has validated it
  for (std::string_view line : split(text, '\n')) {
    line = line.substr(0, kMaxMatchedLine_bytes);
    std::cregex_iterator match(line.data(), line.data() + line.size(), expression);
    for (; match != std::cregex_iterator(); ++match) {
      if (const std::optional<double> number = parse_double(match->str(1))) numbers.push_back(*number);
    }
  }
  return numbers;
}

std::vector<std::optional<double>> read_metrics(std::span<const MetricSpec> metrics, const std::string& attempt_path,
                                                const RunView* view, Diagnostics& diagnostics) {
  std::vector<std::optional<double>> values;
  for (const MetricSpec& metric : metrics) {
    switch (metric.source) {
      case MetricSource::json:
        values.push_back(read_metric_from_json(metric, attempt_path, diagnostics));
        break;
      case MetricSource::output:
        values.push_back(read_metric_from_output(metric, attempt_path, diagnostics));
        break;
      case MetricSource::recording:
        values.push_back(read_metric_from_recording(metric, view, diagnostics));
        break;
    }
  }
  return values;
}

std::vector<std::optional<double>> recorded_metrics_in_interval(std::span<const MetricSpec> metrics,
                                                                const RunView& view, double begin_s, double end_s) {
  std::vector<std::optional<double>> values;
  for (const MetricSpec& metric : metrics) {
    values.push_back(
        metric.source == MetricSource::recording
            ? reduce_values(metric.reduction, recorded_values_in_interval(view, metric.json_key, begin_s, end_s))
            : std::nullopt);
  }
  return values;
}

}  // namespace joulemap::experiment
