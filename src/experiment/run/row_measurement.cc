// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/row_measurement.h"

#include <map>
#include <set>
#include <vector>

#include "attribution/analysis/run_view_builder.h"
#include "experiment/run/row_metrics.h"
#include "recording/recording_reader.h"

namespace joulemap::experiment {
namespace {

// NVML API reference, nvmlClocksEventReasons: power cap, thermal and hardware slowdown.
constexpr std::uint64_t kHeldDown = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

// Counts the readings in which a GPU reports reduced clocks.
class ThrottleReadings final : public recording::RecordingVisitor {
 public:
  void on_channels(std::uint32_t, std::uint32_t first, std::span<const Channel> channels) override {
    for (const Channel& channel : channels) {
      if (channel.quantity == Quantity::throttle_reasons) wanted_.insert(first);
      ++first;
    }
  }
  void on_samples(std::uint32_t, std::span<const Sample> samples) override {
    if (wanted_.empty()) return;
    for (const Sample& sample : samples) {
      if (sample.reading.code != ReadCode::ok || !wanted_.contains(sample.channel)) continue;
      ++readings_;
      if ((sample.reading.raw & kHeldDown) != 0) ++held_down_;
    }
  }
  std::optional<double> share() const {
    if (readings_ == 0) return std::nullopt;
    return static_cast<double>(held_down_) / static_cast<double>(readings_);
  }

 private:
  std::set<std::uint32_t> wanted_;
  std::uint64_t readings_ = 0;
  std::uint64_t held_down_ = 0;
};

// Limit per device: a program can have any number of functions.
constexpr std::size_t kMostFunctions = 50;

// Functions in the order of the report, largest first.
std::vector<FunctionResult> functions_of(const RunView& view) {
  std::vector<FunctionResult> functions;
  const LevelView* const level = view.level(attribution::name_of(attribution::RowLevel::function));
  if (level == nullptr) return functions;
  std::map<std::string, std::size_t> kept;
  for (const ReportRow& row : level->rows) {
    const bool is_function = row.name != kProbeMode && row.name != attribution::kBackgroundRow;
    if (!is_function || kept[row.device] == kMostFunctions) continue;
    ++kept[row.device];
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
                          metrics_between(metrics, *view, epoch.begin_s, epoch.end_s)});
  }
  row.functions = functions_of(*view);
  ThrottleReadings readings;
  const auto read = recording::read_recording(files.front(), readings);
  if (read) row.throttled_share = readings.share();
  return Done{};
}

}  // namespace joulemap::experiment
