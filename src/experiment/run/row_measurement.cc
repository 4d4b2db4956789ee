// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/row_measurement.h"

#include <map>
#include <vector>

#include "attribution/analysis/run_view_builder.h"
#include "experiment/run/row_metrics.h"
#include "experiment/run/row_series.h"
#include "model/background_row.h"

namespace joulemap::experiment {
namespace {

// Limit per device: a program can have any number of functions.
constexpr std::size_t kMaxRowFunctions = 50;

// Functions in the order of the report, largest first.
std::vector<FunctionResult> make_function_results(const RunView& view) {
  std::vector<FunctionResult> functions;
  const LevelView* const level = view.level(attribution::row_level_name(attribution::RowLevel::function));
  if (level == nullptr) return functions;
  std::map<std::string, std::size_t> function_count_by_device;
  for (const ReportRow& row : level->rows) {
    const bool is_function = row.name != kProbeModeScopeName && row.name != kBackgroundRowName;
    if (!is_function || function_count_by_device[row.device] == kMaxRowFunctions) continue;
    ++function_count_by_device[row.device];
    functions.push_back({row.display_name, row.device, row.count, row.time_s, row.energy_j, row.cause});
  }
  return functions;
}

}  // namespace

Status fill_row_from_recording(const std::string& attempt_path, std::span<const MetricSpec> metrics,
                               ExperimentRow& row) {
  const std::vector<std::string> files = {attempt_path + "/" + std::string(kRecordingFileName)};
  attribution::ViewQuery query;
  query.levels = {attribution::RowLevel::function};
  Result<RunView> view = attribution::build_run_view(files, query);
  row.metrics = read_metrics(metrics, attempt_path, view ? &*view : nullptr, row.diagnostics);
  if (!view) return std::move(view).error();
  row.start_unix_ns = view->run.start_unix_ns;
  row.elapsed_s = view->run.elapsed_s;
  row.exit_code = view->run.exit_code;
  row.domains = view->run.domains;
  row.diagnostics.add_all(view->run.diagnostics);
  for (const StepOrEpochView& epoch : view->epochs) {
    row.epochs.push_back({epoch.begin_s, epoch.end_s - epoch.begin_s, epoch.energy_j,
                          recorded_metrics_in_interval(metrics, *view, epoch.begin_s, epoch.end_s),
                          mean_gauges_in_interval(view->run, epoch.begin_s, epoch.end_s)});
  }
  row.series = make_row_series(view->run);
  row.functions = make_function_results(*view);
  if (const ThrottleReadingCounts& clocks = view->run.clock_readings; clocks.readings > 0)
    row.throttled_share = static_cast<double>(clocks.throttled) / static_cast<double>(clocks.readings);
  return Done{};
}

}  // namespace joulemap::experiment
