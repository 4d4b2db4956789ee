// SPDX-License-Identifier: Apache-2.0
//
// RunView: the content of pages and plots for one run: all levels of its report, and events over time. Plain data of
// bounded size, however long the run; built by attribution/analysis/run_view_builder.h. Joules, watts; times are
// seconds since the start of the command. Unknown values are empty, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"
#include "model/idle_cause.h"
#include "model/report_result.h"
#include "model/run_rates.h"

namespace joulemap {

// The rows of `report --by <by>`, the largest first.
struct LevelView {
  std::string by;
  std::vector<ReportRow> rows;
  std::vector<ReportRow> groups;  // as in ReportResult; only on request
  std::optional<double> attributed_j;
  std::optional<double> idle_j;
  std::optional<double> unattributed_j;
  std::vector<IdleEntry> idle;  // as in ReportResult
  Diagnostics diagnostics;      // of this level; those of the run are in RunView::run
};

// An interval with a name. When there are too many, neighbours are merged and `count` is their number.
struct NamedTimeSpan {
  std::string name;
  double begin_s = 0;
  double end_s = 0;
  std::uint64_t count = 1;
};

// A step or an epoch: energy of the whole machine while it lasted, excluding probing. Merged steps hold sums.
struct StepOrEpochView {
  std::uint64_t number = 0;  // of the first merged step
  std::uint64_t count = 1;
  double begin_s = 0;
  double end_s = 0;
  double time_s = 0;
  std::optional<double> energy_j;
  std::optional<double> loss;  // mean of the values reported in that time
  // Energy per unit of loss reduction against the previous stage; none when the loss did not fall.
  std::optional<double> joules_per_loss;
};

struct MetricPoint {
  double time_s = 0;
  std::optional<std::int64_t> step;
  double value = 0;
};

struct MetricSeries {
  std::string name;
  std::uint64_t count = 0;          // number of reported values
  std::vector<MetricPoint> points;  // every n-th value
};

struct LayerEnergyPoint {
  double time_s = 0;  // begin of the step or interval
  double energy_j = 0;
  std::optional<std::int64_t> step;  // step number: a GPU runs a step later than the program begins it
};

// Level that the spreads describe.
enum class DistributionLevel : unsigned char { layer, phase };

// Distribution of the energy of a layer or phase over the run.
struct LayerDistribution {
  std::vector<std::string> path;  // same as in the rows of that level
  std::string device;
  std::string per;            // "step": sums of single kernels, on CPUs means over time; "call": such means over calls
  std::uint64_t samples = 0;  // number of steps or intervals
  double mean_j = 0;
  std::vector<double> quantiles_j;       // kDistributionQuantileCount values, ascending
  std::vector<LayerEnergyPoint> points;  // every n-th sample in order of time; only on request
};
inline constexpr std::size_t kDistributionQuantileCount = 101;

// Limits of StepDetail. Of the steps with kernel records, evenly chosen ones and the longest ones have details.
inline constexpr std::size_t kMaxEvenStepDetails = 160;
inline constexpr std::size_t kMaxLongStepDetails = 20;
inline constexpr std::size_t kMaxStepLayers = 12;

// What ran on GPUs for a layer in one step.
struct StepLayer {
  std::vector<std::string> path;  // same as in the rows by layer
  std::string device;
  double time_s = 0;
  double energy_j = 0;
};

// Idle time of a GPU in one step. The time is that between the kernels of the step. Causes are recorded for intervals
// of up to a second: their proportions there apply to the step.
struct StepWait {
  IdleCause cause = IdleCause::unknown;
  std::string device;
  double time_s = 0;
  std::optional<double> energy_j;
};

// GPU work of one step, from its kernel records.
struct StepDetail {
  std::uint64_t number = 0;
  double begin_s = 0;      // of the step in the program
  double gpu_begin_s = 0;  // start of its first kernel
  double gpu_end_s = 0;    // start of the first kernel of the next step; end of its last kernel if that is unknown
  std::uint64_t kernels = 0;
  std::vector<StepLayer> layers;  // largest first, at most kMaxStepLayers
  std::uint64_t other_layers = 0;
  double other_s = 0;  // of the other layers, and of kernels outside of layers
  double other_j = 0;
  std::vector<StepWait> waits;  // longest first
};

// Energy of a component of the machine: sum of its counted domains.
struct ComponentEnergy {
  std::string name;  // "GPU", "CPU", "memory", "platform", "other"
  EnergyTotals totals;
};

// Size limits of a RunView. Beyond them, neighbours are merged or only every n-th value is kept.
struct ViewLimits {
  std::size_t slices = 1200;            // of power over time
  std::size_t steps_and_epochs = 2000;  // steps, epochs
  std::size_t metric_points = 2000;
  std::size_t distributions = 40;
  std::size_t layer_points = 0;  // of each spread
  DistributionLevel distribution_level = DistributionLevel::layer;
};

struct RunView {
  // Same as `report --by domain`: provenance, domains, totals, overhead, diagnostics. Its power and tracks are means
  // over `slice_s` each, at most ViewLimits::slices of them, so they preserve the energy.
  ReportResult run;
  RunRates rates;  // over the steps, epochs and samples of the analysed time
  std::vector<ComponentEnergy> components;
  std::vector<LevelView> levels;  // phase, layer, op, tensor, function, region, kernel; only those with rows

  std::vector<StepOrEpochView> steps;    // at most ViewLimits::stages; beyond that, merged
  std::vector<StepOrEpochView> epochs;   // likewise
  std::vector<StepDetail> step_details;  // by time
  std::uint64_t detailed_steps = 0;      // steps with kernel records; step_details holds some of them
  std::vector<NamedTimeSpan>
      phases;  // dominant phase at each moment: of the GPU when its kernels are known, else of CPUs
  std::vector<NamedTimeSpan> regions;    // named by the program
  std::vector<NamedTimeSpan> probing;    // when modules were replayed
  std::vector<NamedTimeSpan> dithering;  // when the program was delayed
  std::vector<MetricSeries> metrics;
  std::vector<LayerDistribution> layer_distributions;  // of the layers with the highest energy

  const LevelView* level(std::string_view by) const {
    for (const LevelView& level : levels) {
      if (level.by == by) return &level;
    }
    return nullptr;
  }
};

}  // namespace joulemap
